"""From checked numbers to a kernel's arrays and back: which kernel, laid out how, cut how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xpe.errors import ConfigError
from xpe.stats._fixed import Fixed
from xpe.stats._threads import in_threads
from xpe.types import Float

Integers = NDArray[np.int64]
Lines = NDArray[np.int32] | NDArray[np.int64]

_FEW = 64
_ROWS_A_KIND = 16
_FACTOR = np.int64(6364136223846793005)


@dataclass(frozen=True)
class Draws:
    """How often to draw, from which seed, on how many threads (None: all CPUs)."""

    iters: int
    seed: int
    threads: int | None

    def __post_init__(self) -> None:
        if self.iters < 1:
            raise ConfigError(f"bootstrap replicates must be at least 1, got {self.iters}")
        if not 0 <= self.seed < 2**64:
            raise ConfigError(f"the seed of a bootstrap must be in [0, 2**64), got {self.seed}")
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"threads must be at least 1, got {self.threads}")

    @property
    def word(self) -> np.uint64:
        """The seed as the kernels take it."""
        return np.uint64(self.seed)

    def cut(self, work: Callable[[int, int], object]) -> None:
        """Call `work(start, stop)` for slices of the replicates, on the threads."""
        in_threads(work, self.iters, self.threads)


# --- sums ------------------------------------------------------------------------------------


def indexed_sums(fixed: Fixed, draws: Draws) -> Float:
    """Draw rows by index and return their sums, (B, K)."""
    from xpe_kernels.sums import parts, resampled_sums

    n, n_columns = fixed.integers_NK.shape
    table, lanes = _table(fixed)
    out = _aligned((draws.iters, len(table) // n * lanes), table)
    ends_J = parts(n)
    draws.cut(lambda i, j: resampled_sums(table, n, ends_J, draws.word, i, out[i:j]))
    return fixed.restore(out[:, :n_columns])


def _table(fixed: Fixed) -> tuple[Lines, int]:
    """Lay columns out in cache lines, group after group; return the lanes of a line too."""
    n, n_columns = fixed.integers_NK.shape
    if n_columns == 1:
        alone = _aligned((n,), fixed.integers_NK)
        alone[:] = fixed.integers_NK[:, 0]
        return alone, 1
    narrow = not fixed.shift_K.any() and fixed.largest * n < 2**31
    lanes = 16 if narrow else 8
    n_groups = -(-n_columns // lanes)
    like: Lines = np.empty(0, np.int32) if narrow else fixed.integers_NK
    table = _aligned((n_groups * n, lanes), like)
    for group in range(n_groups):
        columns = fixed.integers_NK[:, group * lanes : (group + 1) * lanes]
        table[group * n : (group + 1) * n, : columns.shape[1]] = columns
    return table, lanes


def _aligned(shape: tuple[int, ...], like: Lines) -> Lines:
    """Return zeros of the dtype of `like` that start at a cache line."""
    size = int(np.prod(shape)) * like.itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(like.dtype).reshape(shape)


def kinds(integers_NK: Integers) -> tuple[Integers, Integers] | None:
    """Return the distinct rows, sorted, and how often they occur, cumulated; None if many."""
    most = min(_FEW, len(integers_NK) // _ROWS_A_KIND)
    codes_N = _codes(integers_NK)
    if len(np.unique(codes_N[:1000])) > most:
        return None
    found, first = np.unique(codes_N, return_index=True)
    if len(found) > most:
        return None
    places_N = np.searchsorted(found, codes_N)
    rows_DK = integers_NK[first]
    if not np.array_equal(rows_DK[places_N], integers_NK):
        return None  # two rows with one code
    order_D = np.lexsort(rows_DK.T[::-1])
    return rows_DK[order_D], np.cumsum(np.bincount(places_N)[order_D])


def _codes(integers_NK: Integers) -> Integers:
    """Return a number for each row that differs between different rows, nearly always."""
    codes_N = np.zeros(len(integers_NK), np.int64)
    for column in integers_NK.T:
        codes_N = codes_N * _FACTOR + column
    return codes_N


def counted_sums(fixed: Fixed, rows_DK: Integers, ends_D: Integers, draws: Draws) -> Float:
    """Draw how often each distinct row occurs and return the sums, (B, K)."""
    from xpe_kernels.sums import counted_sums

    columns_KD = np.ascontiguousarray(rows_DK.T)
    out_BK = np.empty((draws.iters, len(columns_KD)), np.int64)
    draws.cut(lambda i, j: counted_sums(columns_KD, ends_D, draws.word, i, out_BK[i:j]))
    return fixed.restore(out_BK)


# --- quantiles -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quantile:
    """Which order statistic: interpolated at (T - 1)·q, or the one of rank floor(T·q)."""

    q: float
    upper: bool

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1:
            raise ConfigError(f"a quantile must be in [0, 1], got {self.q}")

    def places(self, totals_B: Integers) -> Float:
        """Return the place in each sorted resample of T values, whole if not interpolated."""
        if self.upper:
            capped_B: Float = np.minimum(np.floor(totals_B * self.q), totals_B - 1.0)
            return capped_B
        return np.asarray((totals_B - 1) * self.q, dtype=np.float64)


def descended_quantiles(values_N: Float, quantile: Quantile, draws: Draws) -> Float:
    """Draw only what decides the order statistics, (B,)."""
    from xpe_kernels.order import order_ranks

    n = len(values_N)
    place_B = quantile.places(np.full(draws.iters, n))
    low, high = int(np.floor(place_B[0])), int(np.ceil(place_B[0]))
    out_B2 = np.empty((draws.iters, 2), np.int64)
    draws.cut(lambda i, j: order_ranks(n, low, high, draws.word, i, out_B2[i:j]))
    return _between(np.sort(values_N), out_B2, place_B)


def walked_quantiles(
    values_NS: Float, codes_N: Integers, quantile: Quantile, draws: Draws
) -> Float:
    """Draw units by index and walk through the sorted values of each column, (B, S)."""
    from xpe_kernels.order import drawn_order_ranks
    from xpe_kernels.sums import parts

    order_NS = np.argsort(values_NS, axis=0, kind="stable")
    units_SN = np.ascontiguousarray(codes_N[order_NS].T, dtype=np.int32)
    sizes_U = np.bincount(codes_N)
    ends_J = parts(len(sizes_U))
    n_columns = values_NS.shape[1]
    out_BS2 = np.empty((draws.iters, n_columns, 2), np.int64)
    totals_B = np.empty(draws.iters, np.int64)
    q, upper = float(quantile.q), bool(quantile.upper)

    def work(i: int, j: int) -> None:
        outs = out_BS2[i:j], totals_B[i:j]
        drawn_order_ranks(units_SN, sizes_U, ends_J, q, upper, draws.word, i, *outs)

    draws.cut(work)
    place_B = quantile.places(totals_B)
    columns = [_between(np.sort(values_NS[:, s]), out_BS2[:, s], place_B) for s in range(n_columns)]
    return np.stack(columns, axis=1)


def _between(sorted_N: Float, ranks_B2: Integers, place_B: Float) -> Float:
    low_B, high_B = sorted_N[ranks_B2[:, 0]], sorted_N[ranks_B2[:, 1]]
    between_B: Float = low_B + (high_B - low_B) * (place_B - np.floor(place_B))
    return between_B
