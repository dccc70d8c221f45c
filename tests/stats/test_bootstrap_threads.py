"""Threads made for each call."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.errors import ConfigError
from xpe.stats._threads import Warmer, in_threads


@given(st.integers(0, 100), st.integers(1, 9))
def test_slices_cover_the_range_once(n, threads):
    """Every place is worked on by exactly one slice."""
    done = [0] * n

    def work(start: int, stop: int) -> None:
        for place in range(start, stop):
            done[place] += 1

    in_threads(work, n, threads)

    assert done == [1] * n


def test_an_error_in_any_thread_is_raised_and_ends_the_work():
    """The caller sees the exception; no thread outlives the call."""
    before = threading.active_count()

    def work(start: int, stop: int) -> None:
        if start <= 57 < stop:
            raise ArithmeticError(f"in {start}..{stop}")

    with pytest.raises(ArithmeticError, match="in "):
        in_threads(work, 100, 4)
    assert threading.active_count() == before


def test_no_threads_is_refused():
    """Zero threads is a mistake in the config, not a hint."""
    with pytest.raises(ConfigError, match="got 0"):
        in_threads(lambda _start, _stop: None, 10, 0)


def test_warming_runs_each_step_once():
    """Asked twice, from two threads, the steps run once and in order."""
    steps: list[int] = []
    warmer = Warmer([lambda place=place: steps.append(place) for place in range(5)])
    starters = [threading.Thread(target=warmer.start) for _ in range(2)]

    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    warmer.start().join()

    assert steps == [0, 1, 2, 3, 4]
