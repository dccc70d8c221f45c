"""Bootstrap replicates: the checked side of the kernels.

Every function gives the same bytes for any number of threads and on any CPU; replicate b depends
on (seed, b) and the number of rows alone, so the first replicates do not change when more are
asked for. Axes: N rows, K columns, G clusters, B replicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from xpe.errors import DataError
from xpe.stats._checks import Clusters, cluster_codes, finite_rows, finite_values, units
from xpe.stats._draws import (
    Draws,
    Quantile,
    counted_sums,
    descended_quantiles,
    indexed_sums,
    kinds,
    walked_quantiles,
)
from xpe.stats._fixed import to_fixed
from xpe.stats._lm_eval import lm_eval_indices, lm_eval_replicates
from xpe.stats._threads import Warmer
from xpe.stats.pooling import pooled
from xpe.types import Float

if TYPE_CHECKING:
    import threading

__all__ = [
    "lm_eval_indices",
    "lm_eval_replicates",
    "resampled_quantiles",
    "resampled_sums",
    "resampled_together",
    "warm",
]


def resampled_sums(
    rows_NK: ArrayLike,
    *,
    iters: int,
    seed: int,
    clusters: Clusters | None = None,
    threads: int | None = None,
    shared: bool = False,
) -> Float:
    """Draw N rows with replacement, `iters` times, and return the sums of their columns, (B, K).

    Parameters
    ----------
    rows_NK
        Sufficient statistics, finite. Sums of whole numbers below 2**53 are exact; others are
        exact to 2**-(61 - log2 N) of the column's largest value, and rounded once.
    iters
        Number of replicates, B.
    seed
        In [0, 2**64).
    clusters
        Who shares chance with whom, (N,): whole clusters are drawn. A row of None is a cluster
        of its own. Sizes differ between replicates then: a mean needs a column of ones to divide
        by.
    threads
        None takes all CPUs of this process.
    shared
        Always draw rows by index, so that all calls with the same N (or number of clusters) and
        seed are resampled together, as paired comparisons need. Otherwise few distinct rows are
        counted instead, which is much faster and of the same distribution; rows given in one call
        are resampled together either way.

    Returns
    -------
    (B, K) float64
        In the units of the columns.

    Raises
    ------
    ConfigError
        `iters`, `seed` or `threads` is out of range.
    DataError
        Fewer than two rows, no columns, a value that is not finite, `clusters` of another length
        or with only one cluster.
    """
    draws = Draws(iters, seed, threads)
    fixed = to_fixed(units(finite_rows(rows_NK), clusters))
    few = None if shared else kinds(fixed.integers_NK)
    if few is None:
        return indexed_sums(fixed, draws)
    return counted_sums(fixed, *few, draws)


def resampled_together(
    tables: Sequence[ArrayLike],
    *,
    iters: int,
    seed: int,
    clusters: Clusters | None = None,
    threads: int | None = None,
) -> tuple[Float, ...]:
    """Resample several tables of the same rows by the same draws: [(N, K1), …] to [(B, K1), …].

    For several metrics of one task, or one metric of several systems: in one pass, and paired.
    Parameters, units and errors as `resampled_sums`; tables of different lengths are a DataError.
    """
    arrays = [finite_rows(table) for table in tables]
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) != 1:
        raise DataError(f"tables resampled together need equally many rows, got {lengths}")
    sums_BK = resampled_sums(
        np.concatenate(arrays, axis=1), iters=iters, seed=seed, clusters=clusters, threads=threads
    )
    ends = np.cumsum([array.shape[1] for array in arrays])[:-1]
    return tuple(np.split(sums_BK, ends, axis=1))


def resampled_quantiles(
    values_N: ArrayLike,
    q: float,
    *,
    iters: int,
    seed: int,
    clusters: Clusters | None = None,
    threads: int | None = None,
    upper: bool = False,
    shared: bool = False,
) -> Float:
    """Return a quantile of each of `iters` resamples, (B,).

    Parameters
    ----------
    values_N
        Finite numbers, or (N, S) for S systems that are resampled together: gives (B, S).
    q
        In [0, 1]; 0.5 is the median.
    upper
        Take the value of rank floor(N·q) (the upper median) instead of interpolating between
        the neighbours of (N - 1)·q.
    shared
        Draw by index, by the draws of `resampled_sums(shared=True)`. Clusters and several systems
        always do.

    Other parameters, and errors, as `resampled_sums`; q out of range is a ConfigError.
    """
    draws = Draws(iters, seed, threads)
    quantile = Quantile(q, upper)
    values = np.asarray(values_N, dtype=np.float64)
    alone = values.ndim == 1
    if alone and clusters is None and not shared:
        return descended_quantiles(finite_values(values), quantile, draws)
    values_NS = finite_rows(values[:, None] if alone else values)
    n = len(values_NS)
    codes_N = np.arange(n) if clusters is None else cluster_codes(clusters, n)
    made_BS = walked_quantiles(values_NS, codes_N, quantile, draws)
    return made_BS[:, 0] if alone else made_BS


# --- compiled ahead --------------------------------------------------------------------------


def warm() -> threading.Thread:
    """Compile the kernels, or load them from the cache, in the background; return the thread.

    Safe to call again, from any thread, and after a fork. Nothing has to wait for it: a kernel
    that is not ready yet is compiled by whoever calls it.
    """
    return _WARMER.start()


def _warm_sums(rows: ArrayLike) -> None:
    resampled_sums(rows, iters=1, seed=0, threads=1)


def _warm_quantiles() -> None:
    resampled_quantiles([1.0, 2.0], 0.5, iters=1, seed=0, threads=1)


_WARMER = Warmer(
    [
        partial(_warm_sums, [[0.0], [1.0]] * 16),  # few distinct rows
        partial(_warm_sums, [[1.0], [2.0]]),
        partial(_warm_sums, [[1.0, 2.0], [3.0, 4.0]]),
        partial(_warm_sums, [[0.1, 0.2], [0.3, 0.4]]),
        _warm_quantiles,
        partial(pooled, [1], [2], [0.5], [0.1]),
    ]
)
