"""The memory of a process that has loaded the model: by a long context, and over a sweep."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

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


SWEEP = """
    import resource, sys
    from xpe.cli import main

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6

    def swept(lengths, counts):
        words = [f"model.max_length={lengths}", f"num_fewshot={counts}", "task=capitals_en"]
        words += ["limit=2", "tracking=none", "stats.bootstrap_iters=0"]
        assert main(["-m", "model=smollm2", *words]) == 0

    swept("1024", "0,1,3,5")
    one = peak()
    swept("512,1000", "0,1")
    print(one, peak(), file=sys.stderr)
"""


def test_sweeps(smol: SmolLM2, tmp_path: Path) -> None:
    """Four jobs load once, in 1.1 times one load; another model frees the one before."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SWEEP)],
        cwd=tmp_path, env=os.environ | {"XPE_RUNS": str(tmp_path / "runs")},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    logs = sorted((tmp_path / "runs").glob("**/evaluation.log"), key=lambda p: p.stat().st_mtime)
    spent = [
        float(seconds)
        for log in logs
        for seconds in re.findall(r"the model is loaded: ([0-9.]+) s", log.read_text("utf-8"))
    ]
    assert len(spent) == 8
    assert sum(spent[:4]) <= 1.1 * spent[0]
    assert sum(spent[4:]) <= 1.1 * (spent[4] + spent[6])
    weights_mb = sum(p.stat().st_size for p in Path(smol.source.path).glob("*.safetensors")) / 1e6
    one, three = map(float, done.stderr.splitlines()[-1].split())
    assert three < one + weights_mb / 3, "two models were held at once"
