"""Pooling over a tree of groups. Axes: L leaves, G groups, 7 sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xpe_kernels._jit import inline, kernel


@inline
def _add_leaf(sums_7: NDArray[np.float64], n: float, score: float, stderr: float) -> None:
    sums_7[0] += n
    sums_7[1] += n * score
    sums_7[2] += score
    if np.isnan(stderr):
        sums_7[3] += 1.0
    else:
        variance = stderr * stderr
        sums_7[4] += n * n * variance
        sums_7[5] += variance
        sums_7[6] += (n - 1.0) * n * variance


@inline
def _row(sums_7: NDArray[np.float64], k: float, row_6: NDArray[np.float64]) -> None:
    n = sums_7[0]
    known = np.nan if sums_7[3] > 0 else 1.0
    row_6[0] = n
    row_6[1] = sums_7[1] / n
    row_6[2] = known * np.sqrt(sums_7[4]) / n
    row_6[3] = sums_7[2] / k
    row_6[4] = known * np.sqrt(sums_7[5]) / k
    row_6[5] = known * np.sqrt(sums_7[6] / (n - k) / n) if n > k else np.nan


@kernel
def pool(
    group_L: NDArray[np.int64],
    n_L: NDArray[np.float64],
    score_L: NDArray[np.float64],
    stderr_L: NDArray[np.float64],
    parent_G: NDArray[np.int64],
    counts_G2: NDArray[np.int64],
    out_G6: NDArray[np.float64],
) -> None:
    """Pool the leaves below each group, bottom-up, in one pass.

    All that is asked for is a function of sums over leaves, so each group adds its sums to its
    parent's, in the order of leaves, then of groups.

    Parameters
    ----------
    group_L
        (L,): the group of each leaf.
    n_L, score_L, stderr_L
        (L,): samples, score, and standard error in the unit of the score; a score of NaN is
        missing, a standard error of NaN unknown.
    parent_G
        (G,): the group of each group, in post-order: parent[g] > g, or -1 for a root.
    counts_G2
        (G, 2), all zeros; becomes k, the leaves with a score, and the leaves without.
    out_G6
        (G, 6), overwritten by Σ n, the micro mean Σ n·score / Σ n and its standard error
        √Σ(n·stderr)² / Σ n, the macro mean Σ score / k and its √Σ stderr² / k, and the harness's
        pooled standard error √(Σ(n - 1)·n·stderr² / (Σ n - k) / Σ n). NaN where there are no
        leaves, or where a standard error is unknown.

    Notes
    -----
    O(L + G) time. Checks nothing: `xpe.stats.tree.pooled_tree` does.
    """
    sums_G7 = np.zeros((len(parent_G), 7))
    for i in range(len(group_L)):
        g = group_L[i]
        if np.isnan(score_L[i]):
            counts_G2[g, 1] += 1
        else:
            counts_G2[g, 0] += 1
            _add_leaf(sums_G7[g], n_L[i], score_L[i], stderr_L[i])
    for g in range(len(parent_G)):
        up = parent_G[g]
        if up >= 0:
            counts_G2[up] += counts_G2[g]
            sums_G7[up] += sums_G7[g]
        _row(sums_G7[g], np.float64(counts_G2[g, 0]), out_G6[g])
