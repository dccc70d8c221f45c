"""Plain threads for kernels that release the GIL, made for each call.

A pool kept between calls would hang in a forked child; numba's own parallel layers kill or abort
such processes.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator, Sequence

from xpe.errors import ConfigError

_PIECES = 4


def available() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _pieces(n: int, threads: int) -> Iterator[tuple[int, int]]:
    size = max(1, -(-n // (threads * (_PIECES if threads > 1 else 1))))
    for start in range(0, n, size):
        yield start, min(start + size, n)


def in_threads(work: Callable[[int, int], object], n: int, threads: int | None = None) -> None:
    """Call `work(start, stop)` for slices that cover range(n), on `threads` threads.

    `None` takes all CPUs of this process. Which thread gets which slice is left to chance, so
    `work` must give the same result for any cut. The first exception of a thread is raised here.
    """
    threads = available() if threads is None else threads
    if threads < 1:
        raise ConfigError(f"threads must be at least 1, got {threads}")
    threads = min(threads, max(n, 1))
    pieces = _pieces(n, threads)
    taking = threading.Lock()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            while not failures:
                with taking:
                    piece = next(pieces, None)
                if piece is None:
                    return
                work(*piece)
        except BaseException as failure:  # noqa: BLE001  raised again in the caller's thread
            failures.append(failure)

    others = [threading.Thread(target=run, name="xpe-kernel") for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    run()
    for thread in others:
        thread.join()
    if failures:
        raise failures[0]


class Warmer:
    """Runs steps, once, in a background thread that the end of the process does not wait out.

    A fork waits until the step that runs is done: half an import or half a compilation, inherited
    with its locks held, would block the child for ever. The child has no such thread; it may
    start its own.
    """

    def __init__(self, steps: Sequence[Callable[[], object]]) -> None:
        self._steps = steps
        self._step_lock = threading.RLock()
        self._start_lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> threading.Thread:
        """Start, if that has not been done; return the thread, so that a caller can wait for it."""
        with self._start_lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="xpe-warm", daemon=True)
                atexit.register(self._stop, self._thread)
                if hasattr(os, "register_at_fork"):
                    os.register_at_fork(
                        before=self._step_lock.acquire,
                        after_in_parent=self._step_lock.release,
                        after_in_child=self._forget,
                    )
                self._thread.start()
            return self._thread

    def _run(self) -> None:
        for step in self._steps:
            with self._step_lock:
                if self._stopped.is_set():
                    return
                step()

    def _stop(self, thread: threading.Thread) -> None:
        self._stopped.set()
        thread.join()

    def _forget(self) -> None:
        self._step_lock.release()
        self._start_lock = threading.Lock()
        self._thread = None
