"""The random numbers of lm-evaluation-harness 0.4, drawn as it draws them.

Its replicates come in chunks; chunk i draws by `random.Random(i).choices(xs, k=n)`. That is the
Mersenne Twister MT19937 (Matsumoto and Nishimura 1998) seeded by `init_by_array([i])`, and index
floor(u·n) for the 53-bit number u in [0, 1) that Python makes of two 32-bit outputs.

Axes: N rows, K columns, C chunks, R replicates of a chunk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xpe_kernels._jit import inline, kernel

_SIZE = 624
_SHIFT = 397
_UPPER = np.uint32(0x80000000)
_LOWER = np.uint32(0x7FFFFFFF)
_MATRIX = np.uint32(0x9908B0DF)
_TEMPER_B = np.uint32(0x9D2C5680)
_TEMPER_C = np.uint32(0xEFC60000)
_LOW = np.uint64(0xFFFFFFFF)
_U1, _U5, _U6, _U7, _U11, _U15, _U18 = (np.uint32(s) for s in (1, 5, 6, 7, 11, 15, 18))


@inline
def _twist(state: NDArray[np.uint32], i: int, j: int, k: int) -> None:
    y = (state[i] & _UPPER) | (state[j] & _LOWER)
    state[i] = state[k] ^ (y >> _U1) ^ (_MATRIX if y & _U1 else np.uint32(0))


@inline
def _refill(state: NDArray[np.uint32], out: NDArray[np.uint32]) -> None:
    """Advance the 624 words of `state` and write their tempered values to `out`."""
    for i in range(_SIZE - _SHIFT):
        _twist(state, i, i + 1, i + _SHIFT)
    for i in range(_SIZE - _SHIFT, _SIZE - 1):
        _twist(state, i, i + 1, i + _SHIFT - _SIZE)
    _twist(state, _SIZE - 1, 0, _SHIFT - 1)
    for i in range(_SIZE):
        y = state[i]
        y ^= y >> _U11
        y ^= (y << _U7) & _TEMPER_B
        y ^= (y << _U15) & _TEMPER_C
        out[i] = y ^ (y >> _U18)


@inline
def _start(state: NDArray[np.uint32], chunk: int) -> None:
    """Seed by `init_by_array([chunk])`, 0 <= chunk < 2**32."""
    s = np.uint64(19650218)
    for i in range(_SIZE):
        if i > 0:
            s = (np.uint64(1812433253) * (s ^ (s >> np.uint64(30))) + np.uint64(i)) & _LOW
        state[i] = s
    i = 1
    for step in range(2 * _SIZE - 1):
        before = np.uint64(state[i - 1])
        mixed = before ^ (before >> np.uint64(30))
        if step < _SIZE:
            s = (np.uint64(state[i]) ^ (mixed * np.uint64(1664525))) + np.uint64(chunk)
        else:
            s = (np.uint64(state[i]) ^ (mixed * np.uint64(1566083941))) - np.uint64(i)
        state[i] = s & _LOW
        i += 1
        if i == _SIZE:
            state[0] = state[_SIZE - 1]
            i = 1
    state[0] = _UPPER


@inline
def _draw(
    indices_N: NDArray[np.int64], state: NDArray[np.uint32], out: NDArray[np.uint32], at: int
) -> int:
    """Draw N indices below N from the position `at` of `out`; return the next position."""
    n = float(len(indices_N))
    for i in range(len(indices_N)):
        if at == _SIZE:
            _refill(state, out)
            at = 0
        a = out[at] >> _U5
        b = out[at + 1] >> _U6
        at += 2
        u = (np.float64(a) * 67108864.0 + np.float64(b)) * (1.0 / 9007199254740992.0)
        indices_N[i] = np.int64(u * n)
    return at


@inline
def _sum(values_N: NDArray[np.float64], indices_N: NDArray[np.int64], compensated: bool) -> float:
    """Add up as Python's `sum` does: from left to right, since 3.12 by Neumaier's algorithm."""
    total = 0.0
    lost = 0.0
    for i in range(len(indices_N)):
        x = values_N[indices_N[i]]
        after = total + x
        if compensated:
            if abs(total) >= abs(x):
                lost += (total - after) + x
            else:
                lost += (x - after) + total
        total = after
    return total + lost if compensated else total


@kernel
def harness_sums(
    columns_KN: NDArray[np.float64],
    compensated: bool,
    first: int,
    out_CRK: NDArray[np.float64],
) -> None:
    """Sum the harness's resamples, column by column, in the order in which Python adds.

    Parameters
    ----------
    columns_KN
        (K, N), finite: log likelihoods, cells of a 2×2 table, corpus statistics.
    compensated
        Whether to add as Python 3.12 and later do.
    first
        Number of the first chunk.
    out_CRK
        (C, R, K), overwritten by the sums, in the unit of the columns.

    Notes
    -----
    O(C R N K) time. Checks nothing: `xpe.stats.bootstrap.lm_eval_replicates` does.
    """
    state = np.empty(_SIZE, np.uint32)
    out = np.empty(_SIZE, np.uint32)
    n_columns, n = columns_KN.shape
    indices_N = np.empty(n, np.int64)
    for c in range(len(out_CRK)):
        _start(state, first + c)
        at = _SIZE
        for r in range(out_CRK.shape[1]):
            at = _draw(indices_N, state, out, at)
            for k in range(n_columns):
                out_CRK[c, r, k] = _sum(columns_KN[k], indices_N, compensated)


@kernel
def harness_ranks(
    places_N: NDArray[np.int64], rank: int, first: int, out_CR: NDArray[np.int64]
) -> None:
    """Find an order statistic of the harness's resamples.

    Parameters
    ----------
    places_N
        (N,): the position of each value among the sorted values.
    rank
        Rank in the resample, counted from 0; N // 2 is the upper median.
    first
        Number of the first chunk.
    out_CR
        (C, R), overwritten by positions among the sorted values.

    Notes
    -----
    O(C R N) time. Checks nothing: `xpe.stats.bootstrap.lm_eval_replicates` does.
    """
    state = np.empty(_SIZE, np.uint32)
    out = np.empty(_SIZE, np.uint32)
    indices_N = np.empty(len(places_N), np.int64)
    counts_N = np.empty(len(places_N), np.int32)
    for c in range(len(out_CR)):
        _start(state, first + c)
        at = _SIZE
        for r in range(out_CR.shape[1]):
            at = _draw(indices_N, state, out, at)
            counts_N[:] = 0
            for i in range(len(indices_N)):
                counts_N[places_N[indices_N[i]]] += 1
            place = np.int64(0)
            seen = np.int64(counts_N[0])
            while seen <= rank:
                place += 1
                seen += counts_N[place]
            out_CR[c, r] = place
