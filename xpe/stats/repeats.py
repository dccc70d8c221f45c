"""Several answers a question: errors over questions, pass@k and pass^k, split of variance.

Arrays are (N questions, K repeats); the question, never the single answer, is the unit (S14).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xpe.errors import DataError
from xpe.metrics.texts import pass_all_rate, pass_rate
from xpe.stats import intervals
from xpe.stats.closed import mean_stderr, spread
from xpe.stats.intervals import Interval
from xpe.types import Float


class Repeated(NamedTuple):
    """Mean over questions with its error; `within` and `between` as in `variance_split`."""

    value: float
    stderr: float
    ci: Interval
    within: float
    between: float


def repeated_mean(scores_NK: Float, level: float = 0.95) -> Repeated:
    """Estimate a mean from K answers to each of N questions."""
    scores_NK = _checked(scores_NK)
    n, k = scores_NK.shape
    means_N = scores_NK.mean(axis=1)
    value, stderr = float(means_N.mean()), mean_stderr(means_N)
    ci = intervals.t(value, stderr, n - 1, level) if n > 1 else (math.nan, math.nan)
    within_N = scores_NK.var(axis=1, ddof=1) if k > 1 else np.full(n, math.nan)
    within, between = variance_split(means_N, within_N, k)
    return Repeated(value, stderr, ci, within, between)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that one of k answers is right, of n drawn with c right (Chen et al. 2021).

    Unbiased: 1 − C(n−c, k)/C(n, k). NaN for k > n.
    """
    _check_counts(n, c, k)
    return pass_rate(n, c, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Chance that all of k answers are right, C(c, k)/C(n, k) (Yao et al. 2024). NaN for k > n."""
    _check_counts(n, c, k)
    return pass_all_rate(n, c, k)


def mean_pass_rate(
    right_N: NDArray[np.int_], n: int, k: int, *, every: bool = False, level: float = 0.95
) -> tuple[float, float, Interval]:
    """Mean of pass@k (`every`: of pass^k) over questions, its standard error and t interval.

    `right_N` counts the right answers among the n of each question.
    """
    if not len(right_N):
        raise DataError("expected at least one question, got none")
    one = pass_hat_k if every else pass_at_k
    rates_N = np.array([one(n, int(right), k) for right in right_N])
    value = float(rates_N.mean())
    if len(rates_N) < 2 or math.isnan(value):
        return value, math.nan, (math.nan, math.nan)
    stderr = mean_stderr(rates_N)
    return value, stderr, intervals.t(value, stderr, len(rates_N) - 1, level)


def variance_split(means_N: Float, within_N: Float, repeats: float) -> tuple[float, float]:
    """Return the variance within questions, and between their true means.

    `within_N` is that of the repeats of each question. One-way analysis of variance,
    (MSB − MSW) / K; below 0 it is reported as it comes out, NaN for one question.
    """
    within = math.fsum(within_N) / len(within_N)
    return within, spread(means_N) ** 2 - within / repeats


def _checked(scores_NK: Float) -> Float:
    scores_NK = np.asarray(scores_NK, dtype=np.float64)
    if scores_NK.ndim != 2 or 0 in scores_NK.shape:
        raise DataError(f"expected (questions, repeats), got an array of shape {scores_NK.shape}")
    if not np.isfinite(scores_NK).all():
        question = int(np.argmin(np.isfinite(scores_NK).all(axis=1)))
        raise DataError(f"scores must be finite, got {scores_NK[question]} in question {question}")
    return scores_NK


def _check_counts(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and k >= 1):
        raise DataError(f"expected 0 <= c <= n and k >= 1, got n={n}, c={c}, k={k}")
