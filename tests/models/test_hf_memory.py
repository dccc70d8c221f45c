"""What scoring a long context adds to the peak of a process that has loaded the model."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from xpe.models.smollm2 import SmolLM2

pytestmark = pytest.mark.model

MOST_MB = 250
"""Full float32 logits of 4,000 tokens alone would be 786 MB."""

CHILD = """
    import json, resource
    from xpe.models.smollm2 import SmolLM2
    from xpe.types import Asked, LogLikelihood, Origin

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6

    def ask(context, choices):
        one = Asked(Origin("t", 0, 0, 0), LogLikelihood(context, choices))
        return [pair for pair in model.reply([one]) if pair is not None][0][1].log_likelihoods

    model = SmolLM2()
    model.load()
    ask("warm", (" up", " up and on"))
    tokenizer = model.prompts.tokenizer
    tokens = tokenizer(" ".join(f"word{i}" for i in range(1500)))["input_ids"][:4000]
    context = tokenizer.decode(tokens)
    words = " Paris", " Rome", " Berlin"
    texts = " the city of Paris in France", " the city of Rome, in Italy", " Berlin, a capital"
    before, found = peak(), []
    for choices in (texts, texts[:1], words):
        found.append([ask(context, choices), peak() - before])
    print(json.dumps({"tokens": len(tokens), "found": found}))
"""


def test_a_context_of_4000_tokens(smol: SmolLM2) -> None:
    """One and three choices: less than 250 MB, and the same scores.

    Choices of one token each are computed as a lone one is, whatever their number.
    """
    assert smol.length > 4000
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CHILD)],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["tokens"] == 4000
    (three, _), (lone, _), (words, _) = said["found"]
    assert lone == pytest.approx(three[:1], abs=1e-3)
    assert len(words) == 3
    assert max(added for _, added in said["found"]) < MOST_MB, said["found"]
