"""The adaptive window and the buckets of requests and tokens a minute."""

from __future__ import annotations

import asyncio
import bisect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.models._api_limits import Bucket, Window

GAPS = st.lists(st.floats(0, 90), min_size=1, max_size=80)


@given(st.integers(1, 300), GAPS)
def test_no_minute_sees_more_requests_than_the_limit(limit, gaps):
    """Count what may go in every window of 60 s, for any times of arrival."""
    bucket, now, spent = Bucket(limit, 0.0), 0.0, []
    for gap in gaps:
        now += gap / limit
        spent.append(now + bucket.reserve(1, now))
    spent.sort()
    for i, at in enumerate(spent):
        assert bisect.bisect_left(spent, at + 60 - 1e-6) - i <= limit


def test_a_busy_bucket_lets_through_almost_the_limit():
    """600 a minute: after ten minutes of pressure at least 95 % of 6,000 went."""
    bucket = Bucket(600, 0.0)
    waits = [bucket.reserve(1, 0.0) for _ in range(5700)]
    assert waits[-1] <= 600


def test_a_cost_above_the_content_waits_for_a_full_bucket_and_leaves_a_debt():
    """6,000 tokens a minute hold 100; 1,000 go at once when full, the next waits for them."""
    bucket = Bucket(6000, 0.0)
    assert bucket.reserve(1000, 0.0) == 0
    flow = (6000 - 100) / 60
    assert bucket.reserve(50, 0.0) == pytest.approx(950 / flow)


def test_what_was_reserved_too_much_comes_back():
    """A reply shorter than estimated shortens the next wait."""
    bucket = Bucket(6000, 0.0)
    bucket.reserve(1000, 0.0)
    bucket.give_back(900, 0.0)
    assert bucket.reserve(10, 0.0) == pytest.approx(10 / (5900 / 60))


class Clock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


async def _in_window(window, n, *, limited):
    epochs = [await window.enter() for _ in range(n)]
    for epoch in epochs:
        window.leave(epoch, limited=limited, answered=not limited)


def test_429s_of_one_window_take_a_quarter_off_once_and_answers_give_it_back():
    """128 → 96 → 72; a full window of answers gives about a sixteenth of the most."""
    window = Window(128, clock=Clock())
    asyncio.run(_in_window(window, 128, limited=True))
    assert window.limit == 96
    asyncio.run(_in_window(window, 96, limited=True))
    assert window.limit == 72
    asyncio.run(_in_window(window, 72, limited=False))
    assert window.limit == pytest.approx(72 + 8, abs=0.5)


def test_two_decreases_are_a_pause_apart():
    """Refusals that come back at once do not close the window at once."""
    clock = Clock()
    window = Window(64, pause=1.0, clock=clock)
    clock.now = 5.0
    for _ in range(20):
        asyncio.run(_in_window(window, 1, limited=True))
    assert window.limit == 48
    clock.now = 6.0
    asyncio.run(_in_window(window, 1, limited=True))
    assert window.limit == 36


def test_time_gives_back_a_thirty_second_each_second():
    """64 → 48; after four seconds another error finds 48 + 4 · 64 / 32."""
    clock = Clock()
    window = Window(64, clock=clock)
    asyncio.run(_in_window(window, 1, limited=True))
    clock.now = 4.0

    async def fail():
        window.leave(await window.enter(), limited=False, answered=False)

    asyncio.run(fail())
    assert window.limit == 56


def test_time_alone_lets_waiting_requests_in():
    """With every place held by a silent request the next one goes after about a second."""

    async def scene():
        window = Window(32)
        window.limit = 1.0
        await window.enter()
        await asyncio.wait_for(window.enter(), 5)

    asyncio.run(scene())


def test_the_window_stays_between_one_and_its_most():
    """Any number of 429s leaves 1; any number of answers leaves the most."""
    window = Window(8, clock=Clock())
    for _ in range(50):
        asyncio.run(_in_window(window, 1, limited=True))
    assert window.limit == 1
    for _ in range(200):
        asyncio.run(_in_window(window, 1, limited=False))
    assert window.limit == 8


def test_other_errors_leave_the_window_alone():
    """A 5xx says nothing about our rate."""
    window = Window(8, clock=Clock())

    async def fail():
        window.leave(await window.enter(), limited=False, answered=False)

    asyncio.run(fail())
    assert window.limit == 8


def test_who_gives_up_waiting_leaves_no_hole():
    """Cancelled waiters give their place to the next."""

    async def scene():
        window = Window(1)
        epoch = await window.enter()
        waiting = [asyncio.ensure_future(window.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        window.leave(epoch, limited=False, answered=True)
        waiting[1].cancel()
        await asyncio.sleep(0)
        return await asyncio.wait_for(waiting[2], 1)

    assert asyncio.run(scene()) == 0
