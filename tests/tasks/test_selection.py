from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.errors import ConfigError, DataError
from xpe.tasks.selection import chosen, sample_size


@pytest.mark.shared
def test_limits_as_the_harness(harness_cases: Callable[[str], list[dict[str, Any]]]) -> None:
    """In compat mode counts are those of the harness, but for 0, which it refuses later."""
    for case in harness_cases("sample_size"):
        n_docs, limit = case["args"]
        if limit == 0:
            with pytest.raises(ConfigError, match="limit=0"):
                sample_size(n_docs, limit, harness=True)
        else:
            assert sample_size(n_docs, limit, harness=True) == case["expect"]


@pytest.mark.parametrize("limit", [0, -1, 1.0, 0.0, 2.5])
def test_ambiguous_limits_are_errors(limit: float) -> None:
    """1.0 could be one document or all of them; 0 is nothing."""
    with pytest.raises(ConfigError, match="limit="):
        sample_size(10, limit)


@given(st.integers(1, 5000), st.integers(1, 99))
def test_a_share_is_rounded_up(n_docs: int, percent: int) -> None:
    """7 % of 100 are 7, although 100 * 0.07 is more than 7 in floating point."""
    assert sample_size(n_docs, percent / 100) == -(-n_docs * percent // 100)


def test_ids_come_in_their_order() -> None:
    """The order in which ids are written does not matter."""
    assert list(chosen(10, None, (5, 2))) == [2, 5]
    assert list(chosen(3, 10, None)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("limit", "ids", "message"),
    [
        (3, (1,), "exclude each other"),
        (None, (), "one id or more"),
        (None, (1, 1), "each once"),
        (None, (10,), "no document 10; the ids are 0 to 9"),
        (None, (-1,), "no document -1"),
    ],
)
def test_wrong_ids(limit: int | None, ids: tuple[int, ...], message: str) -> None:
    """An id that is not there, or a list that says nothing, stops the run."""
    with pytest.raises((ConfigError, DataError), match=message):
        chosen(10, limit, ids)
