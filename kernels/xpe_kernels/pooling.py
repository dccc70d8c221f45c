"""Rows of groups from their leaf tasks. Axes: M members, group after group, and G groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xpe_kernels._jit import inline, kernel

_SUMS = 9


@inline
def _terms(terms_9: NDArray[np.float64], n: float, score: float, variance: float) -> None:
    by_size = n * n * variance
    terms_9[0] = n
    terms_9[1] = n * score
    terms_9[2] = score
    terms_9[3] = by_size
    terms_9[4] = variance
    # In the order of lm-evaluation-harness, for its last bit.
    terms_9[5] = (n - 1.0) * variance * n
    terms_9[6] = by_size * by_size / (n - 1.0) if variance != 0.0 else 0.0
    terms_9[7] = variance * variance / (n - 1.0) if variance != 0.0 else 0.0
    terms_9[8] = 1.0 / n


@inline
def _add(
    sums_9: NDArray[np.float64], lost_9: NDArray[np.float64], terms_9: NDArray[np.float64]
) -> None:
    """Add and keep what rounding lost, exactly (Knuth's TwoSum)."""
    for i in range(_SUMS):
        before = sums_9[i]
        after = before + terms_9[i]
        added = after - before
        lost_9[i] += (before - (after - added)) + (terms_9[i] - added)
        sums_9[i] = after


@inline
def _row(sums_9: NDArray[np.float64], k: float, row: NDArray[np.float64]) -> None:
    n = sums_9[0]
    row[0] = n
    row[1] = sums_9[1] / n
    row[2] = np.sqrt(sums_9[3]) / n
    row[3] = sums_9[3] * sums_9[3] / sums_9[6] if sums_9[6] != 0.0 else np.nan
    row[4] = n
    row[5] = sums_9[2] / k
    row[6] = np.sqrt(sums_9[4]) / k
    row[7] = sums_9[4] * sums_9[4] / sums_9[7] if sums_9[7] != 0.0 else np.nan
    row[8] = k * k / sums_9[8]
    row[9] = np.sqrt(sums_9[5] / (n - k) / n) if n > k else np.nan


@kernel
def pool(
    ends_G: NDArray[np.int64],
    n_M: NDArray[np.float64],
    score_M: NDArray[np.float64],
    variance_M: NDArray[np.float64],
    compensated: bool,
    out_GC: NDArray[np.float64],
) -> None:
    """Pool the leaves of each group, in the order in which they are given.

    Parameters
    ----------
    ends_G
        (G,): the members [ends[g-1], ends[g]) are the leaves of group g, k of them. A leaf of
        several groups is a member of each.
    n_M, score_M, variance_M
        (M,): samples, score, and squared standard error in the squared unit of the score; NaN
        where that is unknown.
    compensated
        Whether to add as Python's `sum` does since 3.12, which hardly loses a bit; else from left
        to right, as before.
    out_GC
        (G, 11), overwritten by Σ n; of the micro mean Σ n·score / Σ n itself, its standard error
        √Σ n²v / Σ n, its degrees of freedom (Σ n²v)² / Σ (n²v)²/(n - 1) (Satterthwaite 1946) and
        its effective size Σ n; of the macro mean Σ score / k likewise √Σ v / k,
        (Σ v)² / Σ v²/(n - 1) and k² / Σ 1/n; the pooled standard error of lm-evaluation-harness
        √(Σ (n - 1)·n·v / (Σ n - k) / Σ n), and that of all samples thrown together,
        √(Σ ((n - 1)·n·v + n·(score - micro)²) / (Σ n - 1) / Σ n). NaN without leaves, or where a
        variance that is needed is unknown.

    Notes
    -----
    O(M + G) time. Checks nothing: `xpe.stats.pooling.pooled` does.
    """
    sums_9, lost_9, terms_9 = np.empty(_SUMS), np.empty(_SUMS), np.empty(_SUMS)
    start = np.int64(0)
    for g in range(len(ends_G)):
        sums_9[:] = 0.0
        lost_9[:] = 0.0
        for i in range(start, ends_G[g]):
            _terms(terms_9, n_M[i], score_M[i], variance_M[i])
            _add(sums_9, lost_9, terms_9)
        if compensated:
            sums_9 += lost_9
        _row(sums_9, np.float64(ends_G[g] - start), out_GC[g])
        n, micro = out_GC[g, 0], out_GC[g, 1]
        squares = sums_9[5]
        for i in range(start, ends_G[g]):
            squares += n_M[i] * (score_M[i] - micro) ** 2
        out_GC[g, 10] = np.sqrt(squares / (n - 1.0) / n) if n > 1.0 else np.nan
        start = ends_G[g]
