"""Running estimates while a task is under way, and `realtime_metrics.json`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock, Timer

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
    progress bar shows. Where answers come faster than the file can be written, it follows them
    within moments, also when no further answer comes.

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
        self._lock = RLock()
        self._timer: Timer | None = None

    def task_started(self, task: Task, n_samples: int) -> None:
        self._task, self._samples, self._answered, self._failed = task.name, n_samples, 0, 0
        evaluators = keys_of(tuple(self._evaluators[task.name].values()))
        self._ledgers = {key: Ledger(evaluator) for key, evaluator in evaluators.items()}
        self.estimates = {}
        self._write()

    def replied(self, asked: Asked, reply: Reply) -> None:
        self._failed += isinstance(reply, Failure)

    def answered(self, answer: Answer, measured: Mapping[str, Measured]) -> None:
        with self._lock:
            self._answered += 1
            for key, ledger in self._ledgers.items():
                ledger.add(answer, measured[key])
            wait = self._next - time.perf_counter()
            if wait <= 0:
                self._refresh()
            elif self._timer is None:
                self._timer = Timer(wait, self._refresh)
                self._timer.daemon = True
                self._timer.start()

    def task_finished(self, result: TaskResult) -> None:
        with self._lock:
            self._stop_timer()
            self.estimates = dict(result.estimates)
            self._write()
            self._done[self._task] = self._state()
            self._ledgers = {}

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refresh(self) -> None:
        """Estimate all metrics anew and write them, in the thread of the run or of the timer."""
        with self._lock:
            if not self._ledgers:  # the task ended meanwhile
                return
            self._stop_timer()
            started = time.perf_counter()
            self.estimates = {
                key: estimate(metric, table, self._stats)
                for ledger in self._ledgers.values()
                for key, (metric, table) in ledger.metrics().items()
            }
            self._write()
            now = time.perf_counter()
            self._next = now + (now - started) / _SHARE

    def _state(self) -> dict[str, object]:
        return {
            "samples": self._samples,
            "answered": self._answered,
            "failed_requests": self._failed,
            "metrics": {key: estimate_json(found) for key, found in self.estimates.items()},
        }

    def _write(self) -> None:
        write_json(self._path, {"tasks": {**self._done, self._task: self._state()}})
