"""Closed and exact forms of bootstrap standard errors: what infinitely many replicates give."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from xpe.types import Float


def sums_stderr(score: Callable[[Float], Float], rows_NK: Float) -> float | None:
    """Exact error of a registered function of sums; None where there is no form for these rows."""
    form = _forms().get(score)
    return None if form is None else form(rows_NK)


@cache
def _forms() -> Mapping[Callable[[Float], Float], Callable[[Float], float | None]]:
    from xpe.metrics.aggregations import get_aggregation
    from xpe.types import Sums

    by_name = {
        "perplexity": perplexity_stderr,
        "f1": f1_stderr,
        "matthews_corrcoef": mcc_stderr,
    }
    kinds = {name: get_aggregation(name).kind("") for name in by_name}
    return {kind.score: by_name[name] for name, kind in kinds.items() if isinstance(kind, Sums)}


def perplexity_stderr(rows_NK: Float) -> float | None:
    """Exact error of exp(−mean) for rows (log likelihood, 1).

    E[exp(−c·mean*)] = (mean of exp(−c·x/n))ⁿ, so the variance is closed. Rows of unequal weight
    (words, bytes) have no such form.
    """
    if len(rows_NK) < 2 or not (rows_NK[:, 1] == 1).all():
        return None
    n = len(rows_NK)
    centre = math.fsum(rows_NK[:, 0]) / n
    gap_N = (centre - rows_NK[:, 0]) / n
    first = n * math.log1p(math.fsum(np.expm1(gap_N)) / n)
    second = n * math.log1p(math.fsum(np.expm1(2 * gap_N)) / n)
    return math.exp(first - centre) * math.sqrt(max(0.0, math.expm1(second - 2 * first)))


def f1_stderr(rows_NK: Float) -> float | None:
    """Exact error of F1 for rows of one-hot (hits, false alarms, misses, …).

    F1 = 2t/(t + s), with s, the rows that are not true negatives, binomial, and t binomial given
    s.
    """
    n = len(rows_NK)
    if n < 2 or not (np.isin(rows_NK, (0.0, 1.0)).all() and (rows_NK.sum(axis=1) <= 1).all()):
        return None
    hits, errors = float(rows_NK[:, 0].sum()), float(rows_NK[:, 1:3].sum())
    if not hits + errors:
        return 0.0
    first = second = 0.0
    for size, chance in _binomial(n, (hits + errors) / n):
        counts_T, chances_T = _columns(_binomial(size, hits / (hits + errors)))
        scores_T = 2 * counts_T / (counts_T + size) if size else np.zeros(len(counts_T))
        first += chance * float(chances_T @ scores_T)
        second += chance * float(chances_T @ scores_T**2)
    return math.sqrt(max(0.0, second - first**2))


def mcc_stderr(rows_NK: Float) -> float | None:
    """Exact error of Matthews' correlation of two classes, None for more.

    Rows are (hit, 1, predicted one-hot, true one-hot). The true ones are binomial; given them,
    so are hits and false alarms. None also where a class is expected fewer than 50 times among
    many rows: the jump where a class vanishes is then no matter of smooth quadrature.
    """
    n, half = len(rows_NK), (rows_NK.shape[1] - 2) // 2
    predicted_NC, true_NC = rows_NK[:, 2 : 2 + half], rows_NK[:, 2 + half :]
    two = not (predicted_NC[:, 2:].any() or true_NC[:, 2:].any())
    if n < 2 or not two or not (true_NC.sum(axis=1) == 1).all():
        return None
    said_N, gold_N = predicted_NC[:, 1], true_NC[:, 1]
    margins = (float(said_N.sum()), float(gold_N.sum()))
    if n > _ENUMERATED and min(*margins, n - margins[0], n - margins[1]) < 50:
        return None
    hits, gold = float(said_N @ gold_N), margins[1]
    hit_rate = hits / gold if gold else 0.0
    alarm_rate = (margins[0] - hits) / (n - gold) if gold < n else 0.0
    first = second = 0.0
    for size, chance in _binomial(n, gold / n):
        hits_H, chances_H = _columns(_binomial(size, hit_rate))
        alarms_A, chances_A = _columns(_binomial(n - size, alarm_rate))
        scores_HA = _mcc(hits_H[:, None], alarms_A[None, :], size, n)
        first += chance * float(chances_H @ scores_HA @ chances_A)
        second += chance * float(chances_H @ scores_HA**2 @ chances_A)
    return math.sqrt(max(0.0, second - first**2))


def _mcc(hits: Float, alarms: Float, gold: float, n: float) -> Float:
    said = hits + alarms
    spread = np.maximum(gold * (n - gold) * said * (n - said), 0.0)
    score: Float = np.where(
        spread > 0, (n * hits - gold * said) / np.sqrt(spread + (spread <= 0)), 0
    )
    return score


_ENUMERATED = 100
_NODES = 32


def _binomial(n: float, p: float) -> list[tuple[float, float]]:
    """Return (count, probability) pairs whose sums are expectations over Binomial(n, p).

    All counts for small whole n or small variance, up to nine standard deviations; else the
    Gauss quadrature of the distribution (Krawtchouk polynomials; Golub and Welsch 1969), which
    is exact for polynomials of the count up to degree 63 and takes any real n.
    """
    if n == 0 or p in (0.0, 1.0):
        return [(n * p, 1.0)]
    if n == round(n) and (n <= _ENUMERATED or n * p * (1 - p) < _ENUMERATED):
        return list(zip(*_likely(round(n), p), strict=True))
    k = np.arange(_NODES, dtype=np.float64)
    diagonal = p * (n - k) + k * (1 - p)
    beside = np.sqrt(k[1:] * p * (1 - p) * (n - k[1:] + 1))
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return list(zip(nodes.tolist(), (vectors[0] ** 2).tolist(), strict=True))


def _columns(pairs: list[tuple[float, float]]) -> tuple[Float, Float]:
    counts, chances = zip(*pairs, strict=True)
    return np.array(counts), np.array(chances)


def _likely(n: int, p: float) -> tuple[list[float], list[float]]:
    """Counts of Binomial(n, p) within nine standard deviations, and their probabilities."""
    from scipy.special import bdtr

    reach = 9 * math.sqrt(n * p * (1 - p)) + 12
    low, high = max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))
    cdf = bdtr(np.arange(low - 1, high + 1, dtype=np.float64), n, p)
    cdf[0] = 0.0 if low == 0 else cdf[0]
    return list(map(float, range(low, high + 1))), np.diff(cdf).tolist()


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
