"""Closed-form standard errors. NaN where undefined (one sample, one cluster), never 0.

Sums are exactly rounded (`math.fsum`), so that no order of samples and no CPU moves a bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xpe.errors import DataError
from xpe.types import Float

_SQUARE_OVERFLOWS = 1e100


def mean_stderr(values_N: Float) -> float:
    """Return sd / √n with n − 1 degrees of freedom (S1)."""
    _check_finite(values_N)
    return spread(values_N) / math.sqrt(len(values_N)) if len(values_N) > 1 else math.nan


def clustered_stderr(
    values_N: Float, codes_N: NDArray[np.intp], *, corrected: bool = True
) -> float:
    """Standard error of a mean when samples of one cluster share chance (S3, S4).

    `codes_N` numbers the clusters from 0. `corrected` multiplies by √(G/(G − 1)), which goes
    with Student's t on G − 1 degrees of freedom. Miller 2024, arXiv 2411.00640.
    """
    if len(codes_N) != len(values_N):
        raise DataError(
            f"expected a cluster for each of {len(values_N)} values, got {len(codes_N)}"
        )
    return ratio_stderr(
        cluster_sums(values_N[:, None], codes_N)[:, 0],
        np.bincount(codes_N).astype(np.float64),
        corrected=corrected,
    )


def ratio_stderr(numerator_N: Float, denominator_N: Float, *, corrected: bool = True) -> float:
    """Delta-method standard error of Σm / Σh over independent rows (S20).

    √(Σ(m − R·h)²) / Σh, times √(n/(n − 1)) if `corrected`. With cluster sums and sizes as rows
    it is the clustered standard error of the mean.
    """
    _check_finite(numerator_N)
    _check_finite(denominator_N)
    n, total = len(numerator_N), math.fsum(denominator_N)
    if len(denominator_N) != n or (denominator_N < 0).any():
        raise DataError(f"expected {n} denominators >= 0, got {denominator_N}")
    if n < 2 or total == 0:
        return math.nan
    residual_N = numerator_N - math.fsum(numerator_N) / total * denominator_N
    factor = n / (n - 1) if corrected else 1.0
    return math.sqrt(factor * _squares(residual_N)) / total


def spread(values_N: Float) -> float:
    """Return the standard deviation with n − 1 degrees of freedom; NaN for fewer than two."""
    n = len(values_N)
    if n < 2:
        return math.nan
    # Squares of perplexities beyond 1e154 overflow; a power of two scales without rounding.
    peak = float(np.abs(values_N).max())
    scale = 2.0 ** (math.frexp(peak)[1] - 1) if peak > _SQUARE_OVERFLOWS else 1.0
    scaled_N = values_N / scale
    return scale * math.sqrt(_squares(scaled_N - math.fsum(scaled_N) / n) / (n - 1))


def effective_size(n: int, plain: float, clustered: float, n_clusters: int) -> float:
    """Return n / deff, deff = (clustered / plain)²: how many independent samples these are worth.

    Never above n. Without any spread in the data the design effect is unknown; the number of
    clusters is then the safe answer.
    """
    if plain == 0:
        return float(n_clusters)
    deff = (clustered / plain) ** 2
    return float(n) if deff <= 1 else n / deff


def totals(rows_NK: Float) -> Float:
    """Sum each column exactly rounded: (K,)."""
    return np.array([math.fsum(column_N) for column_N in rows_NK.T])


def cluster_codes(names: Sequence[str | None]) -> NDArray[np.intp] | None:
    """Number the clusters in order of appearance; a sample without one is its own.

    None if no sample names a cluster.
    """
    if all(name is None for name in names):
        return None
    known: dict[object, int] = {}
    keys = (("alone", place) if name is None else name for place, name in enumerate(names))
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.intp)


def cluster_sums(rows_NK: Float, codes_N: NDArray[np.intp]) -> Float:
    """Add up the rows of each cluster: (G, K)."""
    sums_GK = np.zeros((int(codes_N.max()) + 1, rows_NK.shape[1]))
    np.add.at(sums_GK, codes_N, rows_NK)
    return sums_GK


def _check_finite(values_N: Float) -> None:
    if not np.isfinite(values_N).all():
        place = int(np.argmin(np.isfinite(values_N)))
        raise DataError(f"values must be finite, got {values_N[place]} in place {place}")


def _squares(values_N: Float) -> float:
    return math.fsum(values_N * values_N)
