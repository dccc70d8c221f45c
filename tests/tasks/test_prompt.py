from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.tasks.prompt import Turn, join, messages, needs_delimiter, plain, question_turns

Cases = Callable[[str], list[dict[str, Any]]]


@pytest.mark.shared
def test_join_as_the_harness(harness_cases: Cases) -> None:
    """Delimiters come only where two texts would touch."""
    for case in harness_cases("maybe_delimit"):
        assert join(*case["args"]) == case["expect"], case


@pytest.mark.shared
def test_needs_delimiter_as_the_harness(harness_cases: Cases) -> None:
    """White space of any script counts."""
    for case in harness_cases("requires_delimiter"):
        assert needs_delimiter(*case["args"]) is case["expect"], case


@pytest.mark.shared
def test_turns_as_the_harness(harness_cases: Cases) -> None:
    """Question, delimiter, prefix and answer fall into turns as the harness has them."""
    for case in harness_cases("build_qa_turn"):
        given = case["kwargs"]
        arguments = {
            "question": given["q"],
            "answer": given.get("a"),
            "choices": given.get("c"),
            "gen_prefix": given.get("gen_prefix"),
            "target_delimiter": given.get("tgt_delim", " "),
            "fewshot_delimiter": given.get("few_delim", "\n\n"),
        }
        if "raises" in case:
            with pytest.raises(IndexError):
                question_turns(**arguments)
        else:
            assert [list(turn) for turn in question_turns(**arguments)] == case["expect"], case


@pytest.mark.shared
def test_one_user_message_as_the_harness(harness_cases: Cases) -> None:
    """Without multiturn all but system and a begun answer is one message."""
    for case in harness_cases("multiturn_to_singleturn"):
        turns = [Turn(*turn) for turn in case["args"][0]]
        assert list(messages(turns, multiturn=False)) == case["expect"], case


def test_zero_is_an_answer_and_nothing_is_none() -> None:
    """A gold of 0 is written; an empty one leaves the question open."""
    assert plain(question_turns("Q", 0)) == "Q 0\n\n"
    assert plain(question_turns("Q", "")) == "Q"
    assert plain(question_turns("Q", [1, 0], ["x", "y"])) == "Q y\n\n"


@given(st.text(), st.text(min_size=1), st.text())
def test_multiturn_keeps_every_word(question: str, answer: str, last: str) -> None:
    """The contents of messages are those of the turns, in order, without delimiters."""
    turns = [*question_turns(question, answer), *question_turns(last)]
    said = [(m["role"], m["content"]) for m in messages(turns)]
    assert said == [("user", question), ("assistant", answer), ("user", last)]
