"""Order statistics of resamples: medians and quantiles.

Axes: N rows, U units that are drawn (rows, or clusters of rows), S columns (systems), B replicates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xpe_kernels._jit import inline, kernel
from xpe_kernels.sums import BLOCK
from xpe_kernels.words import BUFFER, Word, binomial, fill_bytes, fill_indices, key, split


@inline
def _left_part(low: int, high: int) -> np.int64:
    width = np.int64(1)
    while 2 * width < high - low:
        width *= 2
    return width


@inline
def _descend(low: int, high: int, c: int, rank: int, stream: Word, at: int) -> tuple[int, int]:
    """Find where the `rank`-th of `c` draws from [low, high) falls; draw only what decides it."""
    while high - low > 1:
        width = _left_part(low, high)
        left, at = binomial(stream, at, c, width, high - low)
        if rank < left:
            high = low + width
            c = left
        else:
            low += width
            rank -= left
            c -= left
    return low, at


@kernel
def order_ranks(
    n: int, low_rank: int, high_rank: int, seed: Word, first: int, out_B2: NDArray[np.int64]
) -> None:
    """Draw which of N sorted values are two order statistics of a resample, B times.

    Halves the values again and again: a binomial draw says how many of the resample lie in the
    lower half, and only the half with the order statistic is halved again.

    Parameters
    ----------
    n
        N.
    low_rank, high_rank
        Ranks in the resample, counted from 0, 0 <= low <= high < N.
    seed, first
        As in `sums.resampled_sums`; the draws are other ones.
    out_B2
        (B, 2), overwritten by positions in the sorted values.

    Notes
    -----
    O(B N / 20) time. The draws are exact: P(X*_(r) <= x_(k)) = I_{k/N}(r + 1, N - r) (Efron 1979)
    for the rank r. Checks nothing: `xpe.stats.bootstrap.resampled_quantiles` does.
    """
    for b in range(len(out_B2)):
        stream = key(seed, first + b)
        at, low, high, c = np.int64(0), np.int64(0), np.int64(n), np.int64(n)
        r, s = np.int64(low_rank), np.int64(high_rank)
        parted = False
        while high - low > 1 and not parted:
            width = _left_part(low, high)
            left, at = binomial(stream, at, c, width, high - low)
            if s < left:
                high = low + width
                c = left
            elif r >= left:
                low += width
                r -= left
                s -= left
                c -= left
            else:
                parted = True
                out_B2[b, 0], at = _descend(low, low + width, left, r, stream, at)
                out_B2[b, 1], at = _descend(low + width, high, c - left, s - left, stream, at)
        if not parted:
            out_B2[b, 0] = low
            out_B2[b, 1] = low


@inline
def _count_draws(
    counts_U: NDArray[np.int32],
    ends_J: NDArray[np.int64],
    dealt_J: NDArray[np.int64],
    words: NDArray[Word],
    stream: Word,
) -> None:
    """Count how often each unit is drawn: the draws of `sums.resampled_sums`."""
    as_bytes = words.view(np.uint8)
    as_indices = words.view(np.uint32)
    counts_U[:] = 0
    dealt_J[0] = len(counts_U)
    at = split(dealt_J, 0, ends_J, stream, 0)
    row = np.int64(0)
    for j in range(len(ends_J)):
        size = ends_J[j] - row
        count = dealt_J[j]
        while count > 0:
            if size == BLOCK:
                m = min(count, 8 * BUFFER)
                at = fill_bytes(words, stream, at, m)
                for i in range(m):
                    counts_U[row + as_bytes[i]] += 1
            else:
                m = min(count, 2 * BUFFER)
                at = fill_indices(words, stream, at, m, size)
                for i in range(m):
                    counts_U[row + as_indices[i]] += 1
            count -= m
        row = ends_J[j]


@kernel
def drawn_order_ranks(
    units_SN: NDArray[np.int32],
    sizes_U: NDArray[np.int64],
    ends_J: NDArray[np.int64],
    quantile: float,
    upper: bool,
    seed: Word,
    first: int,
    out_BS2: NDArray[np.int64],
    totals_B: NDArray[np.int64],
) -> None:
    """Find two order statistics of each column in resamples drawn by unit, B times.

    The draws are those of `sums.resampled_sums` for U rows, so columns, and calls with the same
    U and seed, are resampled together.

    Parameters
    ----------
    units_SN
        (S, N): the unit of the i-th smallest value of column s.
    sizes_U
        (U,): rows of each unit.
    ends_J
        As in `sums.resampled_sums`, for U rows.
    quantile, upper
        In [0, 1], and whether the ranks are floor(T·quantile), at most T - 1, for a
        resample of T rows; else they are floor and ceiling of (T - 1)·quantile.
    seed, first
        As in `sums.resampled_sums`.
    out_BS2
        (B, S, 2), overwritten by positions in the sorted values of each column.
    totals_B
        (B,), overwritten by T.

    Notes
    -----
    O(B (U + S N)) time. Checks nothing: `xpe.stats.bootstrap.resampled_quantiles` does.
    """
    n_columns = len(units_SN)
    counts_U = np.empty(len(sizes_U), np.int32)
    dealt_J = np.empty(len(ends_J), np.int64)
    words = np.empty(BUFFER, np.uint64)
    for b in range(len(out_BS2)):
        _count_draws(counts_U, ends_J, dealt_J, words, key(seed, first + b))
        total = np.int64(0)
        for u in range(len(sizes_U)):
            total += counts_U[u] * sizes_U[u]
        totals_B[b] = total
        if upper:
            low = min(np.int64(np.floor(total * quantile)), total - 1)
            high = low
        else:
            place = (total - 1) * quantile
            low = np.int64(np.floor(place))
            high = np.int64(np.ceil(place))
        for s in range(n_columns):
            i = np.int64(-1)
            seen = np.int64(0)
            while seen <= low:
                i += 1
                seen += counts_U[units_SN[s, i]]
            out_BS2[b, s, 0] = i
            while seen <= high:
                i += 1
                seen += counts_U[units_SN[s, i]]
            out_BS2[b, s, 1] = i
