"""Log likelihoods over handed examination questions, beside transformers called directly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xpe.models.smollm2 import SmolLM2
from xpe.types import Asked, LogLikelihood, Origin

pytestmark = [pytest.mark.model, pytest.mark.shared]


def questions(shared_data: Path, n: int) -> list[tuple[str, tuple[str, ...]]]:
    """The first questions of the examination: prompt, and letters as continuations."""
    found = []
    with (shared_data / "data/tcm_choice/TCM-ED-A.jsonl").open(encoding="utf-8") as lines:
        for _, line in zip(range(n), lines, strict=False):
            doc = json.loads(line)
            options = "".join(f"{key}. {text}\n" for key, text in doc["options"].items())
            found.append((f"{doc['question']}\n{options}答案：", tuple(doc["options"])))
    return found


def direct(model: Any, tokenizer: Any, prompt: str, letters: Sequence[str]) -> list[float]:
    """Score letters, one token each, by one forward pass of the prompt and a softmax in float64."""
    import torch

    ids = tokenizer(prompt)["input_ids"]
    wholes = [tokenizer(prompt + letter)["input_ids"] for letter in letters]
    assert all(whole[:-1] == ids for whole in wholes)
    with torch.inference_mode():
        logits = model(torch.tensor([ids]), logits_to_keep=1).logits[0, -1]
        row = torch.log_softmax(logits.double(), -1)
    return [row[whole[-1]].item() for whole in wholes]


def test_choices_of_100_questions_equal_transformers(
    smol: SmolLM2, reference: Any, shared_data: Path
) -> None:
    """Every choice within 1e-4 nat of a direct call, and the same best choice everywhere."""
    asked = [
        Asked(Origin("tcm", i, 0, 0), LogLikelihood(prompt, letters))
        for i, (prompt, letters) in enumerate(questions(shared_data, 100))
    ]
    replies = {one.origin.doc_id: reply for one, reply in smol.reply(asked)}

    assert len(replies) == 100
    for one in asked:
        theirs = direct(
            reference.model, reference.tokenizer, one.request.context, one.request.continuations
        )
        ours = replies[one.origin.doc_id].log_likelihoods
        assert ours == pytest.approx(theirs, abs=1e-4)
        assert np.argmax(ours) == np.argmax(theirs)
