"""Closed and exact forms of bootstrap standard errors: what infinitely many replicates give."""

from __future__ import annotations

import math

import numpy as np

from xpe.types import Float


def quantile_stderr(values_N: Float, quantile: float) -> float:
    """Exact bootstrap standard error of an interpolated sample quantile; NaN for n < 2.

    From the joint distribution of the resampled order statistics r and r + 1: the marginals are
    P(X*(r) ≤ x(k)) = I_{k/n}(r, n − r + 1), and P(X*(r) = x(i) < X*(r+1)) is
    C(n, r) · ((i/n)ʳ − ((i−1)/n)ʳ) · ((n−i)/n)ⁿ⁻ʳ. O(n log n).
    """
    n = len(values_N)
    if n < 2:
        return math.nan
    sorted_N = np.sort(values_N)
    place = (n - 1) * quantile
    rank = min(int(place), n - 2) + 1
    weight = place - (rank - 1)
    centred_N = sorted_N - sorted_N[rank - 1]
    low_N, high_N = _order_pmf(n, rank), _order_pmf(n, rank + 1)
    mean = (1 - weight) * low_N @ centred_N + weight * high_N @ centred_N
    square = (1 - weight) ** 2 * low_N @ centred_N**2 + weight**2 * high_N @ centred_N**2
    if 0 < weight < 1:
        square += 2 * weight * (1 - weight) * _product_moment(centred_N, rank, low_N)
    return math.sqrt(max(0.0, float(square - mean**2)))


def _order_pmf(n: int, rank: int) -> Float:
    """Probability that the rank-th smallest of a resample is the k-th smallest value, (n,)."""
    from scipy.special import betainc

    cdf = betainc(rank, n - rank + 1, np.arange(n + 1) / n)
    return np.asarray(np.diff(cdf), dtype=np.float64)


def _product_moment(sorted_N: Float, rank: int, pmf_N: Float) -> float:
    """E[X*(r) · X*(r+1)] over resamples; `pmf_N` is the distribution of X*(r)."""
    n = len(sorted_N)
    i = np.arange(1, n)
    log_ways = math.lgamma(n + 1) - math.lgamma(rank + 1) - math.lgamma(n - rank + 1)
    log_below = rank * np.log(i / n) + np.log1p(-(((i - 1) / i) ** rank))
    apart_N = np.append(np.exp(log_ways + log_below + (n - rank) * np.log((n - i) / n)), 0.0)
    beyond_N = _mean_of_next(sorted_N, n - rank)
    return float((apart_N * sorted_N) @ beyond_N + (pmf_N - apart_N) @ sorted_N**2)


def _mean_of_next(sorted_N: Float, drawn: int) -> Float:
    """Mean of the smallest of `drawn` draws from the values beyond the i-th, (n,)."""
    n = len(sorted_N)
    mean_N = np.zeros(n)
    mean_N[n - 2] = sorted_N[n - 1]
    for i in range(n - 3, -1, -1):
        skips = ((n - i - 2) / (n - i - 1)) ** drawn
        mean_N[i] = (1 - skips) * sorted_N[i + 1] + skips * mean_N[i + 1]
    return mean_N
