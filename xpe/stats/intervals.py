"""Confidence and credible intervals: each a pure function that returns (low, high).

`level` is the coverage, 0.95 for a 95 % interval. Formulas are textbook ones; see Newcombe (1998)
for `newcombe` and Efron (1987) for `bca`.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from xpe.errors import ConfigError, DataError
from xpe.types import Float

Interval = tuple[float, float]


def z_quantile(level: float) -> float:
    """Return the two-sided normal quantile, 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + _checked(level) / 2)


def t_quantile(level: float, df: float) -> float:
    """Return the two-sided quantile of Student's t with `df` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + _checked(level) / 2))


def normal(value: float, stderr: float, level: float = 0.95) -> Interval:
    """Value ± z·stderr (Wald). Fails near the ends of 0/1 data: prefer `wilson` there."""
    half = z_quantile(level) * stderr
    return value - half, value + half


def t(value: float, stderr: float, df: float, level: float = 0.95) -> Interval:
    """Value ± t·stderr with `df` degrees of freedom."""
    half = t_quantile(level, df) * stderr
    return value - half, value + half


def wilson(k: float, n: float, level: float = 0.95, *, critical: float | None = None) -> Interval:
    """Wilson's score interval for k successes of n; both may be fractional (effective size).

    `critical` replaces the normal quantile, for instance by that of Student's t.
    """
    _check_counts(k, n)
    z = z_quantile(level) if critical is None else critical
    p = k / n
    centre = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if k == 0 else max(0.0, (centre - half) / scale)
    high = 1.0 if k == n else min(1.0, (centre + half) / scale)
    return low, high


def clopper_pearson(k: float, n: float, level: float = 0.95) -> Interval:
    """Clopper and Pearson's exact interval: covers at least `level`, mostly more."""
    from scipy.special import betaincinv

    _check_counts(k, n)
    tail = (1 - _checked(level)) / 2
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - tail))
    return low, high


def beta_posterior(
    k: float, n: float, level: float = 0.95, prior: tuple[float, float] = (1.0, 1.0)
) -> Interval:
    """Equal-tailed credible interval under a Beta prior; uniform unless told otherwise."""
    from scipy.special import betaincinv

    _check_counts(k, n)
    if not min(prior) > 0:
        raise DataError(f"a Beta prior needs two numbers > 0, got {prior}")
    tail = (1 - _checked(level)) / 2
    a, b = prior[0] + k, prior[1] + n - k
    return float(betaincinv(a, b, tail)), float(betaincinv(a, b, 1 - tail))


def jeffreys(k: float, n: float, level: float = 0.95) -> Interval:
    """Credible interval under Jeffreys' prior, Beta(1/2, 1/2)."""
    return beta_posterior(k, n, level, (0.5, 0.5))


def newcombe(k_a: float, n_a: float, k_b: float, n_b: float, level: float = 0.95) -> Interval:
    """Interval for p_A − p_B of two independent samples, from their Wilson bounds."""
    low_a, high_a = wilson(k_a, n_a, level)
    low_b, high_b = wilson(k_b, n_b, level)
    p_a, p_b = k_a / n_a, k_b / n_b
    difference = p_a - p_b
    return (
        difference - math.hypot(p_a - low_a, high_b - p_b),
        difference + math.hypot(high_a - p_a, p_b - low_b),
    )


def newcombe_paired(
    both: int, only_a: int, only_b: int, neither: int, level: float = 0.95
) -> Interval:
    """Interval for p_A − p_B of the same samples, from Wilson bounds and the φ coefficient.

    Newcombe 1998, "Improved confidence intervals for the difference between binomial proportions
    based on paired data", method 10. Has a width even where no pair is discordant.
    """
    n = both + only_a + only_b + neither
    if min(both, only_a, only_b, neither) < 0:
        raise DataError(f"counts must be >= 0, got {both}, {only_a}, {only_b} and {neither}")
    (p_a, low_a, high_a), (p_b, low_b, high_b) = (
        (k / n, *wilson(k, n, level)) for k in (both + only_a, both + only_b)
    )
    cross = both * neither - only_a * only_b
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    phi = 0.0
    if margins:
        phi = (max(cross - n / 2, 0) if cross > 0 else cross) / math.sqrt(margins)
    down_a, up_a, down_b, up_b = p_a - low_a, high_a - p_a, p_b - low_b, high_b - p_b
    difference = p_a - p_b
    return (
        difference - math.sqrt(max(0.0, down_a**2 - 2 * phi * down_a * up_b + up_b**2)),
        difference + math.sqrt(max(0.0, up_a**2 - 2 * phi * up_a * down_b + down_b**2)),
    )


def superiority(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Chance that p_A > p_B for independent (k, n) under uniform priors, by quadrature."""
    from scipy.special import betainc, betaincinv

    (k_a, n_a), (k_b, n_b) = a, b
    _check_counts(k_a, n_a)
    _check_counts(k_b, n_b)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    p_a = betaincinv(1 + k_a, 1 + n_a - k_a, (nodes + 1) / 2)
    return float(weights @ betainc(1 + k_b, 1 + n_b - k_b, p_a)) / 2


def percentile(replicates_B: Float, level: float = 0.95) -> Interval:
    """Quantiles of the bootstrap replicates."""
    _check_finite(replicates_B)
    _checked(level)
    low, high = np.quantile(replicates_B, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bca(value: float, replicates_B: Float, jackknife_N: Float, level: float = 0.95) -> Interval:
    """Bias-corrected and accelerated interval.

    `jackknife_N` holds the statistic with each unit left out. Where all replicates lie on one
    side of `value` the correction is undefined, and the percentile interval is returned.
    """
    _check_finite(replicates_B)
    _check_finite(jackknife_N)
    _checked(level)
    normal_dist = NormalDist()
    below = float(np.mean(replicates_B < value) + np.mean(replicates_B == value) / 2)
    if below in (0.0, 1.0):
        return percentile(replicates_B, level)
    bias = normal_dist.inv_cdf(below)
    gap = jackknife_N.mean() - jackknife_N
    spread = float((gap**2).sum()) ** 1.5
    acceleration = float((gap**3).sum()) / (6 * spread) if spread else 0.0
    tails = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + normal_dist.inv_cdf(tail)
        tails.append(normal_dist.cdf(bias + shifted / (1 - acceleration * shifted)))
    low, high = np.quantile(replicates_B, tails)
    return float(low), float(high)


def _checked(level: float) -> float:
    if not 0 < level < 1:
        raise ConfigError(f"the level of an interval must lie inside (0, 1), got {level}")
    return level


def _check_finite(values_B: Float) -> None:
    if not len(values_B) or not np.isfinite(values_B).all():
        raise DataError(f"an interval needs finite replicates, at least one, got {values_B}")


def _check_counts(k: float, n: float) -> None:
    if not (n > 0 and 0 <= k <= n):
        raise DataError(f"expected 0 <= k <= n and n > 0, got k={k} of n={n}")
