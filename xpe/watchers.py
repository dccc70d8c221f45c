"""What listens to a run: sample files, the log, and several watchers as one."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xpe.records import record
from xpe.report import number
from xpe.store import Store
from xpe.types import Answer, Asked, Failure, Measured, Reply, Task, TaskResult, Watcher

log = logging.getLogger(__name__)


class SampleFiles:
    """Commits the sample-file line of each answer."""

    def __init__(self, store: Store, *, log_samples: bool) -> None:
        self._store = store
        self._log_samples = log_samples

    def task_started(self, task: Task, n_samples: int) -> None: ...

    def replied(self, asked: Asked, reply: Reply) -> None: ...

    def answered(self, answer: Answer, measured: Mapping[str, Measured]) -> None:
        line = record(answer, measured, log_samples=self._log_samples)
        self._store.keep_answer(answer.sample.task, answer.sample.doc_id, line)

    def task_finished(self, result: TaskResult) -> None: ...


class Logbook:
    """Writes to the log when a task begins and ends, every failure, and what cannot be scored."""

    def __init__(self) -> None:
        self._started = 0.0

    def task_started(self, task: Task, n_samples: int) -> None:
        self._started = time.monotonic()
        log.info("%s: %d samples", task.name, n_samples)

    def replied(self, asked: Asked, reply: Reply) -> None:
        if isinstance(reply, Failure):
            task, doc_id, turn, repeat = asked.origin
            place = f"{task}, document {doc_id}, turn {turn}, request {repeat}"
            log.info("%s to %s failed: %s: %s", place, asked.request.to, reply.kind, reply.message)

    def answered(self, answer: Answer, measured: Mapping[str, Measured]) -> None:
        for name, found in measured.items():
            if found.get("invalid"):
                place = f"{answer.sample.task}, document {answer.sample.doc_id}"
                log.info("%s: %s cannot score by its gold %r", place, name, answer.sample.target)

    def task_finished(self, result: TaskResult) -> None:
        seconds = time.monotonic() - self._started
        found = ", ".join(f"{key} {number(e.value)}" for key, e in result.estimates.items())
        log.info("%s: %s in %.1f s", result.name, found or "nothing scored", seconds)


@dataclass(frozen=True)
class Watchers:
    """Several watchers as one."""

    all: Sequence[Watcher]

    def task_started(self, task: Task, n_samples: int) -> None:
        for watcher in self.all:
            watcher.task_started(task, n_samples)

    def replied(self, asked: Asked, reply: Reply) -> None:
        for watcher in self.all:
            watcher.replied(asked, reply)

    def answered(self, answer: Answer, measured: Mapping[str, Measured]) -> None:
        for watcher in self.all:
            watcher.answered(answer, measured)

    def task_finished(self, result: TaskResult) -> None:
        for watcher in self.all:
            watcher.task_finished(result)
