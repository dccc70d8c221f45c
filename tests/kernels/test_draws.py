"""The draws have the distribution that a bootstrap needs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from xpe_kernels import order, sums

B = 4000


def drawn_counts(n: int, iters: int) -> np.ndarray:
    """How often each row is drawn, (B, n), read off the sums of one-hot rows."""
    lanes = 16
    out = []
    for start in range(0, n, lanes):
        table = np.zeros((n, lanes), np.int32)
        width = min(lanes, n - start)
        table[start + np.arange(width), np.arange(width)] = 1
        sums_BL = np.zeros((iters, lanes), np.int32)
        sums.resampled_sums(table, n, sums.parts(n), np.uint64(3), 0, sums_BL)
        out.append(sums_BL[:, :width])
    return np.concatenate(out, axis=1)


def test_each_resample_has_n_rows():
    """Counts of all rows add up to n, with blocks and without."""
    for n in (37, 4200):
        assert (drawn_counts(n, 2).sum(axis=1) == n).all()


def test_rows_are_drawn_alike():
    """Counts over rows pass a chi-square test of equal probabilities."""
    totals = drawn_counts(40, B).sum(axis=0)

    assert stats.chisquare(totals).pvalue > 1e-4


def test_blocks_are_drawn_alike():
    """The first row, one of the middle and one of the rest: as often as all others, each alone."""
    n = 4200
    table = np.zeros((n, 16), np.int32)
    for lane, row in enumerate((0, 255, 256, 2000, 4095, 4096, 4199)):
        table[row, lane] = 1
    table[:, 15] = np.arange(n) < 4096
    out = np.zeros((B, 16), np.int32)

    sums.resampled_sums(table, n, sums.parts(n), np.uint64(1), 0, out)

    for lane in range(7):
        found = np.bincount(np.minimum(out[:, lane], 4), minlength=5)
        expected = stats.binom(n, 1 / n).pmf(np.arange(5))
        expected[4] = 1 - expected[:4].sum()
        assert stats.chisquare(found, B * expected).pvalue > 1e-4
    share = 4096 / n
    error = np.sqrt(n * share * (1 - share) / B)
    assert abs(out[:, 15].mean() - n * share) < 4 * error


@pytest.mark.parametrize("times", [[3, 5, 8], [1, 1, 1, 1], [997, 3]])
def test_counted_rows_are_multinomial(times):
    """The counts of one kind are binomial; two kinds are correlated as a multinomial is."""
    n, kinds = sum(times), len(times)
    p = np.array(times) / n
    out_BK = np.empty((B, kinds), np.int64)

    sums.counted_sums(np.eye(kinds, dtype=np.int64), np.cumsum(times), np.uint64(9), 0, out_BK)

    assert (out_BK.sum(axis=1) == n).all()
    for k in range(kinds):
        found = np.bincount(out_BK[:, k], minlength=n + 1)
        expected = B * stats.binom(n, p[k]).pmf(np.arange(n + 1))
        enough = expected >= 5
        pooled = np.append(expected[enough], expected[~enough].sum())
        seen = np.append(found[enough], found[~enough].sum())
        assert stats.chisquare(seen[pooled > 0], pooled[pooled > 0]).pvalue > 1e-4
    covariance = np.cov(out_BK.T)[0, 1]
    error = n * np.sqrt(p[0] * (1 - p[0]) * p[1] * (1 - p[1]) / B)
    assert abs(covariance + n * p[0] * p[1]) < 5 * error


def test_order_statistics_have_their_distribution():
    """P(X*_(r) <= x_(k)) = I_{k/n}(r, n - r + 1) (Efron 1979), for the median of 21."""
    n, rank = 21, 10
    out_B2 = np.empty((B, 2), np.int64)

    order.order_ranks(n, rank, rank, np.uint64(2), 0, out_B2)

    cdf = stats.beta(rank + 1, n - rank).cdf(np.arange(n + 1) / n)
    expected = B * np.diff(cdf)
    found = np.bincount(out_B2[:, 0], minlength=n)
    enough = expected >= 5
    seen = np.append(found[enough], found[~enough].sum())
    assert stats.chisquare(seen, np.append(expected[enough], expected[~enough].sum())).pvalue > 1e-4
