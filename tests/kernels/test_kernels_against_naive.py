"""Every kernel equals its slow twin, bit for bit."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xpe_kernels import harness, order, pooling, sums, words

SEEDS = st.integers(0, 2**64 - 1)
FIRST = st.integers(0, 10**9)
QUICK = settings(max_examples=25, deadline=None)
# One row, part of a block, a block, the last size without blocks, whole blocks, blocks and a rest.
SIZES = (1, 2, 255, 256, 4095, 4096, 4200)


def test_mix_is_splitmix64():
    """The first outputs of splitmix64 for the state 1234567, as published with its C source."""
    state = np.uint64(1234567)
    found = [
        int(words.mix(np.uint64(int(state) + (i + 1) * int(words.STEP) & 2**64 - 1)))
        for i in range(5)
    ]

    assert found == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("dtype", "n_columns"), [(np.int64, 1), (np.int64, 8), (np.int32, 16), (np.int32, 48)]
)
def test_resampled_sums(naive, n, dtype, n_columns):
    """One column, a cache line, and several lines of columns."""
    rows_NK = np.random.default_rng(n).integers(-1000, 1000, (n, n_columns))
    lanes = 1 if n_columns == 1 else 64 // np.dtype(dtype).itemsize
    groups = [rows_NK[:, start : start + lanes] for start in range(0, n_columns, lanes)]
    table = np.concatenate(groups).astype(dtype)
    out = np.zeros((3, n_columns), dtype)

    sums.resampled_sums(
        table[:, 0].copy() if lanes == 1 else table, n, sums.parts(n), np.uint64(7), 5, out
    )

    assert out.tolist() == [naive.resampled_sums(rows_NK.tolist(), 7, b) for b in (5, 6, 7)]


@QUICK
@given(st.integers(1, 600), SEEDS, FIRST)
def test_resampled_sums__any_seed(naive, n, seed, first):
    """Any number of rows, seed and first replicate."""
    values = [row - n // 2 for row in range(n)]
    out = np.zeros((2, 1), np.int64)

    sums.resampled_sums(np.array(values), n, sums.parts(n), np.uint64(seed), first, out)

    rows = [[value] for value in values]
    assert out.tolist() == [naive.resampled_sums(rows, seed, first + b) for b in range(2)]


@QUICK
@given(st.lists(st.integers(1, 400), min_size=1, max_size=9), SEEDS, FIRST)
def test_counted_sums(naive, times, seed, first):
    """Any numbers of distinct rows and of their repetitions."""
    rows = [[d, d * d - 3, 1] for d in range(len(times))]
    out_BK = np.empty((2, 3), np.int64)

    sums.counted_sums(np.array(rows).T.copy(), np.cumsum(times), np.uint64(seed), first, out_BK)

    assert out_BK.tolist() == [naive.counted_sums(rows, times, seed, first + b) for b in range(2)]


@QUICK
@given(n=st.integers(1, 700), share=st.floats(0, 1), apart=st.booleans(), seed=SEEDS, first=FIRST)
def test_order_ranks(naive, *, n, share, apart, seed, first):
    """Any rank, alone or with its neighbour."""
    low = min(int(share * n), n - 1)
    high = min(low + apart, n - 1)
    out_B2 = np.empty((2, 2), np.int64)

    order.order_ranks(n, low, high, np.uint64(seed), first, out_B2)

    assert out_B2.tolist() == [naive.order_ranks(n, low, high, seed, first + b) for b in range(2)]


@QUICK
@given(st.lists(st.integers(0, 5), min_size=2, max_size=60), st.floats(0, 1), st.booleans(), SEEDS)
def test_drawn_order_ranks(naive, codes, q, upper, seed):
    """Order statistics of units of any sizes, two columns at once."""
    codes_N = np.unique(codes, return_inverse=True)[1]
    n_units = int(codes_N.max()) + 1
    values_NS = np.random.default_rng(seed).integers(0, 20, (len(codes), 2)).astype(float)
    order_NS = np.argsort(values_NS, axis=0, kind="stable")
    out_BS2, totals_B = np.empty((2, 2, 2), np.int64), np.empty(2, np.int64)

    order.drawn_order_ranks(
        np.ascontiguousarray(codes_N[order_NS].T, dtype=np.int32), np.bincount(codes_N),
        sums.parts(n_units), q, upper, np.uint64(seed), 3, out_BS2, totals_B,
    )  # fmt: skip

    for b in range(2):
        for s in range(2):
            drawn = naive.drawn_order_values(
                values_NS[:, s].tolist(), codes_N.tolist(), seed, 3 + b
            )
            place = (
                min(math.floor(len(drawn) * q), len(drawn) - 1) if upper else (len(drawn) - 1) * q
            )
            expected = [drawn[math.floor(place)], drawn[math.ceil(place)]]
            assert totals_B[b] == len(drawn)
            assert np.sort(values_NS[:, s])[out_BS2[b, s]].tolist() == expected


@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=50))
def test_twin_adds_as_this_python_does(naive, values):
    """The twin of `sum` is the running Python's `sum`."""
    assert naive.python_sum(values, compensated=sys.version_info >= (3, 12)) == sum(values)


@pytest.mark.parametrize("compensated", [False, True])
@pytest.mark.parametrize("n", [2, 313, 1000])
def test_harness_sums(naive, n, compensated):
    """The harness's resamples, by Python's own generator, added as Python adds."""
    rows_NK = np.random.default_rng(n).normal(size=(n, 2)) * 10.0 ** np.arange(2)
    out_CRK = np.empty((2, 3, 2))

    harness.harness_sums(np.ascontiguousarray(rows_NK.T), compensated, 4, out_CRK)

    for k in range(2):
        for c in range(2):
            resamples = naive.harness_resamples(rows_NK[:, k].tolist(), 4 + c, 3)
            expected = [naive.python_sum(xs, compensated=compensated) for xs in resamples]
            assert out_CRK[c, :, k].tolist() == expected


@pytest.mark.parametrize("n", [2, 3, 500])
def test_harness_ranks(naive, n):
    """The upper median of the harness's resamples, ties included."""
    values_N = np.random.default_rng(n).integers(0, n, n).astype(float)
    order_N = np.argsort(values_N, kind="stable")
    places_N = np.empty(n, np.int64)
    places_N[order_N] = np.arange(n)
    out_CR = np.empty((2, 4), np.int64)

    harness.harness_ranks(places_N, n // 2, 0, out_CR)

    for c in range(2):
        resamples = naive.harness_resamples(values_N.tolist(), c, 4)
        assert values_N[order_N][out_CR[c]].tolist() == [sorted(xs)[n // 2] for xs in resamples]


LEAF = st.tuples(
    st.integers(1, 500).map(float),
    st.floats(-3, 3),
    st.just(0.0) | st.just(math.nan) | st.floats(1e-9, 1),
)


@QUICK
@given(st.lists(st.lists(LEAF, max_size=9), min_size=1, max_size=5), st.booleans())
def test_pool(naive, groups, compensated):
    """Any groups: empty ones, leaves of one sample, without spread and with an unknown one."""
    leaves = [leaf for group in groups for leaf in group]
    columns = np.array(leaves).reshape(-1, 3).T
    out_GC = np.empty((len(groups), 11))
    ends_G = np.cumsum([len(group) for group in groups])

    pooling.pool(ends_G, *map(np.ascontiguousarray, columns), compensated, out_GC)

    expected = [naive.pooled_row(group, compensated=compensated) for group in groups]
    np.testing.assert_array_equal(out_GC, expected)
