"""The running estimates follow the answers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from players import ToyTask

import xpe.live
from xpe.evaluators.accuracy import AccuracyEvaluator
from xpe.live import LiveMetrics
from xpe.stats.settings import Stats
from xpe.types import Answer, Asked, Exchange, Failure, Generate, Generated, Origin, TaskResult

PATIENCE = 60.0


def said(task: ToyTask, doc_id: int) -> Answer:
    text = str(doc_id if doc_id % 2 else "wrong")
    return Answer(task.samples()[doc_id], (Exchange(Generate("q"), Generated(text)),))


def written(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))["tasks"]["toy"]


def test_the_file_follows_answers_that_come_fast_and_then_not_at_all(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """A burst is written a moment later, with nothing more to set it off; a pause costs little."""
    monkeypatch.setattr(xpe.live, "_SHARE", 0.002)
    path, task = tmp_path / "realtime_metrics.json", ToyTask(n=20)
    evaluator = AccuracyEvaluator()
    live = LiveMetrics(path, {"toy": {"accuracy": evaluator}}, Stats())
    live.task_started(task, 20)
    asked = Asked(Origin("toy", 19, 0, 0), Generate("q"))
    live.replied(asked, Failure("server", "500"))
    for doc_id in range(10):
        answer = said(task, doc_id)
        live.answered(answer, {evaluator.name: evaluator.measure(answer)})
    until = time.monotonic() + PATIENCE
    while written(path)["answered"] < 10 and time.monotonic() < until:
        time.sleep(0.01)
    then = written(path)

    assert (then["samples"], then["answered"], then["failed_requests"]) == (20, 10, 1)
    assert then["metrics"]["accuracy"]["value"] == 0.5
    assert live.estimates["accuracy"].n == 10

    for doc_id in range(10, 20):
        answer = said(task, doc_id)
        live.answered(answer, {evaluator.name: evaluator.measure(answer)})
    live.task_finished(TaskResult("toy", {}, 20, 20))
    time.sleep(0.2)
    assert (written(path)["answered"], written(path)["metrics"]) == (20, {})
