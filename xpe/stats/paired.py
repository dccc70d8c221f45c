"""Comparison of two systems on the same samples.

Differences are A − B, sample by sample; overlap of two separate intervals is no test. Rows and
values are aligned by sample: mismatched lengths raise a DataError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from xpe.errors import DataError
from xpe.stats import intervals
from xpe.stats.closed import cluster_codes, clustered_stderr, mean_stderr
from xpe.stats.intervals import Interval
from xpe.types import Float


@dataclass(frozen=True)
class Difference:
    """A difference with its error; None means undefined, and `why` says the reason.

    `p` is two-sided, `test` names what gave it. `correlation` is that of the samples.
    """

    value: float
    stderr: float | None
    ci: Interval | None
    correlation: float | None
    p: float | None
    test: str | None
    n: int
    why: str | None = None


def paired_difference(
    a_N: Float, b_N: Float, *, clusters: Sequence[str | None] | None = None, level: float = 0.95
) -> Difference:
    """Compare two means by the differences of their samples (S7; clustered S7c).

    Unclustered 0/1 values have Newcombe's interval and the exact McNemar test, in its mid-p form
    from 25 discordant pairs on. All else has Student's t with n − 1, or clusters − 1, degrees of
    freedom.
    """
    _aligned(a_N, b_N)
    gap_N = a_N - b_N
    if not np.isfinite(gap_N).all():
        place = int(np.argmin(np.isfinite(gap_N)))
        raise DataError(f"pairs must be finite, got {a_N[place]} and {b_N[place]} in pair {place}")
    if clusters is not None and len(clusters) != len(gap_N):
        raise DataError(f"expected a cluster for each of {len(gap_N)} pairs, got {len(clusters)}")
    codes_N = cluster_codes(clusters) if clusters is not None else None
    value = math.fsum(gap_N) / len(gap_N)
    units = len(gap_N) if codes_N is None else int(codes_N.max()) + 1
    rho = correlation(a_N, b_N)
    if units < 2:
        why = "n=1" if len(gap_N) == 1 else "one cluster"
        return Difference(value, None, None, rho, None, None, len(gap_N), why)
    stderr = mean_stderr(gap_N) if codes_N is None else clustered_stderr(gap_N, codes_N)
    if codes_N is None and _binary(a_N) and _binary(b_N):
        better, worse = discordant(a_N, b_N)
        right = int(np.count_nonzero((a_N == 1) & (b_N == 1)))
        wrong = len(gap_N) - right - better - worse
        ci = intervals.newcombe_paired(right, better, worse, wrong, level)
        exact = better + worse < 25
        p = mcnemar_exact(better, worse) if exact else mcnemar_midp(better, worse)
        test = "McNemar exact" if exact else "McNemar mid-p"
    else:
        ci = intervals.t(value, stderr, units - 1, level)
        p, test = t_test(value, stderr, units - 1), "t"
    return Difference(value, stderr, ci, rho, p, test, len(gap_N))


def bootstrapped_difference(
    value: float, a_B: Float, b_B: Float, n: int, level: float = 0.95
) -> Difference:
    """Compare two statistics by their replicates on shared draws; `value` is their difference.

    The interval is the percentile one; p is twice the smaller share of replicates beyond 0,
    counting the sample itself, so that it is never 0.
    """
    _aligned(a_B, b_B)
    kept_B = np.isfinite(a_B - b_B)
    a_B, b_B = a_B[kept_B], b_B[kept_B]
    gap_B = a_B - b_B
    if len(gap_B) < 2:
        return Difference(value, None, None, None, None, None, n, "undefined")
    beyond = min(np.count_nonzero(gap_B <= 0), np.count_nonzero(gap_B >= 0))
    return Difference(
        value=value,
        stderr=float(np.std(gap_B, ddof=1)),
        ci=intervals.percentile(gap_B, level),
        correlation=correlation(a_B, b_B),
        p=min(1.0, 2 * (int(beyond) + 1) / (len(gap_B) + 1)),
        test="paired bootstrap",
        n=n,
    )


def combined_stderr(stderr_a: float, stderr_b: float, rho: float = 0.0) -> float:
    """Standard error of a difference from summaries; 0 correlation is the unpaired one."""
    return math.sqrt(stderr_a**2 + stderr_b**2 - 2 * rho * stderr_a * stderr_b)


def correlation(a_N: Float, b_N: Float) -> float | None:
    """Pearson's correlation; None where one of the two does not vary."""
    _aligned(a_N, b_N)
    if len(a_N) < 2 or np.ptp(a_N) == 0 or np.ptp(b_N) == 0:
        return None
    gap_a, gap_b = a_N - a_N.mean(), b_N - b_N.mean()
    return float(gap_a @ gap_b) / math.sqrt(float(gap_a @ gap_a) * float(gap_b @ gap_b))


def z_test(value: float, stderr: float) -> float:
    """Two-sided p of value / stderr under the normal distribution."""
    return 2 * NormalDist().cdf(-abs(_score(value, stderr)))


def t_test(value: float, stderr: float, df: float) -> float:
    """Two-sided p of value / stderr under Student's t."""
    from scipy.special import stdtr

    return 2 * float(stdtr(df, -abs(_score(value, stderr))))


def discordant(a_N: Float, b_N: Float) -> tuple[int, int]:
    """Count the pairs that only A, and that only B, has right."""
    return int(np.count_nonzero(a_N > b_N)), int(np.count_nonzero(a_N < b_N))


def mcnemar_exact(b: int, c: int) -> float:
    """Two-sided p of b against c discordant pairs: Binomial(b + c, 1/2). 1 without any."""
    _check_pairs(b, c)
    return min(1.0, 2 * _binomial_cdf(min(b, c), b + c))


def mcnemar_midp(b: int, c: int) -> float:
    """Exact p less the probability of what was seen: less conservative, still safe."""
    _check_pairs(b, c)
    n = b + c
    if b == c:
        return 1.0 - math.comb(n, b) * 0.5**n / 2
    return 2 * _binomial_cdf(min(b, c), n) - math.comb(n, b) * 0.5**n


def mcnemar_chi2(b: int, c: int) -> tuple[float, float]:
    """Continuity-corrected χ² and its p, for comparison with tables that use it."""
    _check_pairs(b, c)
    if b + c == 0:
        return 0.0, 1.0
    chi2 = max(0, abs(b - c) - 1) ** 2 / (b + c)
    return chi2, math.erfc(math.sqrt(chi2 / 2))


def sign_flip(gap_N: Float) -> float:
    """Exact two-sided p of the mean of up to 20 non-zero differences under flips of sign."""
    gaps = gap_N[gap_N != 0]
    if len(gaps) > 20:
        raise DataError(f"expected at most 20 non-zero differences, got {len(gaps)}")
    codes_B = np.arange(2 ** len(gaps))
    bits_BN = (codes_B[:, None] >> np.arange(len(gaps))) & 1
    sums_B = np.abs((1.0 - 2.0 * bits_BN) @ gaps)
    return float(np.mean(sums_B >= abs(math.fsum(gaps)) - 1e-12))


def _binomial_cdf(k: int, n: int) -> float:
    from scipy.special import bdtr

    return float(bdtr(k, n, 0.5)) if n else 1.0


def _score(value: float, stderr: float) -> float:
    if stderr == 0:
        return math.copysign(math.inf, value) if value else 0.0
    return value / stderr


def _binary(values_N: Float) -> bool:
    return bool(np.isin(values_N, (0.0, 1.0)).all())


def _check_pairs(b: int, c: int) -> None:
    if b < 0 or c < 0:
        raise DataError(f"counts of discordant pairs must be >= 0, got {b} and {c}")


def _aligned(a_N: Float, b_N: Float) -> None:
    if len(a_N) != len(b_N) or not len(a_N):
        raise DataError(f"expected pairs, at least one, got {len(a_N)} and {len(b_N)} values")
