"""Equality of formulas, decided in worker processes that are killed when they take too long.

Symbolic mathematics can take any time and memory, and cannot be interrupted from within. A
worker is a fresh interpreter, started when the first formula comes and used again after that;
it inherits no threads, locks or libraries, so it is safe beside a forked or a threaded parent.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
from typing import NamedTuple

from xpe.errors import EngineError

_START_LIMIT = 120.0
"""Seconds until a new worker must have imported its libraries."""
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:];"
    "from xpe.evaluators.algebra_worker import serve; serve()"
)


class Comparison(NamedTuple):
    """What a worker found: whether the prediction could be read, and is equal to the gold.

    `value` and `gold_value` are those of prediction and gold where they are numbers.
    """

    parsed: bool
    equal: bool
    value: float | None
    gold_value: float | None


def compare(gold: str, prediction: str, limit: float) -> Comparison | None:
    """Compare two LaTeX formulas; None where that takes more than `limit` seconds, or memory.

    Raises
    ------
    EngineError
        If a worker cannot be started.
    """
    worker = _take()
    reply = worker.ask(json.dumps({"gold": gold, "prediction": prediction}), limit)
    if reply is None:
        return None
    _give_back(worker)
    return Comparison(**json.loads(reply))


class _Worker:
    """One process and its pipes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-X", "utf8", "-c", _PROGRAM, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        if self._read(_START_LIMIT).strip() != "ready":
            self.close()
            raise EngineError(
                "the process that compares formulas did not start;"
                " see what `python -m xpe.evaluators.algebra_worker < /dev/null` says"
            )

    def ask(self, request: str, limit: float) -> str | None:
        """Return the reply to a request, or None and end the process if none comes in time."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{request}\n")
            self._process.stdin.flush()
            reply = self._read(limit)
        except OSError:
            reply = ""
        if reply:
            return reply
        self.close()
        return None

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.communicate()

    def _read(self, limit: float) -> str:
        """Return the next line; an empty one if the process ended, as it does at the limit."""
        assert self._process.stdout is not None
        timer = threading.Timer(limit, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            return self._process.stdout.readline()
        finally:
            timer.cancel()


class _Idle:
    """Workers that wait for the next formula. There are as many as threads asked at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.workers: list[_Worker] = []
        self.of_parent: list[_Worker] = []

    def forget(self) -> None:
        """Leave the workers to the parent, after a fork: two processes cannot share a pipe."""
        self.lock = threading.Lock()
        self.of_parent += self.workers
        self.workers = []

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.workers = []


_IDLE = _Idle()
atexit.register(_IDLE.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_IDLE.forget)


def _take() -> _Worker:
    with _IDLE.lock:
        while _IDLE.workers:
            worker = _IDLE.workers.pop()
            if worker.alive:
                return worker
            worker.close()
    return _Worker()


def _give_back(worker: _Worker) -> None:
    with _IDLE.lock:
        _IDLE.workers.append(worker)
