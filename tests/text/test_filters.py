"""Filters of replies: the harness's own cases, and what must not fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from xpe.errors import ConfigError, UnknownNameError
from xpe.text.filters import FILTERS, Filtered, filtered, get_filter

RAISES_THERE = {"IndexError": ["[invalid]"], "AssertionError": ["a", "b", "c"]}
"""What xpe gives where the harness stops: the fallback, or as many replies as there are."""


@pytest.mark.shared
def test_conformance(shared_data: Path) -> None:
    """Every filter case gives what lm-evaluation-harness gave; where it stopped, a fallback."""
    text = (shared_data / "conformance" / "lm_eval_cases.json").read_text("utf-8")
    cases = [case for case in json.loads(text) if case["fn"].startswith("filter(")]
    for case in cases:
        name, kwargs, resps, docs = case["args"]
        more = {"longest_first": False} if name == "multi_choice_regex" else {}
        step = get_filter(name, **kwargs, **more)
        found = [step(replies, doc) for replies, doc in zip(resps, docs, strict=True)]
        if "raises" in case:
            assert [one.value for one in found] == [RAISES_THERE[case["raises"]]]
            assert found[0].missed == 1
        else:
            assert [one.value for one in found] == case["expect"]
    assert len(cases) >= 13


def test_every_filter_takes_whatever_a_model_wrote() -> None:
    """Empty, odd and long texts, and things that are no text, make no filter fail."""
    settings: dict[str, dict[str, Any]] = {
        "take_first_k": {"k": 2},
        "custom": {"filter_fn": lambda resps, docs: resps},
    }
    odd = ["", "\x00", "((((", "答案：Ｂ", "#### 1,2", "$$" * 50, "('a', 'B')", None, 3, ["x"]]
    for name in FILTERS:
        step = get_filter(name, **settings.get(name, {}))
        for text in odd:
            assert isinstance(step([text], {"choices": ["a", "(", ""]}), Filtered)


def test_fallbacks_are_counted() -> None:
    """A pipeline counts the replies that it could not read."""
    pipeline = [get_filter("regex", regex_pattern=r"(\d+)"), get_filter("take_first")]
    assert filtered(pipeline, ["none"], {}) == Filtered("[invalid]", 1)
    assert filtered(pipeline, ["12 and 3"], {}) == Filtered("12", 0)


def test_group_out_of_range_falls_back() -> None:
    """A third match that is not there is a fallback, not the end of the run."""
    step = get_filter("regex", regex_pattern=r"\d", group_select=2)
    assert step(["1 2"], {}) == Filtered(["[invalid]"], 1)


def test_longer_choice_first() -> None:
    """A choice that begins another does not hide it, unless the harness's order is asked for."""
    doc = {"choices": ["Guilty", "Guilty of Romance"]}
    settings = {"regex_pattern": "()()", "ignore_case": True}
    text = ["guilty of romance"]
    assert get_filter("multi_choice_regex", **settings)(text, doc).value == ["(B)"]
    strict = get_filter("multi_choice_regex", longest_first=False, **settings)
    assert strict(text, doc).value == ["(A)"]


def test_a_filter_after_a_single_value() -> None:
    """The value is filtered as a whole; in compat mode letter by letter, as in the harness."""
    pipeline = [get_filter("take_first"), get_filter("uppercase")]
    assert filtered(pipeline, ["ab", "c"], {}).value == "AB"
    assert filtered(pipeline, ["ab", "c"], {}, letters=True).value == ["A", "B"]


def test_majority_takes_the_first_of_equals() -> None:
    """Votes that tie go to the one that came first; unhashable replies can be voted on."""
    step = get_filter("majority_vote")
    assert step(["b", "a", "a", "b"], {}).value == ["b"]
    assert step([["x"], ["y"], ["y"]], {}).value == [["y"]]


def test_map_counts_what_it_does_not_know() -> None:
    """Unknown and unhashable replies become the default and are counted."""
    step = get_filter("map", mapping_dict={"a": 1}, default_value=0)
    assert step(["a", "b", ["a"]], {}) == Filtered([1, 0, 0], 2)


def test_unknown_filter_and_setting() -> None:
    """A misspelt filter names the nearest; a setting that it does not take is an error."""
    with pytest.raises(UnknownNameError, match="'regex'"):
        get_filter("regexp")
    with pytest.raises(ConfigError, match="regex_patern"):
        get_filter("regex", regex_patern="x")
    with pytest.raises(ConfigError, match="not a regular expression"):
        get_filter("regex", regex_pattern="(")
