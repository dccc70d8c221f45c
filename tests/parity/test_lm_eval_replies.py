"""The same tasks by lm-evaluation-harness and by xpe: requests, metrics, errors, groups, keys."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from harness_runs import (
    NAMES,
    assert_same_requests,
    by_harness,
    harness_rows,
    replayed,
)

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

ALIKE = (
    "acc acc_norm acc_bytes acc_mutual_info exact_match f1 mcc brier_score perplexity "
    "word_perplexity byte_perplexity bits_per_byte hit"
)
CHAT = {"apply_chat_template": True, "system_instruction": "Be brief."}
MODES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "plain": ({}, ()),
    "chat": (
        {**CHAT, "fewshot_as_multiturn": False},
        (
            "apply_chat_template=true",
            "system_instruction='Be brief.'",
            "fewshot_as_multiturn=false",
        ),
    ),
    "chat of turns": (
        {**CHAT, "fewshot_as_multiturn": True},
        ("apply_chat_template=true", "system_instruction='Be brief.'"),
    ),
}


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    """What the harness makes of all tasks, asked of a player whose replies hit now and then."""
    return by_harness(NAMES, None)


def render(prompt: Any) -> str:
    """Render messages as the player does."""
    if isinstance(prompt, str):
        return prompt
    return json.dumps([dict(one) for one in prompt]) + str(prompt[-1]["role"] != "assistant")


@pytest.mark.parametrize("mode", MODES)
def test_requests(mode: str, theirs: Mapping[str, Any]) -> None:
    """Every request of every document is equal, byte for byte, stop strings included."""
    settings, words = MODES[mode]
    # A whole text has no chat; the harness asks for it all the same.
    names = [name for name in NAMES if not settings or name != "parity_rolling"]
    found = by_harness(names, None, iters=0, **settings) if settings else theirs
    assert_same_requests(names, found, render, *words)


def test_metrics_and_errors(theirs: Mapping[str, Any]) -> None:
    """From the harness's own responses: the same keys, values and errors within 1e-9."""
    tasks, groups = replayed(NAMES, theirs, "compat=lm_eval")
    checked = 0
    for name, result in tasks.items():
        rows = harness_rows(result.estimates)
        expected = dict(theirs["results"][name])
        assert result.n_effective >= expected.pop("sample_len")
        expected = {k: v for k, v in expected.items() if k not in ("alias", "name")}
        assert sorted(rows) == sorted(expected), name
        for key, value in expected.items():
            checked += 1
            assert _same(rows[key], value), f"{name} {key}: {rows[key]} and {value}"
    assert checked > 90
    for name, estimates in groups.items():
        expected = theirs["groups"][name]
        for key, value in harness_rows(estimates).items():
            assert _same(value, expected[key]), f"{name} {key}: {value} and {expected[key]}"
    assert groups.keys() == theirs["groups"].keys()


def test_unweighted_groups_keep_the_pooled_error() -> None:
    """The error of an unweighted group is the pooled one, as documented of 0.4; later releases
    corrected it to the root of the sum of squares over k.
    """
    names = ("parity_unweighted",)
    found = by_harness(names, None, iters=2)
    _, groups = replayed(names, found, "compat=lm_eval")
    row, expected = harness_rows(groups["parity_unweighted"]), found["groups"]["parity_unweighted"]
    assert _same(row["acc,none"], expected["acc,none"])
    leaves = [found["results"][task] for task in ("parity_mc_letters", "parity_mc_binary")]
    n = [leaf["sample_len"] for leaf in leaves]
    squares = [leaf["acc_stderr,none"] ** 2 for leaf in leaves]
    pooled = math.sqrt(sum((k - 1) * k * s for k, s in zip(n, squares, strict=True))
                       / (sum(n) - len(n)) / sum(n))  # fmt: skip
    assert row["acc_stderr,none"] == pytest.approx(pooled, abs=1e-9)
    corrected = math.sqrt(sum(squares)) / len(n)
    assert any(_same(expected["acc_stderr,none"], known) for known in (pooled, corrected))


def test_default_mode_agrees_where_it_says_so(theirs: Mapping[str, Any]) -> None:
    """Without compat, values of the metrics that both define alike are the same."""
    tasks, _ = replayed(NAMES, theirs)
    alike = set(ALIKE.split())
    checked = 0
    for name, result in tasks.items():
        for key, value in harness_rows(result.estimates).items():
            if key.split(",")[0] in alike:
                checked += 1
                assert _same(value, theirs["results"][name][key]), f"{name} {key}"
    assert checked >= 35


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, str) or isinstance(theirs, str):
        return bool(ours == theirs)
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9) or (
        math.isnan(ours) and math.isnan(theirs)
    )
