"""Calls are scored as documented: half for the name, half for the arguments of the right one."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_players import plain_calls

from xpe.evaluators.call_scores import agree, score_calls
from xpe.text.calls import Call, calls_in


def f(**arguments: Any) -> Call:
    return Call("f", arguments)


def g(**arguments: Any) -> Call:
    return Call("g", arguments)


@pytest.mark.parametrize(
    ("made", "wanted", "accuracy", "hit"),
    [
        ([f(x=1, y=2)], [f(x=1, y=2)], 1.0, True),
        ([f(x=1, y=3)], [f(x=1, y=2)], 0.75, True),
        ([f(x=1)], [f(x=1, y=2)], 0.75, True),
        ([f(x=1, y=2, z=3, w=4)], [f(x=1, y=2)], 0.75, True),
        ([f(x=2)], [f(x=1)], 0.5, True),
        ([g(x=1)], [f(x=1)], 0.0, False),
        ([f()], [f()], 1.0, True),
        ([f(x=1)], [f()], 0.5, True),
        ([Call("f", None)], [f()], 0.5, True),
        ([], [f()], 0.0, False),
        ([f()], [], 0.0, False),
        ([], [], 1.0, True),
        ([g(), f(x=1)], [f(x=1), g()], 1.0, True),
        ([f(x=1)], [f(x=1), g()], 0.5, False),
        ([f(x=1), g(), g()], [f(x=1), g()], 2 / 3, False),
        ([f(x=1), f(x=2)], [f(x=2), f(x=1)], 1.0, True),
        ([f(x=1), f(x=1)], [f(x=1), f(x=2)], 0.75, True),
    ],
)
def test_shares_by_hand(made: list[Call], wanted: list[Call], accuracy: float, hit: bool) -> None:
    """Names weigh half, argument names are counted in union, the best assignment counts."""
    assert score_calls(made, wanted, "share") == (pytest.approx(accuracy), hit)


def test_the_best_assignment_is_not_the_first_that_fits() -> None:
    """Taken greedily, f(x=1, y=1) would go to the first wanted call and cost a quarter."""
    made = [f(x=1, y=1), f(x=1, y=2)]
    wanted = [f(x=1, y=2), f(x=1, y=1)]

    assert score_calls(made, wanted, "share").accuracy == 1.0


def test_exact_is_all_or_nothing() -> None:
    """One wrong argument costs all of the arguments' half."""
    assert score_calls([f(x=1, y=2)], [f(x=1, y=2)], "exact").accuracy == 1.0
    assert score_calls([f(x=1, y=3)], [f(x=1, y=2)], "exact").accuracy == 0.5


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        ("Ａｂｃ ", "Abc"),
        ("２０２５年", " 2025年"),
        ([1, "x"], [1.0, "x "]),
        ({"a": {"b": [1]}}, {"a": {"b": [1.0]}}),
        (None, None),
        (True, True),
    ],
)
def test_values_that_agree(one: Any, other: Any) -> None:
    """Numbers as numbers, strings after NFKC and trimming, at any depth."""
    assert agree(one, other)
    assert agree(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (1, True),
        (0, False),
        (0, None),
        ("a", "A"),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, [1]),
        ("", None),
    ],
)
def test_values_that_differ(one: Any, other: Any) -> None:
    """Types, case, order and length matter."""
    assert not agree(one, other)
    assert not agree(other, one)


@pytest.mark.parametrize(
    ("written", "wanted", "same"),
    [
        ("3", 3, True),
        ("3", "3", True),
        ("3", 4, False),
        ("3", "3.0", False),
        ("True", True, True),
        ('[1, "x"]', [1.0, "x "], True),
        ("北京 ", "北京", True),
        ("null", None, True),
    ],
)
def test_a_value_without_type_agrees_in_either_reading(
    written: str, wanted: Any, same: bool
) -> None:
    """XML writes 3 and "3" alike; JSON does not."""
    made = calls_in(f"<function=f><parameter=x>{written}</parameter></function>").calls

    for matching, right in (("share", wanted), ("exact", wanted), ("bfcl", [wanted])):
        assert score_calls(made, [f(x=right)], matching).accuracy == (1.0 if same else 0.5)


CALLS = st.lists(
    st.builds(
        Call,
        st.sampled_from(["f", "g"]),
        st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), max_size=3),
    ),
    max_size=4,
)


@given(CALLS, CALLS)
def test_the_assignment_is_the_best_of_all(made: list[Call], wanted: list[Call]) -> None:
    """Beside a search through all assignments."""
    if not made and not wanted:
        return
    size = max(len(made), len(wanted))
    empty = Call("", {})
    right = [*wanted, *[empty] * (size - len(wanted))]
    left = [*made, *[empty] * (size - len(made))]

    def one(a: Call, b: Call) -> float:
        if a is empty or b is empty or a.name != b.name:
            return 0.0
        names = {*a.arguments, *b.arguments}
        same = sum(a.arguments.get(k, "no") == b.arguments.get(k, "none") for k in names)
        return 0.5 + 0.5 * (same / len(names) if names else 1)

    best = max(sum(map(one, order, right)) / size for order in itertools.permutations(left))
    assert score_calls(made, wanted, "share").accuracy == pytest.approx(best)


# --- allowed values, as the Berkeley Function-Calling Leaderboard has them -------------------


def bfcl(made: dict[str, Any], allowed: dict[str, Any]) -> bool:
    return score_calls([f(**made)], [f(**allowed)], "bfcl").accuracy == 1.0


@pytest.mark.parametrize(
    ("made", "allowed"),
    [
        ({"x": "new-york, N.Y."}, {"x": ["New York, NY"]}),
        ({"x": "it's"}, {"x": ['it"s']}),
        ({"x": 5}, {"x": [5.0]}),
        ({"x": 2}, {"x": [1, 2]}),
        ({}, {"x": ["km", ""]}),
        ({"x": [1, 2]}, {"x": [[1, 2], [2, 1]]}),
        ({"x": {"city": "Paris"}}, {"x": [{"city": ["paris"], "unit": ["C", ""]}]}),
        ({"x": [{"a": 1}, {"a": 2}]}, {"x": [[{"a": [1]}, {"a": [2, 3]}]]}),
        ({"x": True}, {"x": [True]}),
    ],
)
def test_what_bfcl_lets_pass(made: dict[str, Any], allowed: dict[str, Any]) -> None:
    """Case and punctuation, whole numbers for floats, optional arguments, nested choices."""
    assert bfcl(made, allowed)


@pytest.mark.parametrize(
    ("made", "allowed"),
    [
        ({"x": 1, "y": 2}, {"x": [1]}),
        ({"x": "5"}, {"x": [5]}),
        ({"x": 5}, {"x": ["5"]}),
        ({"x": 5.0}, {"x": [5]}),
        ({"x": True}, {"x": [1]}),
        ({"x": 1}, {"x": [True]}),
        ({}, {"x": [1, 2]}),
        ({"x": [2, 1]}, {"x": [[1, 2]]}),
        ({"x": {"city": "Paris", "extra": 1}}, {"x": [{"city": ["paris"]}]}),
        ({"x": "London"}, {"x": ["Paris", ""]}),
    ],
)
def test_what_bfcl_does_not_let_pass(made: dict[str, Any], allowed: dict[str, Any]) -> None:
    """No extra argument, no string for a number nor the reverse, no other order in lists."""
    assert not bfcl(made, allowed)


def test_bfcl_takes_parallel_calls_in_any_order() -> None:
    """Each is matched with the calls that are wanted."""
    wanted = [f(x=[1]), g(y=["a", ""]), f(x=[2])]

    assert score_calls([f(x=2), f(x=1), g()], wanted, "bfcl") == (1.0, True)
    assert score_calls([f(x=2), f(x=2), g()], wanted, "bfcl").accuracy == pytest.approx(2.5 / 3)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["BFCL_v4_simple_python", "BFCL_v4_parallel_multiple"])
def test_bfcl_golds_score_full_marks(shared_data: Path, name: str) -> None:
    """The first allowed value of each argument, one whose first is "" left out, in any order."""
    path = shared_data / "data" / "bfcl_v4" / "possible_answer" / f"{name}.json"
    answers = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(answers) == {"BFCL_v4_simple_python": 400, "BFCL_v4_parallel_multiple": 200}[name]
    for answer in answers:
        wanted = [Call(*item) for one in answer["ground_truth"] for item in one.items()]
        made = [Call(**c) for c in plain_calls([c._asdict() for c in reversed(wanted)])]
        assert score_calls(made, wanted, "bfcl") == (1.0, True), answer["id"]
        if any(c.arguments for c in made):
            spoilt = [Call(c.name, {**(c.arguments or {}), "made_up": 1}) for c in made]
            assert score_calls(spoilt, wanted, "bfcl").accuracy == 0.5, answer["id"]
