"""What the kernels assume of rows and clusters, checked once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xpe.errors import DataError
from xpe.types import Float

Clusters = Sequence[str | int | None]


def finite_rows(rows: ArrayLike) -> Float:
    """Return (N, K) float64 with N >= 2 and K >= 1, all finite, else raise DataError."""
    rows_NK = np.asarray(rows, dtype=np.float64)
    if rows_NK.ndim != 2:
        raise DataError(f"rows to resample need two axes (rows, columns), got {rows_NK.ndim}")
    if len(rows_NK) < 2 or rows_NK.shape[1] < 1:
        raise DataError(
            f"resampling needs at least 2 rows and 1 column, got {rows_NK.shape[0]} "
            f"and {rows_NK.shape[1]}"
        )
    bad_NK = ~np.isfinite(rows_NK)
    if bad_NK.any():
        row, column = (int(place[0]) for place in np.nonzero(bad_NK))
        raise DataError(
            f"rows to resample must be finite, got {rows_NK[row, column]} in row {row}, "
            f"column {column}"
        )
    return rows_NK


def finite_values(values: ArrayLike) -> Float:
    """Return (N,) float64 with N >= 2, all finite, else raise DataError."""
    values_N = np.asarray(values, dtype=np.float64)
    if values_N.ndim != 1:
        raise DataError(f"values to resample need one axis, got {values_N.ndim}")
    return finite_rows(values_N[:, None])[:, 0].copy()


def units(rows_NK: Float, clusters: Clusters | None) -> Float:
    """Return the rows that are drawn: those given, or their sums by cluster."""
    if clusters is None:
        return rows_NK
    codes_N = cluster_codes(clusters, len(rows_NK))
    return np.stack([np.bincount(codes_N, weights=column) for column in rows_NK.T], axis=1)


def cluster_codes(clusters: Clusters, n: int) -> NDArray[np.int64]:
    """Number the clusters of `n` rows in the order of their first rows, from 0."""
    if len(clusters) != n:
        raise DataError(f"expected a cluster for each of {n} rows, got {len(clusters)}")
    numbers: dict[object, int] = {}
    codes_N = np.array(
        [
            numbers.setdefault((row,) if name is None else name, len(numbers))
            for row, name in enumerate(clusters)
        ],
        np.int64,
    )
    if len(numbers) < 2:
        raise DataError(f"resampling clusters needs at least 2, got only {clusters[0]!r}")
    return codes_N
