"""How fast to ask: a window that adapts to 429, and buckets for limits a minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

_LESS = 0.75
_MORE_PER_WINDOW = 1 / 16
_MORE_PER_SECOND = 1 / 32


class Window:
    """How many requests may be on the wire: additive increase, multiplicative decrease.

    A 429 takes a quarter off: once for all requests that were sent before it was felt, and once
    a `pause`, because refusals come back much faster than answers. Answers give back a sixteenth
    of `most` for each full window, and time a thirty-second each second, so that slow requests
    do not hold up the rest for long. Other errors change nothing: they say nothing about our
    rate. Used from one event loop.

    Parameters
    ----------
    most
        Where the window starts, and its upper end; its lower end is 1.
    pause
        Seconds between two decreases.
    clock
        Gives seconds.
    """

    def __init__(
        self, most: int, pause: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.most = most
        self.limit = float(most)
        self._pause = pause
        self._clock = clock
        self._grown = self._decreased = clock()
        self._sent = 0
        self._epoch = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self) -> int:
        """Wait for a place; returns the epoch to leave with."""
        if self._sent < int(self.limit) and not self._waiting:
            self._sent += 1
            return self._epoch
        loop = asyncio.get_running_loop()
        place = loop.create_future()
        self._waiting.append(place)
        if self._timer is None:
            self._timer = loop.call_later(1.0, self._tick, loop)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._sent -= 1
                self._wake()
            raise
        return self._epoch

    def leave(self, epoch: int, *, limited: bool, answered: bool) -> None:
        """Give the place back and say how it went."""
        self._sent -= 1
        now = self._clock()
        if answered:
            self._grow(self.most * _MORE_PER_WINDOW / self.limit)
        elif limited and epoch == self._epoch and now - self._decreased >= self._pause:
            self.limit = max(1.0, self.limit * _LESS)
            self._epoch += 1
            self._decreased = self._grown = now
        self._wake()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wake()
        self._timer = loop.call_later(1.0, self._tick, loop) if self._waiting else None

    def _grow(self, more: float) -> None:
        self.limit = min(float(self.most), self.limit + more)

    def _wake(self) -> None:
        now = self._clock()
        self._grow(self.most * _MORE_PER_SECOND * (now - self._grown))
        self._grown = now
        while self._waiting and self._sent < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self._sent += 1
                place.set_result(None)


class Bucket:
    """A limit a minute: whatever the times of arrival, no minute sees more than `per_minute`.

    It holds what flows in within a second, and the flow is so much lower that the two together
    keep to the limit. A cost above the content (a long prompt) waits for a full bucket and
    leaves a debt.

    Parameters
    ----------
    per_minute
        Requests or tokens.
    now
        Seconds, from any origin.
    """

    def __init__(self, per_minute: float, now: float) -> None:
        self._content = max(1.0, per_minute / 60)
        self._flow = max(per_minute - self._content, per_minute / 2) / 60
        self._level = self._content
        self._at = now

    def reserve(self, cost: float, now: float) -> float:
        """Take `cost` out and return the seconds to wait before it may be spent."""
        self._fill(now)
        wait = max(0.0, (min(cost, self._content) - self._level) / self._flow)
        self._level -= cost
        return wait

    def give_back(self, amount: float, now: float) -> None:
        """Put back what was reserved too much; a negative amount takes more."""
        self._fill(now)
        self._level = min(self._content, self._level + amount)

    def _fill(self, now: float) -> None:
        self._level = min(self._content, self._level + (now - self._at) * self._flow)
        self._at = now
