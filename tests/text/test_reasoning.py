"""Reasoning is taken out of an answer; what is unfinished is no answer."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.text.reasoning import MARKERS, opened_by, split_reasoning


@pytest.mark.parametrize(
    ("text", "answer", "reasoning", "finished"),
    [
        ("42", "42", "", True),
        ("<think>six by seven</think>\n\n42", "42", "six by seven", True),
        ("six by seven</think>42", "42", "six by seven", True),
        ("<think>six by", "", "six by", False),
        ("<think></think>42", "42", "", True),
        ("", "", "", True),
        ("<think>a</think>b<think>c</think>d", "d", "a</think>b<think>c", True),
        ("<think>a</think>b<think>c", "", "a</think>b<think>c", False),
        ("a<think>b</think>  c ", "c ", "a<think>b", True),
    ],
)
def test_one_pair(text: str, answer: str, reasoning: str, finished: bool) -> None:
    """Everything up to the last end marker goes; an open block leaves nothing."""
    assert split_reasoning(text) == (answer, reasoning, finished)


@pytest.mark.parametrize(("start", "end"), MARKERS)
def test_every_known_pair(start: str, end: str) -> None:
    """Each published pair is found, closed, headless and unclosed."""
    assert split_reasoning(f"{start}因为{end}甲", markers=MARKERS) == ("甲", "因为", True)
    assert split_reasoning(f"因为{end}甲", markers=MARKERS) == ("甲", "因为", True)
    assert split_reasoning(f"{start}因为", markers=MARKERS) == ("", "因为", False)


def test_no_markers_keeps_the_text() -> None:
    """An empty tuple of pairs turns the split off."""
    assert split_reasoning("<think>a</think>b", markers=()).answer == "<think>a</think>b"


def test_a_template_that_opens_the_block() -> None:
    """A prompt that ends with a start marker says so, whatever blank space follows."""
    assert opened_by("<|im_start|>assistant\n<think>\n") == "<think>"
    assert opened_by("<think>x</think>\n") == ""


@given(st.text(alphabet="<>/think ab\n"), st.text(alphabet="<>/think ab\n"))
def test_a_closed_block_leaves_what_follows(before: str, after: str) -> None:
    """Whatever stands before the last end marker never reaches the answer."""
    result = split_reasoning(before + "</think>" + after)
    last = (before + "</think>" + after).rsplit("</think>", 1)[1]
    assert result.answer == ("" if "<think>" in last else last.lstrip())


def test_linear_time() -> None:
    """A megabyte of half markers takes no more than a moment."""
    began = time.perf_counter()
    split_reasoning("<thin" * 200_000 + "</thin" * 200_000, markers=MARKERS)
    assert time.perf_counter() - began < 1
