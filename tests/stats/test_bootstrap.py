"""The checked Python side of the bootstrap kernels."""

from __future__ import annotations

import json
import math
import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpe.errors import ConfigError, DataError
from xpe.stats.bootstrap import (
    lm_eval_indices,
    lm_eval_replicates,
    resampled_quantiles,
    resampled_sums,
    resampled_together,
)
from xpe.stats.exact import quantile_stderr

A = np.array([1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1], float)
"""Data of the reference numbers, with `CLUSTERS` of four."""
CLUSTERS = [f"c{i // 4}" for i in range(20)]
MANY = 20_000


def three_errors(iters: int) -> float:
    """Three Monte-Carlo errors of a standard deviation, relative."""
    return 3 / math.sqrt(2 * (iters - 1))


def spread(replicates: np.ndarray) -> float:
    return float(np.std(replicates, ddof=1))


# --- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
def test_stderr_of_a_mean(shared):
    """The bootstrap error of a mean is sd_pop / √n = 0.1024695 (S5)."""
    sums_B1 = resampled_sums(A[:, None], iters=MANY, seed=1, shared=shared)

    assert spread(sums_B1[:, 0] / 20) == pytest.approx(0.1024695, rel=three_errors(MANY))


def test_stderr_of_a_clustered_mean():
    """Equal clusters drawn whole converge to the clustered error 0.0447214 (S3, S6)."""
    rows_NK = np.stack([A, np.ones(20)], axis=1)

    sums_BK = resampled_sums(rows_NK, iters=MANY, seed=1, clusters=CLUSTERS)

    found = spread(sums_BK[:, 0] / sums_BK[:, 1])
    assert found == pytest.approx(0.0447214, rel=three_errors(MANY))


def test_stderr_of_a_ratio():
    """The micro-averaged ratio of S20: 0.0509735 by 10,000 numpy draws."""
    m, h = [9, 4, 7, 10, 3, 8, 6, 5], [12, 9, 10, 13, 8, 10, 11, 9]

    sums_BK = resampled_sums(np.stack([m, h], axis=1), iters=MANY, seed=1)

    both = math.hypot(three_errors(MANY), three_errors(10_000))
    assert spread(sums_BK[:, 0] / sums_BK[:, 1]) == pytest.approx(0.0509735, rel=both)


@pytest.mark.parametrize("n", [200, 201, 5000])
@pytest.mark.parametrize("q", [0.5, 0.9])
@pytest.mark.parametrize("shared", [False, True])
def test_stderr_of_a_quantile(n, q, shared):
    """Interpolated quantiles spread as their exact distribution says."""
    values_N = np.random.default_rng(n).normal(size=n)
    iters = MANY if n < 1000 else 4000

    found = spread(resampled_quantiles(values_N, q, iters=iters, seed=3, shared=shared))

    # Replicates of a quantile have heavier tails than a normal.
    assert found == pytest.approx(quantile_stderr(values_N, q), rel=2 * three_errors(iters))


def test_blocks_change_nothing():
    """Sums of 5,000 rows, drawn by blocks, have the mean and spread of any bootstrap."""
    x = np.random.default_rng(0).exponential(size=5000)

    sums_B = resampled_sums(x[:, None], iters=4000, seed=2)[:, 0]

    error = x.std() * math.sqrt(5000)
    assert sums_B.mean() == pytest.approx(x.sum(), abs=4 * error / math.sqrt(4000))
    assert spread(sums_B) == pytest.approx(error, rel=three_errors(4000))


# --- what callers may rely on ----------------------------------------------------------------


@pytest.mark.parametrize("n", [50, 5000])
@pytest.mark.parametrize("n_columns", [1, 2, 20])
@pytest.mark.parametrize("whole", [False, True])
def test_same_bytes_for_any_number_of_threads(n, n_columns, whole):
    """1, 2 and 8 threads give the same bytes, and fewer replicates give the first of them."""
    rows_NK = np.random.default_rng(1).normal(size=(n, n_columns))
    rows_NK = np.rint(rows_NK * 100) if whole else rows_NK

    found = [
        resampled_sums(rows_NK, iters=101, seed=5, threads=threads).tobytes()
        for threads in (1, 2, 8)
    ]

    assert len(set(found)) == 1
    assert resampled_sums(rows_NK, iters=10, seed=5).tobytes() == found[0][: 10 * n_columns * 8]


def test_same_quantiles_for_any_number_of_threads():
    """Medians, clustered medians and the harness's replicates too."""
    x = np.random.default_rng(1).normal(size=300)
    groups = [i // 3 for i in range(300)]

    for threads in (2, 8):
        for how in ({}, {"clusters": groups}, {"shared": True, "upper": True}):
            one = resampled_quantiles(x, 0.3, iters=57, seed=1, threads=1, **how)
            other = resampled_quantiles(x, 0.3, iters=57, seed=1, threads=threads, **how)
            assert one.tobytes() == other.tobytes()
        one = lm_eval_replicates(x, iters=3000, of="sum", threads=1)
        assert (
            one.tobytes() == lm_eval_replicates(x, iters=3000, of="sum", threads=threads).tobytes()
        )


def test_another_seed_gives_other_draws():
    """Seeds matter, and replicates differ."""
    rows_NK = np.arange(50.0)[:, None]

    one, other = (resampled_sums(rows_NK, iters=100, seed=seed)[:, 0] for seed in (1, 2))

    assert len(set(one)) > 50
    assert np.mean(one == other) < 0.1


def test_shared_draws_pair_systems():
    """A system and its double move together: every replicate of B − 2·A is 0."""
    a_N1 = np.random.default_rng(0).integers(0, 2, (500, 1)).astype(float)
    draw = {"iters": 200, "seed": 4, "shared": True}

    a_B1, b_B1 = resampled_sums(a_N1, **draw), resampled_sums(2 * a_N1, **draw)
    together = resampled_together([a_N1, 2 * a_N1], iters=200, seed=4)

    assert (b_B1 == 2 * a_B1).all()
    assert (together[1] == 2 * together[0]).all()


@pytest.mark.parametrize("n", [500, 5000])
def test_shared_draws_do_not_depend_on_columns(n):
    """One column alone, among fractions, and among 40 whole columns: the same replicates."""
    rng = np.random.default_rng(0)
    column_N1 = rng.integers(0, 1000, (n, 1)).astype(float)
    draw = {"iters": 20, "seed": 4, "shared": True}

    alone = resampled_sums(column_N1, **draw)
    fractions = resampled_sums(np.hstack([column_N1, rng.normal(size=(n, 2))]), **draw)
    wide = resampled_sums(np.hstack([column_N1, rng.integers(0, 99, (n, 39))]), **draw)

    assert (alone[:, 0] == fractions[:, 0]).all()
    assert (alone[:, 0] == wide[:, 0]).all()


def test_quantiles_share_the_draws_of_sums():
    """With one marked value, the top quantile of a resample says whether its sum has it."""
    values_N = np.zeros(300)
    values_N[17] = 1.0

    sums_B = resampled_sums(values_N[:, None], iters=500, seed=6, shared=True)[:, 0]
    tops_B = resampled_quantiles(values_N, 1.0, iters=500, seed=6, shared=True)

    assert (tops_B == (sums_B > 0)).all()


def test_clusters_of_one_are_no_clusters():
    """A cluster for each row, named or None, draws as rows do."""
    rows_NK = np.random.default_rng(0).normal(size=(60, 2))
    plain = resampled_sums(rows_NK, iters=30, seed=1)

    assert (resampled_sums(rows_NK, iters=30, seed=1, clusters=range(60)) == plain).all()
    assert (resampled_sums(rows_NK, iters=30, seed=1, clusters=[None] * 60) == plain).all()


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.floats(-1e300, 1e300, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-300),
        min_size=2,
        max_size=40,
    )
)
def test_sums_are_those_of_rows_that_are_there(values):
    """Each replicate is a sum of n of the values, to 2**-50 of the largest."""
    values_N = np.array(values)
    n = len(values_N)
    largest = float(np.abs(values_N).max())

    sums_B = resampled_sums(values_N[:, None], iters=4, seed=1, shared=True)[:, 0]
    units_BN = resampled_sums(np.eye(n), iters=4, seed=1, shared=True)

    for total, counts_N in zip(sums_B, units_BN, strict=True):
        expected = math.fsum(c * v for c, v in zip(counts_N, values_N, strict=True))
        assert abs(total - expected) <= largest * 2.0**-50 * n


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=30))
def test_whole_numbers_are_exact(values):
    """Sums of whole numbers equal Python's integers."""
    values_N = np.array(values, float)
    draw = {"iters": 3, "seed": 2, "shared": True}

    sums_B = resampled_sums(values_N[:, None], **draw)[:, 0]
    counts_BN = resampled_sums(np.eye(len(values)), **draw)

    assert sums_B.tolist() == [
        sum(int(c) * v for c, v in zip(counts_N, values, strict=True)) for counts_N in counts_BN
    ]


def test_few_distinct_rows_are_counted_with_the_same_result():
    """Counting draws of a 2×2 table gives the covariances that drawing by index gives."""
    cells_NK = np.eye(4)[np.random.default_rng(0).choice(4, 1000, p=[0.5, 0.2, 0.2, 0.1])]

    counted = resampled_sums(cells_NK, iters=MANY, seed=1)

    p = cells_NK.mean(axis=0)
    expected = 1000 * (np.diag(p) - np.outer(p, p))
    assert (counted.sum(axis=1) == 1000).all()
    np.testing.assert_allclose(np.cov(counted.T), expected, rtol=0, atol=0.06 * expected.max())


# --- lm-evaluation-harness -------------------------------------------------------------------


SAME = {"rel": 0 if sys.version_info < (3, 12) else 1e-13, "abs": 0}
"""The golden numbers were made where `sum` did not yet compensate."""


def harness_spread(replicates: list[float]) -> float:
    mean = sum(replicates) / len(replicates)
    return math.sqrt(sum([(x - mean) ** 2 for x in replicates]) / (len(replicates) - 1))


@pytest.fixture(scope="module")
def harness_inputs():
    """The inputs of the golden numbers, by their rule."""
    generator = random.Random(7)
    lls = [-generator.expovariate(0.3) for _ in range(200)]
    for _ in range(200):
        generator.random()
    pairs = [(generator.randint(0, 1), generator.randint(0, 1)) for _ in range(200)]
    return lls, pairs


@pytest.mark.shared
@pytest.mark.parametrize("iters", [100, 1000, 1500, 10_000])
def test_harness_numbers(shared_data, harness_inputs, iters):
    """Perplexity and median equal the harness's own numbers in every digit."""
    golden = json.loads((shared_data / "conformance/lm_eval_golden.json").read_text("utf-8"))
    lls, _ = harness_inputs

    sums_B = lm_eval_replicates(lls, iters=iters, of="sum")
    medians_B = lm_eval_replicates(lls, iters=iters, of="upper_median")

    perplexities = [math.exp(-(total / 200)) for total in sums_B.tolist()]
    assert harness_spread(perplexities) == pytest.approx(
        golden[f"bootstrap perplexity(ll) iters={iters}"], **SAME
    )
    assert harness_spread(medians_B.tolist()) == pytest.approx(
        golden[f"bootstrap median(ll) iters={iters}"], **SAME
    )


@pytest.mark.shared
def test_harness_tables_and_indices(shared_data, harness_inputs):
    """f1 of a 2×2 table, and nanmean by index, equal the harness's own numbers."""
    golden = json.loads((shared_data / "conformance/lm_eval_golden.json").read_text("utf-8"))
    lls, pairs = harness_inputs
    cells_NK = np.eye(4)[[2 * gold + predicted for gold, predicted in pairs]]

    _, fp, fn, tp = lm_eval_replicates(cells_NK, iters=1000, of="rows").T
    means = [float(np.nanmean(np.array(lls)[i])) for i in lm_eval_indices(200, iters=1000)]

    f1 = (2 * tp / (2 * tp + fp + fn)).tolist()
    assert harness_spread(f1) == pytest.approx(golden["bootstrap f1(gp) iters=1000"], **SAME)
    assert harness_spread(means) == pytest.approx(
        golden["bootstrap nanmean(ll) iters=1000"], **SAME
    )


def test_harness_replicates_are_pythons(harness_inputs):
    """Each replicate equals, bit for bit, what the harness's own lines give in this Python."""
    lls, _ = harness_inputs
    expected = []
    for chunk in range(2):
        generator = random.Random()
        generator.seed(chunk)
        expected += [sum(generator.choices(lls, k=200)) for _ in range(1000)]

    assert lm_eval_replicates(lls, iters=2000, of="sum").tolist() == expected


def test_harness_draws_whole_chunks():
    """1,500 replicates asked for are 1,000; 700 are 700."""
    for asked, drawn in ((1500, 1000), (700, 700), (2000, 2000)):
        assert len(lm_eval_replicates([1.0, 2.0], iters=asked, of="sum")) == drawn


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "how", "message"),
    [
        ([[1.0], [math.nan]], {}, "finite, got nan in row 1, column 0"),
        ([[1.0, math.inf], [1.0, 2.0]], {}, "finite, got inf in row 0, column 1"),
        ([[1e308], [1e308]], {}, "not finite"),
        (np.empty((0, 1)), {}, "at least 2 rows and 1 column, got 0 and 1"),
        (np.empty((5, 0)), {}, "at least 2 rows and 1 column, got 5 and 0"),
        ([[1.0]], {}, "at least 2 rows"),
        ([1.0, 2.0], {}, "two axes"),
        ([[1.0], [2.0]], {"clusters": ["a"]}, "a cluster for each of 2 rows, got 1"),
        ([[1.0], [2.0]], {"clusters": ["a", "a"]}, "at least 2, got only 'a'"),
    ],
)
def test_bad_rows(rows, how, message):
    """One clear error each, never a number."""
    with pytest.raises(DataError, match=message):
        resampled_sums(rows, iters=10, seed=0, **how)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"iters": 0}, "at least 1, got 0"),
        ({"seed": -1}, "got -1"),
        ({"seed": 2**64}, "got 18446744073709551616"),
        ({"threads": 0}, "threads must be at least 1, got 0"),
    ],
)
def test_bad_settings(how, message):
    """Settings out of range are named."""
    with pytest.raises(ConfigError, match=message):
        resampled_sums([[1.0], [2.0]], **{"iters": 10, "seed": 0, **how})


def test_bad_quantiles():
    """A quantile out of range, values that are not finite, tables of different lengths."""
    with pytest.raises(ConfigError, match=r"got 1\.5"):
        resampled_quantiles([1.0, 2.0], 1.5, iters=10, seed=0)
    with pytest.raises(DataError, match="finite"):
        resampled_quantiles([1.0, math.nan], 0.5, iters=10, seed=0)
    with pytest.raises(DataError, match="got only"):
        resampled_quantiles([1.0, 2.0], 0.5, iters=10, seed=0, clusters=["a", "a"])
    with pytest.raises(DataError, match=r"\[2, 3\]"):
        resampled_together([np.ones((2, 1)), np.ones((3, 1))], iters=10, seed=0)
    with pytest.raises(DataError, match="finite"):
        lm_eval_replicates([1.0, math.inf], iters=10, of="sum")
