"""Rows of groups: means of means and the errors that fit them."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.errors import DataError
from xpe.stats.pooling import pooled


def test_micro_and_macro_means():
    """Three tasks of 100, 150 and 250 (S16), and of 20 and 1,000 (S17)."""
    scores = np.array([0.8, 0.6, 0.7, 0.5, 0.9])
    sizes = np.array([100, 150, 250, 20, 1000])

    found = pooled([3, 5], sizes, scores, scores * (1 - scores) / (sizes - 1))

    assert found.n_G.tolist() == [500, 1020]
    assert found.micro.value_G[0] == pytest.approx(0.69, abs=1e-12)
    assert found.micro.stderr_G[0] == pytest.approx(0.0205050, abs=5e-8)
    assert found.pooled_stderr_G[0] == pytest.approx(0.0205067, abs=5e-8)
    assert found.total_stderr_G[0] == pytest.approx(0.0207040, abs=5e-8)
    assert found.macro.value_G == pytest.approx([0.70, 0.70], abs=1e-12)
    assert found.macro.stderr_G == pytest.approx([0.0212662, 0.0575499], abs=5e-8)
    # What others report for the macro mean: the size-weighted error.
    assert found.micro.stderr_G[1] == pytest.approx(0.00957, abs=5e-6)


def test_total_variance_is_that_of_the_concatenation():
    """S18: within and between tasks add up to the variance of all samples together."""
    rng = np.random.default_rng(5)
    parts = [rng.normal(m, s, n) for m, s, n in ((0, 1, 7), (2, 3, 30), (-1, 0.5, 11))]
    whole = np.concatenate(parts)

    found = pooled(
        [3],
        [len(p) for p in parts],
        [p.mean() for p in parts],
        [p.var(ddof=1) / len(p) for p in parts],
    )

    expected = whole.std(ddof=1) / math.sqrt(len(whole))
    assert found.total_stderr_G[0] == pytest.approx(expected, rel=1e-12)


def test_degrees_of_freedom_are_those_of_welch():
    """The macro mean of two tasks is half the difference of the first and minus the second."""
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(6)
    a, b = rng.normal(0, 1, 9), rng.normal(0, 4, 31)

    found = pooled([2], [9, 31], [a.mean(), b.mean()], [a.var(ddof=1) / 9, b.var(ddof=1) / 31])

    assert found.macro.df_G[0] == pytest.approx(ttest_ind(a, -b, equal_var=False).df, rel=1e-12)
    assert found.macro.size_G[0] == pytest.approx(4 / (1 / 9 + 1 / 31), rel=1e-12)
    assert found.micro.size_G[0] == 40


def test_unknown_errors_and_empty_groups():
    """A leaf without an error leaves the means and no error; a group without leaves, nothing."""
    found = pooled([2, 2, 3], [5, 5, 5], [0.5, 0.7, 0.2], [math.nan, 0.01, 0.04])

    np.testing.assert_array_equal(found.micro.value_G, [0.6, math.nan, 0.2])
    for column_G in (found.micro.stderr_G, found.macro.stderr_G, found.pooled_stderr_G):
        np.testing.assert_allclose(column_G, [math.nan, math.nan, 0.2], rtol=1e-15)


# --- lm-evaluation-harness -------------------------------------------------------------------

LEAVES = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(1, 10**5)), min_size=2, max_size=30
)


def harness_row(leaves):
    """What its `aggregate_subtask_metrics` and `pooled_sample_stderr` compute, as it does."""
    scores, stderrs, sizes = zip(*leaves, strict=True)
    total = sum(sizes)
    within = sum((n - 1) * se**2 * n for n, se in zip(sizes, stderrs, strict=True))
    return (
        sum(x * n for x, n in zip(scores, sizes, strict=True)) / total,
        sum(x * 1 for x in scores) / len(scores),
        math.sqrt(within / (total - len(sizes)) / total) if total > len(sizes) else math.nan,
    )


@given(LEAVES)
def test_sums_are_those_of_this_python(leaves):
    """Every digit of the harness, whichever way the running Python adds."""
    scores, stderrs, sizes = zip(*leaves, strict=True)

    found = pooled(
        [len(leaves)],
        sizes,
        scores,
        [se**2 for se in stderrs],
        compensated=sys.version_info >= (3, 12),
    )

    row = found.micro.value_G[0], found.macro.value_G[0], found.pooled_stderr_G[0]
    np.testing.assert_array_equal(row, harness_row(leaves))


def test_squares_are_not_products():
    """Why squares come from outside: x**2 of the C library and x·x part in some last bits."""
    drawn = random.Random(0)
    numbers = [drawn.random() for _ in range(10_000)]

    assert any(x**2 != x * x for x in numbers)


@pytest.mark.shared
def test_pooled_stderr_equals_the_harness(shared_data: Path) -> None:
    """Every digit; where it divides by zero ours is NaN."""
    text = (shared_data / "conformance" / "lm_eval_cases.json").read_text(encoding="utf-8")
    cases = [case for case in json.loads(text) if case["fn"] == "pooled_sample_stderr"]
    assert cases
    for case in cases:
        stderrs, sizes = case["args"]
        made = pooled([len(sizes)], sizes, [0.5] * len(sizes), [se**2 for se in stderrs])
        expected = math.nan if "raises" in case else case["expect"]
        np.testing.assert_array_equal(made.pooled_stderr_G, [expected])


@pytest.mark.shared
def test_goldens_of_groups(shared_data: Path) -> None:
    """The harness's own numbers: pooled errors, weighted and unweighted means."""
    folder = shared_data / "conformance"
    golden = json.loads((folder / "lm_eval_golden.json").read_text("utf-8"))
    for stderrs, sizes, key in (
        ([0.02, 0.01], [100, 200], "pooled([.02,.01],[100,200])"),
        ([0.05, 0.005], [10, 10000], "pooled([.05,.005],[10,10000])"),
        ([0.015], [100], "pooled single ([.015],[100])"),
    ):
        made = pooled([len(sizes)], sizes, [0.5] * len(sizes), [se**2 for se in stderrs])
        assert made.pooled_stderr_G.tolist() == [golden[key]]
    macro = [
        pooled([2], n, [0.5, 0.5], np.square(se)).macro.stderr_G[0]
        for se, n in (([0.02, 0.01], [100, 200]), ([0.05, 0.005], [10, 10000]))
    ]
    assert macro == golden["unweighted correct sqrt(sum se^2)/k for the same"]

    cases = json.loads((folder / "lm_eval_cases.json").read_text("utf-8"))
    (case,) = (case for case in cases if case["fn"] == "aggregate_subtask_metrics")
    scores, sizes, _ = case["args"]
    found = pooled([3], sizes, scores, [0.0] * 3)
    assert found.micro.value_G.tolist() == [case["expect"]]
    means = [found.micro.value_G[0], found.macro.value_G[0]]
    assert means == pytest.approx(
        golden["aggregate_subtask weighted/unweighted [.3,.2,.4],[20,40,100]"], rel=1e-15
    )


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ends_G": [2, 1]}, r"must rise to 2, got \[2, 1\]"),
        ({"ends_G": [-1, 2]}, "must rise to 2"),
        ({"ends_G": [1]}, r"must rise to 2, got \[1\]"),
        ({"ends_G": []}, "must rise to 2"),
        ({"n_M": [5, 0]}, "leaf 1 needs n >= 1"),
        ({"n_M": [5, math.nan]}, "leaf 1 needs n >= 1"),
        ({"variance_M": [-0.1, 0.1]}, "leaf 0 needs"),
        ({"variance_M": [0.1, math.inf]}, "leaf 1 needs"),
        ({"score_M": [0.1, math.inf]}, "leaf 1 needs"),
        ({"score_M": [math.nan, 0.1]}, "leaf 0 needs"),
        ({"score_M": [0.1]}, r"equal lengths, got \[2, 1, 2\]"),
    ],
)
def test_bad_leaves(change, message):
    """One clear error each."""
    good = {"ends_G": [2], "n_M": [5, 5], "score_M": [0.5, 0.5], "variance_M": [0.1, 0.1]}
    with pytest.raises(DataError, match=message):
        pooled(**{**good, **change})
