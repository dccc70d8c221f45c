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
from xpe.stats._fixed import to_fixed
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
        (N,) numbers; for `rows` (N, K) whole numbers: one-hot cells of a 2×2 table, corpus
        statistics.
    iters
        Number of replicates asked for; whole chunks are drawn.
    of
        `sum` gives Python's own `sum` of each resample (of the running Python: 3.12 began to
        compensate), `upper_median` its `sorted(xs)[n // 2]`, `rows` the sums of the rows.
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
        Fewer than two values, a value that is not finite, or rows that are not whole numbers.
    """
    size = min(_CHUNK, Draws(iters, 0, threads).iters)
    chunks = Draws(iters // size, 0, threads)
    if of == "rows":
        return _rows(finite_rows(values), size, chunks)
    make = _sums if of == "sum" else _medians
    return make(finite_values(values), size, chunks).reshape(-1)


def lm_eval_indices(n: int, *, iters: int) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of each resample that the harness draws, (n,) at a time.

    For statistics that are no function of sums; slower than `lm_eval_replicates`.
    """
    size = min(_CHUNK, Draws(iters, 0, 1).iters)
    for chunk in range(iters // size):
        # The list matters: a plain number is seeded in another way.
        generator = np.random.RandomState([chunk])
        for _ in range(size):
            yield (generator.random_sample(n) * n).astype(np.int64)


def _sums(values_N: Float, size: int, chunks: Draws) -> Float:
    from xpe_kernels.harness import harness_sums

    out_CR = np.empty((chunks.iters, size))
    compensated = sys.version_info >= (3, 12)
    chunks.cut(lambda i, j: harness_sums(values_N, compensated, i, out_CR[i:j]))
    return out_CR


def _medians(values_N: Float, size: int, chunks: Draws) -> Float:
    from xpe_kernels.harness import harness_ranks

    n = len(values_N)
    order_N = np.argsort(values_N, kind="stable")
    places_N = np.empty(n, np.int64)
    places_N[order_N] = np.arange(n)
    ranks_CR = np.empty((chunks.iters, size), np.int64)
    chunks.cut(lambda i, j: harness_ranks(places_N, n // 2, i, ranks_CR[i:j]))
    medians_CR: Float = values_N[order_N][ranks_CR]
    return medians_CR


def _rows(rows_NK: Float, size: int, chunks: Draws) -> Float:
    from xpe_kernels.harness import harness_rows

    fixed = to_fixed(rows_NK)
    if fixed.shift_K.any():
        raise DataError("rows resampled as the harness does must be whole numbers")
    out_CRK = np.zeros((chunks.iters, size, rows_NK.shape[1]), np.int64)
    chunks.cut(lambda i, j: harness_rows(fixed.integers_NK, i, out_CRK[i:j]))
    return fixed.restore(out_CRK.reshape(-1, rows_NK.shape[1]))
