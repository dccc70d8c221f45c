"""The replicates of lm-evaluation-harness 0.4, to the last bit.

It draws min(1000, iters) replicates a chunk, and as many whole chunks as fit: 1,500 give 1,000.
Axes: N rows, K columns, C chunks, R replicates of a chunk, B = C·R.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xpe.errors import DataError
from xpe.stats._checks import finite_rows, finite_values
from xpe.stats._draws import Draws
from xpe.types import Float

_CHUNK = 1000


def lm_eval_replicates(
    values: ArrayLike,
    *,
    iters: int,
    of: Literal["sum", "upper_median", "rows"],
    threads: int | None = None,
) -> Float:
    """Return the replicates that the harness draws, in its order.

    Parameters
    ----------
    values
        (N,) numbers; for `rows` (N, K): one-hot cells of a 2×2 table, corpus statistics.
    iters
        Number of replicates asked for; whole chunks are drawn.
    of
        `sum` gives Python's own `sum` of each resample (of the running Python: 3.12 began to
        compensate), `rows` that of each column, `upper_median` its `sorted(xs)[n // 2]`.
    threads
        None takes all CPUs of this process.

    Returns
    -------
    (B,), or (B, K) for rows
        In the units of `values`.

    Raises
    ------
    ConfigError
        `iters` or `threads` below 1.
    DataError
        Fewer than two values, or a value that is not finite.
    """
    size = min(_CHUNK, Draws(iters, 0, threads).iters)
    chunks = Draws(iters // size, 0, threads)
    if of == "rows":
        return _sums(finite_rows(values), size, chunks)
    values_N = finite_values(values)
    if of == "upper_median":
        return _medians(values_N, size, chunks)
    return _sums(values_N[:, None], size, chunks)[:, 0]


def lm_eval_indices(n: int, *, iters: int) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of each resample that the harness draws, (n,) at a time.

    For statistics that are no function of sums; slower than `lm_eval_replicates`.
    """
    if n < 2:
        raise DataError(f"resampling needs at least 2 values, got {n}")
    size = min(_CHUNK, Draws(iters, 0, 1).iters)
    for chunk in range(iters // size):
        # The list matters: a plain number is seeded in another way.
        generator = np.random.RandomState([chunk])
        for _ in range(size):
            yield (generator.random_sample(n) * n).astype(np.int64)


def _sums(rows_NK: Float, size: int, chunks: Draws) -> Float:
    from xpe_kernels.harness import harness_sums

    columns_KN = np.ascontiguousarray(rows_NK.T)
    out_CRK = np.empty((chunks.iters, size, len(columns_KN)))
    compensated = sys.version_info >= (3, 12)
    chunks.cut(lambda i, j: harness_sums(columns_KN, compensated, i, out_CRK[i:j]))
    return out_CRK.reshape(-1, len(columns_KN))


def _medians(values_N: Float, size: int, chunks: Draws) -> Float:
    from xpe_kernels.harness import harness_ranks

    n = len(values_N)
    order_N = np.argsort(values_N, kind="stable")
    places_N = np.empty(n, np.int64)
    places_N[order_N] = np.arange(n)
    ranks_CR = np.empty((chunks.iters, size), np.int64)
    chunks.cut(lambda i, j: harness_ranks(places_N, n // 2, i, ranks_CR[i:j]))
    return np.asarray(values_N[order_N][ranks_CR].reshape(-1), dtype=np.float64)
