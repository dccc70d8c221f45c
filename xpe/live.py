"""Running estimates while a task is under way, and `realtime_metrics.json`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from xpe.report import estimate_json, write_json
from xpe.stats.estimate import estimate
from xpe.stats.settings import Stats
from xpe.tables import Ledger, keys_of
from xpe.types import (
    Answer,
    Asked,
    Estimate,
    Evaluator,
    Failure,
    Measured,
    Reply,
    Task,
    TaskResult,
)

_SHARE = 0.02
"""Refreshing may take this share of the run's time, so that a long run does not slow down."""


class LiveMetrics:
    """Keeps running estimates of the task under way and writes them after answers.

    Closed forms only: bootstrapped errors come at the end of the task. `estimates` is what the
    progress bar shows.

    Parameters
    ----------
    path
        The file to replace, atomically, as answers arrive.
    evaluators
        By task name and key, as in `Run`.
    stats
        The settings of the run; its bootstrap is left out here.
    """

    def __init__(
        self, path: Path, evaluators: Mapping[str, Mapping[str, Evaluator]], stats: Stats
    ) -> None:
        self.estimates: dict[str, Estimate] = {}
        self._path = path
        self._evaluators = evaluators
        self._stats = replace(stats, bootstrap_iters=0)
        self._done: dict[str, dict[str, object]] = {}
        self._next = 0.0
        self._task = ""
        self._samples = 0
        self._answered = 0
        self._failed = 0
        self._ledgers: dict[str, Ledger] = {}

    def task_started(self, task: Task, n_samples: int) -> None:
        self._task, self._samples, self._answered, self._failed = task.name, n_samples, 0, 0
        evaluators = keys_of(tuple(self._evaluators[task.name].values()))
        self._ledgers = {key: Ledger(evaluator) for key, evaluator in evaluators.items()}
        self.estimates = {}
        self._write()

    def replied(self, asked: Asked, reply: Reply) -> None:
        self._failed += isinstance(reply, Failure)

    def answered(self, answer: Answer, measured: Mapping[str, Measured]) -> None:
        self._answered += 1
        for key, ledger in self._ledgers.items():
            ledger.add(answer, measured[key])
        started = time.perf_counter()
        if started >= self._next:
            self._refresh()
            self._write()
            now = time.perf_counter()
            self._next = now + (now - started) / _SHARE

    def task_finished(self, result: TaskResult) -> None:
        self.estimates = dict(result.estimates)
        self._write()
        self._done[self._task] = self._state()
        self._ledgers = {}

    def _refresh(self) -> None:
        for ledger in self._ledgers.values():
            for key, (metric, table) in ledger.metrics().items():
                self.estimates[key] = estimate(metric, table, self._stats)

    def _state(self) -> dict[str, object]:
        return {
            "samples": self._samples,
            "answered": self._answered,
            "failed_requests": self._failed,
            "metrics": {key: estimate_json(found) for key, found in self.estimates.items()},
        }

    def _write(self) -> None:
        write_json(self._path, {"tasks": {**self._done, self._task: self._state()}})
