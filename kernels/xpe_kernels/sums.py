"""Bootstrap sums of rows.

Axes: N rows, L lanes of a table row, G groups of L columns, J parts that the rows are dealt to,
D distinct rows, K columns, B replicates.

A resample of N rows is drawn in two steps: how many draws fall into each block of 256 rows, then
a byte for each draw inside its block, so that a block stays in the nearest cache and eight draws
cost one random word. Rows of the last, shorter part are drawn by 32-bit words. A replicate
depends on (seed, b, N) alone and not on the columns: whatever has the same N and seed is resampled
by the same indices.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xpe_kernels._jit import inline, kernel
from xpe_kernels.rows import add_rows
from xpe_kernels.words import BUFFER, Word, fill_bytes, fill_indices, key, split

Lines: TypeAlias = NDArray[np.int32] | NDArray[np.int64]

BLOCK = 256
"""Rows of a block: as many as a byte tells apart."""
_TOGETHER = 8
_ENOUGH = 4096


def parts(n: int) -> NDArray[np.int64]:
    """Return where the parts of `n` rows end: blocks and a shorter rest, or one part if n is small.

    Below 4,096 rows dealing draws to blocks costs more than it saves.
    """
    blocks = n // BLOCK if n >= _ENOUGH else 0
    ends = [BLOCK * (block + 1) for block in range(blocks)]
    return np.array(ends if ends and ends[-1] == n else [*ends, n], np.int64)


@inline
def _add_draws(
    sums: Lines,
    place: int,
    table: Lines,
    n: int,
    row: int,
    size: int,
    count: int,
    words: NDArray[Word],
    stream: Word,
    at: int,
) -> int:
    """Draw `count` of the `size` rows from `row` on; add them to G rows of `sums` at `place`."""
    as_bytes = words.view(np.uint8)
    as_indices = words.view(np.uint32)
    n_groups = len(table) // n
    while count > 0:
        if size == BLOCK:
            m = min(count, 8 * BUFFER)
            at = fill_bytes(words, stream, at, m)
            for g in range(n_groups):
                add_rows(sums, place + g, table, g * n + row, as_bytes, m)
        else:
            m = min(count, 2 * BUFFER)
            at = fill_indices(words, stream, at, m, size)
            for g in range(n_groups):
                add_rows(sums, place + g, table, g * n + row, as_indices, m)
        count -= m
    return at


@kernel
def resampled_sums(
    table: Lines, n: int, ends_J: NDArray[np.int64], seed: Word, first: int, out: Lines
) -> None:
    """Draw N rows with replacement, B times, and add them up.

    Parameters
    ----------
    table
        (G·N, L), L lanes of 64 bytes in all, the rows of the first L columns, then those of the
        next; or (N,) for one column. Counts, or fixed-point numbers of any unit. Aligned to 64
        bytes it is read fastest. Clustered data: a row a cluster.
    n
        N.
    ends_J
        (J,): the rows [ends[j-1], ends[j]) are part j. All but the last have 256 rows;
        the last may have any number (`parts`).
    seed
        Any word.
    first
        Number of the first replicate.
    out
        (B, G·L), or (B, 1) for one column, of the table's dtype, all zeros; becomes the sums, in
        the table's unit. Exact as long as N times the largest magnitude fits the dtype.

    Notes
    -----
    The bootstrap of Efron 1979 on sufficient statistics. O(B N G) time. Checks nothing:
    `xpe.stats.bootstrap.resampled_sums` does. Multinomial deals are exact; a row of the last
    part, of size r, is drawn with a relative error of its probability below r / 2**32.
    """
    n_parts = len(ends_J)
    n_groups = len(table) // n
    counts = np.empty(_TOGETHER * n_parts, np.int64)
    streams = np.empty(_TOGETHER, np.uint64)
    ats = np.empty(_TOGETHER, np.int64)
    words = np.empty(BUFFER, np.uint64)
    sums = out.reshape(-1)
    for start in range(0, len(out), _TOGETHER):
        together = min(_TOGETHER, len(out) - start)
        for r in range(together):
            streams[r] = key(seed, first + start + r)
            counts[r * n_parts] = n
            ats[r] = split(counts, r * n_parts, ends_J, streams[r], 0)
        row = np.int64(0)
        for j in range(n_parts):
            size = ends_J[j] - row
            for r in range(together):
                place = (start + r) * n_groups
                count = counts[r * n_parts + j]
                ats[r] = _add_draws(
                    sums, place, table, n, row, size, count, words, streams[r], ats[r]
                )
            row = ends_J[j]


@kernel
def counted_sums(
    columns_KD: NDArray[np.int64],
    ends_D: NDArray[np.int64],
    seed: Word,
    first: int,
    out_BK: NDArray[np.int64],
) -> None:
    """Draw how often each distinct row occurs in a resample, B times, and add up the rows.

    The same distribution as `resampled_sums`, by other draws, in time that does not grow with
    the number of columns that tell rows apart.

    Parameters
    ----------
    columns_KD
        (K, D), the columns of the distinct rows.
    ends_D
        (D,), the cumulated number of times each occurs; the last is N.
    seed, first
        As in `resampled_sums`.
    out_BK
        (B, K), overwritten by the sums.

    Notes
    -----
    The bootstrap of Efron 1979 on sufficient statistics. O(B (N log2(D) / 32 + D K)) time.
    Multinomial draws are exact. Checks nothing: `xpe.stats.bootstrap.resampled_sums` does.
    """
    n_columns, n_distinct = columns_KD.shape
    counts = np.empty(n_distinct, np.int64)
    for b in range(len(out_BK)):
        counts[0] = ends_D[-1]
        split(counts, 0, ends_D, key(seed, first + b), 0)
        for k in range(n_columns):
            total = np.int64(0)
            for d in range(n_distinct):
                total += counts[d] * columns_KD[k, d]
            out_BK[b, k] = total
