"""Bad input at every public entrance of the statistics: one clear error each, never a number.

NaN and infinite values, empty columns, negative weights, one cluster, mismatched lengths. Those
of `pooled` are in test_pooling.py, those of the kernels' callers in test_bootstrap.py too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from xpe.errors import ConfigError, DataError
from xpe.stats import Stats, closed, interval, intervals, paired, power, stderr
from xpe.stats.bootstrap import (
    lm_eval_indices,
    lm_eval_replicates,
    resampled_quantiles,
    resampled_sums,
    resampled_together,
)
from xpe.stats.compared import compare_tables
from xpe.stats.estimate import estimate, estimate_all
from xpe.stats.items import described
from xpe.types import Items, Kind, Mean, Metric, Order, Ratio, Sums, Table

FEW = Stats(bootstrap_iters=20)
NAN, INF = math.nan, math.inf
GOOD: dict[str, Any] = {
    "mean": 1.0,
    "median": 1.0,
    "perplexity": -1.0,
    "weighted_perplexity": (-1.0, 2),
    "bits_per_byte": (-1.0, 2),
    "f1": (1, 0),
    "matthews_corrcoef": (1, 0),
    "brier_score": (0, [0.5, 0.5]),
    "bleu": ("a b", "a c"),
    "chrf": ("a b", "a c"),
    "ter": ("a b", "a c"),
}
KINDS: dict[str, Kind] = {
    "mean": Mean("x"),
    "ratio": Ratio("x", "y"),
    "sums": Sums(("x", "y"), lambda sums: sums[..., 0]),
    "order": Order("x"),
    "items": Items("x", max),
}


def table(x: Sequence[float], y: Sequence[float] = (1, 2, 3), **fields: Any) -> Table:
    n = len(x)
    held = {
        "doc_ids": tuple(range(n)), "scored_N": np.ones(n, bool), "clusters": (None,) * n, **fields
    }  # fmt: skip
    return Table(("x", "y"), np.column_stack([x, y[:n]]).astype(float), **held)


@pytest.mark.parametrize("call", [stderr, interval, lambda *a, **_: described(*a, FEW)])
@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
def test_items_that_are_not_finite(call: Callable[..., Any], name: str, wrong: float) -> None:
    """Of every aggregation, in the first and in the last number of an item."""
    good = GOOD[name]
    first, *rest = good if isinstance(good, tuple) else (good,)
    bad = [(wrong, *rest), (first, wrong)] if rest else [wrong]
    if name == "brier_score":
        bad[1] = (0, [0.5, wrong])
    for item in bad:
        with pytest.raises(DataError, match=f"item 2 of {name} must be finite"):
            call(name, [good, good, item], iters=20)


def test_items_of_a_function_that_are_not_finite() -> None:
    """Python's `max` of a NaN depends on the order."""
    with pytest.raises(DataError, match="item 1 of max must be finite, got nan"):
        stderr(max, [1.0, NAN, 2.0], iters=20)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("wrong", [None, (1,), "x"])
def test_items_of_another_shape(name: str, wrong: Any) -> None:
    """Nothing, a tuple of one, a text."""
    with pytest.raises(DataError, match=f"item 1 of {name} is "):
        stderr(name, [GOOD[name], wrong], iters=20)


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_predictions_that_are_no_texts(name: str) -> None:
    """A number is not scored as its digits."""
    with pytest.raises(DataError, match=f"item 0 of {name} is "):
        stderr(name, [("a b", 3)], iters=20)


@pytest.mark.parametrize("call", [stderr, interval])
@pytest.mark.parametrize("name", ["weighted_perplexity", "bits_per_byte"])
def test_weights_that_are_negative(call: Callable[..., Any], name: str) -> None:
    """Words and bytes are counted."""
    with pytest.raises(DataError, match=r"item 1 .*expected a weight >= 0, got -2"):
        call(name, [(-1.0, 2), (-1.0, -2)], iters=20)


def test_predicted_labels_that_are_negative() -> None:
    """-2 is no index from the end."""
    with pytest.raises(DataError, match="labels from -1 to 9"):
        stderr("matthews_corrcoef", [(1, 0), (1, -2)], iters=20)


@pytest.mark.parametrize(
    "settings",
    [
        {"iters": -1},
        {"iters": 1},
        {"seed": -1},
        {"method": "exakt"},
        {"compat": "lm-eval"},
    ],
)
def test_settings_of_the_api(settings: dict[str, Any]) -> None:
    """Ours, not the validator's."""
    with pytest.raises(ConfigError):
        stderr("median", [1.0, 2.0], **settings)
    for wrong in ({"level": 95}, {"interval": "wald"}):
        with pytest.raises(ConfigError):
            interval("median", [1.0, 2.0], **wrong)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("wrong", [NAN, INF])
def test_rows_that_are_not_finite(kind: Kind, wrong: float) -> None:
    """In an estimate, in several, and on either side of a comparison."""
    metric, bad, good = Metric("m", kind), table([1, wrong, 3]), table([1, 2, 3])
    for call in (
        lambda: estimate(metric, bad, FEW),
        lambda: estimate_all({"m": (metric, bad)}, FEW),
        lambda: compare_tables(metric, good, bad, FEW),
        lambda: compare_tables(metric, bad, good, FEW),
    ):
        with pytest.raises(DataError, match=r"'x' must be finite, got (nan|inf) in document 1"):
            call()


def test_denominators_that_are_negative() -> None:
    """In an estimate, and on either side of a comparison."""
    metric, bad, good = Metric("m", KINDS["ratio"]), table([1, 2, 3], [1, -2, 3]), table([1, 2, 3])
    for call in (
        lambda: estimate(metric, bad, FEW),
        lambda: compare_tables(metric, good, bad, FEW),
        lambda: compare_tables(metric, bad, good, FEW),
    ):
        with pytest.raises(DataError, match=r"'y' must be >= 0, got -2\.0 in document 1"):
            call()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_one_cluster_has_no_error(kind: Kind) -> None:
    """Undefined with its reason in an estimate and in a comparison; the value stands."""
    a, b = (table(x, clusters=("a",) * 3) for x in ([1, 2, 3], [2, 2, 5]))
    made, gap = estimate(Metric("m", kind), a, FEW), compare_tables(Metric("m", kind), a, b, FEW)
    assert (made.stderr, made.ci, made.why) == (None, None, "one cluster")
    assert (gap.stderr, gap.ci, gap.p, gap.why) == (None, None, None, "one cluster")
    assert made.value is not None
    assert math.isfinite(gap.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"doc_ids": (1,)},
        {"scored_N": np.ones(2, bool)},
        {"clusters": ("a",)},
        {"items": {"w": (1, 2)}},
    ],
)
def test_tables_of_mismatched_lengths(fields: dict[str, Any]) -> None:
    """A table says what does not fit when it is made."""
    with pytest.raises(DataError, match="a table of 3 rows and 2 columns needs as many"):
        table([1, 2, 3], **fields)


def test_tables_of_other_documents() -> None:
    """A comparison needs the same ones."""
    with pytest.raises(DataError, match="the same documents"):
        compare_tables(Metric("m", Mean("x")), table([1, 2]), table([1, 2, 3]), FEW)


ONE, TWO, THREE = np.ones(1), np.array([1.0, 2.0]), np.array([1.0, 2.0, 4.0])
BAD = np.array([1.0, NAN])
DRAW: dict[str, Any] = {"iters": 5, "seed": 0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resampled_together([BAD[:, None]], **DRAW), "finite"),
        (lambda: resampled_together([TWO[:, None]], **DRAW, clusters=["a", "a"]), "at least 2"),
        (lambda: resampled_sums(np.empty((2, 0)), **DRAW), "1 column"),
        (lambda: resampled_quantiles(ONE, 0.5, **DRAW), "at least 2"),
        (lambda: resampled_quantiles(TWO, 0.5, **DRAW, clusters=["a"]), "each of 2 rows, got 1"),
        (lambda: lm_eval_replicates(ONE, iters=5, of="sum"), "at least 2"),
        (lambda: lm_eval_replicates(BAD, iters=5, of="upper_median"), "finite"),
        (lambda: lm_eval_replicates(BAD[:, None], iters=5, of="rows"), "finite"),
        (lambda: list(lm_eval_indices(0, iters=5)), "at least 2"),
        (lambda: paired.paired_difference(TWO, BAD), "finite, got 2.0 and nan in pair 1"),
        (lambda: paired.paired_difference(TWO, TWO, clusters=["a"]), "each of 2 pairs, got 1"),
        (lambda: paired.bootstrapped_difference(0.1, TWO, ONE, 2), "2 and 1 values"),
        (lambda: paired.correlation(TWO, ONE), "2 and 1 values"),
        (lambda: paired.mcnemar_exact(-1, 3), "-1 and 3"),
        (lambda: paired.mcnemar_midp(1, -3), "1 and -3"),
        (lambda: paired.mcnemar_chi2(-1, 1), "-1 and 1"),
        (lambda: intervals.wilson(NAN, 3), "k=nan"),
        (lambda: intervals.clopper_pearson(1, 0), "n=0"),
        (lambda: intervals.beta_posterior(1, 2, prior=(0, 1)), "prior"),
        (lambda: intervals.newcombe_paired(3, -1, 0, 2), "got 3, -1, 0 and 2"),
        (lambda: intervals.percentile(np.empty(0)), "at least one"),
        (lambda: intervals.percentile(BAD), "finite"),
        (lambda: intervals.bca(1.0, BAD, TWO), "finite"),
        (lambda: intervals.bca(1.0, TWO, BAD), "finite"),
        (lambda: closed.mean_stderr(BAD), "got nan in place 1"),
        (lambda: closed.clustered_stderr(THREE, np.array([0, 1])), "each of 3 values, got 2"),
        (lambda: closed.clustered_stderr(BAD, np.array([0, 1])), "finite"),
        (lambda: closed.ratio_stderr(TWO, np.array([1.0, -1.0])), ">= 0"),
        (lambda: closed.ratio_stderr(TWO, THREE), "expected 2 denominators"),
        (lambda: closed.ratio_stderr(TWO, BAD), "finite"),
    ],
)
def test_numbers_of_single_functions(call: Callable[[], Any], message: str) -> None:
    """What the entrances above are made of refuses the same."""
    with pytest.raises(DataError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: intervals.t(1.0, 1.0, 9, 95),
        lambda: intervals.normal(1.0, 1.0, 0),
        lambda: intervals.percentile(TWO, 1.0),
        lambda: intervals.clopper_pearson(1, 2, NAN),
        lambda: power.needed(NAN, 1),
        lambda: power.detectable(NAN, 3),
    ],
)
def test_levels_and_plans(call: Callable[[], Any]) -> None:
    """A level is a share; a plan holds numbers."""
    with pytest.raises(ConfigError):
        call()


def test_replicates_that_are_undefined_are_left_out_of_both_sides() -> None:
    """Difference, interval and correlation are of the defined pairs, and say so if none is."""
    a_B, b_B = np.array([1.0, 3.0, NAN, 2.0]), np.array([0.5, 1.0, 2.0, 1.0])
    made = paired.bootstrapped_difference(1.0, a_B, b_B, 9)
    assert made.stderr == pytest.approx(np.std([0.5, 2.0, 1.0], ddof=1))
    assert made.correlation == pytest.approx(np.corrcoef([1, 3, 2], [0.5, 1, 1])[0, 1])
    none = paired.bootstrapped_difference(1.0, BAD, TWO, 9)
    assert (none.stderr, none.why) == (None, "undefined")
