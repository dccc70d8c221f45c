"""How many samples a comparison needs, and what it can detect (S12, S13).

Miller 2024, arXiv 2411.00640: the variance of a paired difference is ω² + σ_A²/K_A + σ_B²/K_B,
with ω² between questions and σ² within a question, over K repeats.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from xpe.errors import ConfigError


def z_sum(alpha: float = 0.05, power: float = 0.8) -> float:
    """Return z(α/2) + z(β), 2.80 for 5 % and 80 %."""
    for name, share in (("alpha", alpha), ("power", power)):
        if not 0 < share < 1:
            raise ConfigError(f"{name} must lie inside (0, 1), got {share}")
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)


def difference_variance(
    omega2: float,
    within_a: float = 0.0,
    within_b: float = 0.0,
    repeats_a: int = 1,
    repeats_b: int = 1,
) -> float:
    """Variance of the paired difference of one question."""
    return omega2 + within_a / repeats_a + within_b / repeats_b


def needed(delta: float, variance: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Number of questions (not rounded) that detect a difference `delta`."""
    if not abs(delta) > 0:
        raise ConfigError(f"delta must not be 0, which no number of samples detects, got {delta}")
    return z_sum(alpha, power) ** 2 * _positive(variance, "variance") / delta**2


def detectable(variance: float, n: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Minimum detectable difference of n questions."""
    return z_sum(alpha, power) * math.sqrt(_positive(variance, "variance") / _positive(n, "n"))


def achieved(delta: float, variance: float, n: float, *, alpha: float = 0.05) -> float:
    """Power of n questions against a difference `delta`, in its own direction."""
    normal = NormalDist()
    spread = math.sqrt(_positive(variance, "variance") / _positive(n, "n"))
    if spread == 0:
        return 1.0 if delta else alpha
    return normal.cdf(abs(delta) / spread - normal.inv_cdf(1 - alpha / 2))


def shares_variance(p_a: float, p_b: float, rho: float = 0.0) -> float:
    """Variance of the difference of two 0/1 answers with shares p and correlation ρ."""
    for name, share in (("p_a", p_a), ("p_b", p_b)):
        if not 0 <= share <= 1:
            raise ConfigError(f"{name} must lie in [0, 1], got {share}")
    if not -1 <= rho <= 1:
        raise ConfigError(f"rho must lie in [-1, 1], got {rho}")
    spread_a, spread_b = p_a * (1 - p_a), p_b * (1 - p_b)
    return spread_a + spread_b - 2 * rho * math.sqrt(spread_a * spread_b)


def _positive(value: float, name: str) -> float:
    if not value >= 0 or (name == "n" and value == 0):
        raise ConfigError(f"{name} must be positive, got {value}")
    return value
