"""A package of somebody else's adds an evaluator and a metric through entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULE = '''
from xpe.core.base_evaluator import BaseEvaluator
from xpe.metrics import register_metric


class Shouting(BaseEvaluator):
    """The documented kind of custom evaluator: it overrides `evaluate` alone."""

    calls = 0

    def evaluate(self, predictions, references):
        scores = [float("1" in p) for p in predictions]
        return {"has_one": self.aggregate_scores(scores)}


@register_metric(
    metric="length", higher_is_better=False, output_type="generate_until", aggregation="mean"
)
def length(predictions, references):
    return float(len(predictions[0]))
'''
POINTS = """\
[xpe.evaluators]
shouting = strangers:Shouting
[xpe.metrics]
length = strangers:length
"""
TASK = """\
# @package task.sums
kind: generation
data: {path: sums.jsonl}
doc_to_text: "{{ q }}"
doc_to_target: a
metrics: [length]
evaluators: {shouting: {}}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder where the package is installed, with a task that uses it."""
    site = tmp_path / "site"
    info = site / "strangers-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "strangers.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "conf" / "task").mkdir(parents=True)
    (tmp_path / "conf" / "task" / "sums.yaml").write_text(TASK)
    (tmp_path / "conf" / "model").mkdir()
    (tmp_path / "conf" / "model" / "toy.yaml").write_text("kind: toy\n")
    docs = "".join(json.dumps({"q": f"{i}?", "a": str(i)}) + "\n" for i in range(12))
    (tmp_path / "sums.jsonl").write_text(docs)
    return tmp_path


def test_evaluator_and_metric_of_a_stranger_take_part_in_a_run(home: Path) -> None:
    """Their numbers are in the result; without per-sample values the error is null, and why."""
    job = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "toy_run.py"), "model=toy", "task=sums",
         "tracking=none", "stats.bootstrap_iters=50", "output=out"],
        cwd=home, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(home / "site"), "TOY_LOG": str(home / "log")},
    )  # fmt: skip
    assert job.returncode == 0, job.stderr
    found = json.loads((home / "out" / "results.json").read_text())["results"]["sums"]

    # The toy answers 答案是N for document N: 0, 1, …, 11; a 1 is in 1, 10 and 11.
    assert found["has_one"]["value"] == pytest.approx(3 / 12)
    assert found["has_one"]["stderr"] is None
    assert "per-sample" in found["has_one"]["why"]
    assert found["length"]["value"] == pytest.approx((10 * 4 + 2 * 5) / 12)
    assert found["length"]["higher_is_better"] is False
