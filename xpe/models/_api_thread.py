"""An event loop in a thread, behind a synchronous stream of replies."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from xpe.types import Asked, Reply

T = TypeVar("T")
Answer: TypeAlias = Callable[[Asked], Awaitable[Reply]]

_SHORTEST, _LONGEST = 0.005, 0.05
"""Seconds to wait for a reply before others get a turn."""


class LoopThread:
    """Runs coroutines for synchronous callers until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="xpe-api", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine and return what it returns."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def replies(
        self, asked: Iterable[Asked | None], answer: Answer, room: int
    ) -> Iterator[tuple[Asked, Reply] | None]:
        """Answer what is asked, at most `room` at a time; see `types.Model.reply`.

        What `answer` raises is raised here. Ending the stream early cancels what is under way.
        """
        desk = _Desk(self._loop, answer)
        try:
            yield from _stream(iter(asked), desk, room)
        finally:
            desk.cancel()

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _stream(
    asked: Iterator[Asked | None], desk: _Desk, room: int
) -> Iterator[tuple[Asked, Reply] | None]:
    more, under_way, pause = True, 0, _SHORTEST
    while more or under_way:
        while more and under_way < room:
            try:
                one = next(asked)
            except StopIteration:
                more = False
                break
            if one is None:
                break
            desk.submit(one)
            under_way += 1
            pause = _SHORTEST
        got = desk.take(pause) if under_way else None
        if got is not None:
            under_way -= 1
            pause = _SHORTEST
            yield got
        elif more or under_way:
            # Somebody else may have to reply, or to be asked, before there is more for us.
            pause = min(2 * pause, _LONGEST)
            yield None


class _Desk:
    """Where requests go into the loop and replies come out of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, answer: Answer) -> None:
        self._loop = loop
        self._answer = answer
        self._in: deque[Asked] = deque()
        self._out: queue.SimpleQueue[tuple[Asked, Reply] | BaseException] = queue.SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._woken = False

    def submit(self, one: Asked) -> None:
        self._in.append(one)
        if not self._woken:  # waking a loop is a system call
            self._woken = True
            self._loop.call_soon_threadsafe(self._begin)

    def take(self, seconds: float) -> tuple[Asked, Reply] | None:
        try:
            got = self._out.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(got, BaseException):
            raise got
        return got

    def cancel(self) -> None:
        if self._tasks or self._in:
            asyncio.run_coroutine_threadsafe(self._cancelled(), self._loop).result()

    def _begin(self) -> None:
        self._woken = False
        while self._in:
            task = self._loop.create_task(self._run(self._in.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, one: Asked) -> None:
        try:
            self._out.put((one, await self._answer(one)))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - raised again by `take`
            self._out.put(error)

    async def _cancelled(self) -> None:
        self._in.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
