"""Windows, borders and truncation, against lm-evaluation-harness's own values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.models.windows import (
    Row,
    disjoint,
    encode_pair,
    fitted,
    from_nothing,
    rolling_rows,
    rolling_windows,
    split_pair,
)


def _cases(shared: Path, function: str) -> list[dict[str, Any]]:
    text = (shared / "conformance" / "lm_eval_cases.json").read_text(encoding="utf-8")
    return [case for case in json.loads(text) if case["fn"].startswith(function)]


@pytest.mark.shared
def test_windows_of_the_harness(shared_data: Path) -> None:
    """Every recorded case of rolling windows is met, token by token."""
    cases = _cases(shared_data, "rolling_windows(")
    assert cases
    for case in cases:
        n, length, context = case["args"]
        got = [list(pair) for pair in rolling_windows(range(n), -100, length, context)]
        assert got == case["expect"]


@pytest.mark.shared
def test_disjoint_windows_of_the_harness(shared_data: Path) -> None:
    """Every recorded case of disjoint windows is met, token by token."""
    cases = _cases(shared_data, "rolling_windows_disjoint")
    assert cases
    for case in cases:
        n, length, context = case["args"]
        windows = rolling_windows(range(n), -100, length, context)
        assert [list(disjoint(window)) for window in windows] == case["expect"]


@given(st.integers(0, 60), st.integers(1, 12), st.data())
def test_every_token_is_predicted_once(n: int, length: int, data: st.DataObject) -> None:
    """Whatever the sizes: predictions join to the text, and no window exceeds the model."""
    context = data.draw(st.integers(1, length))
    windows = list(rolling_windows(range(n), -1, length, context))
    assert [token for _, predicted in windows for token in predicted] == list(range(n))
    for window in windows:
        seen, predicted = disjoint(window)
        assert seen
        assert len(seen) + len(predicted) - 1 <= length


def test_rows_of_a_text() -> None:
    """Windows of 3 over five tokens, worked by hand."""
    assert rolling_rows([1, 2, 3, 4, 5], 0, 3) == [
        Row((0, 1, 2, 3), 1),
        Row((2, 3, 4, 5), 2),
    ]
    assert rolling_rows([], 0, 3) == []


@pytest.mark.parametrize(
    ("context", "continuation", "length", "row"),
    [
        ([1, 2], [3], 2, Row((1, 2, 3), 2)),
        ([1, 2, 3], [4], 2, Row((2, 3, 4), 2, truncated=True)),
        ([1, 2, 3], [4, 5], 2, Row((3, 4, 5), 1, truncated=True)),
        ([1], [2, 3, 4], 2, None),
        ([1, 2], [], 2, Row((1, 2), 2)),
    ],
)
def test_left_truncation(
    context: list[int], continuation: list[int], length: int, row: Row | None
) -> None:
    """L + 1 tokens are kept, of which the model reads L; a continuation over L does not fit."""
    assert fitted(context, continuation, length) == row


def _letters(text: str) -> list[int]:
    """A tokenizer that merges `ab` into one token, and puts BOS (0) in front."""
    return [0, *_bare(text)]


def _bare(text: str) -> list[int]:
    return [999 if piece == "\x00" else ord(piece) for piece in text.replace("ab", "\x00")]


def test_border() -> None:
    """White space goes to the continuation; the context's tokens decide the cut."""
    assert encode_pair("x ", "y", _letters, _bare, 7) == ([0, ord("x")], [ord(" "), ord("y")])
    assert encode_pair("x　\n", "y", _letters, _bare, 7)[1] == [0x3000, 10, ord("y")]
    assert encode_pair("xa", "bc", _letters, _bare, 7) == ([0, ord("x"), ord("a")], [ord("c")])


def test_a_merge_that_leaves_nothing() -> None:
    """Where the border's merge swallows the continuation, the cut goes back."""
    assert encode_pair("xa", "b", _letters, _bare, 7) == ([0, ord("x")], [999])
    assert split_pair([0, 1], [0, 1]) == ([0, 1], [])


def test_an_empty_context() -> None:
    """The prefix token stands for nothing, and is not doubled."""
    assert encode_pair("", "y", _letters, _bare, 7) == ([7], [ord("y")])
    assert encode_pair("  ", "y", _letters, _bare, 7) == ([7], [32, 32, ord("y")])
    assert from_nothing([7, 8], 7) == ([7], [8])
    assert from_nothing([], 7) == ([7], [])
