"""Means of means, and the standard errors that fit them (S16–S18). Pure functions of numbers.

`values`, `stderrs` and `sizes` are aligned: one entry a task. All are at least one long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xpe.errors import DataError


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return Σ w·v / Σ w."""
    _aligned(values, weights)
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def weighted_stderr(stderrs: Sequence[float], weights: Sequence[float]) -> float:
    """Standard error of a weighted mean of independent values: √Σ(w·se)² / Σw.

    With sizes as weights it goes with the micro mean, with equal weights with the macro mean.
    """
    _aligned(stderrs, weights)
    return math.sqrt(
        math.fsum((se * w) ** 2 for se, w in zip(stderrs, weights, strict=True))
    ) / math.fsum(weights)


def pooled_stderr(stderrs: Sequence[float], sizes: Sequence[int]) -> float:
    """Standard error of a group in lm-evaluation-harness, from the variance within tasks.

    √(Σ(n−1)·n·se² / (N−k) / N): leaves out the spread between tasks. NaN where N = k.
    """
    _aligned(stderrs, sizes)
    total, tasks = sum(sizes), len(sizes)
    if total <= tasks:
        return math.nan
    within = sum((n - 1) * se**2 * n for se, n in zip(stderrs, sizes, strict=True))
    return math.sqrt(within / (total - tasks) / total)


def total_stderr(values: Sequence[float], stderrs: Sequence[float], sizes: Sequence[int]) -> float:
    """Standard error of the mean of all samples thrown together: within and between tasks."""
    _aligned(values, stderrs)
    _aligned(stderrs, sizes)
    total = sum(sizes)
    if total < 2:
        return math.nan
    mean = weighted_mean(values, sizes)
    squares = math.fsum(
        (n - 1) * n * se**2 + n * (v - mean) ** 2
        for v, se, n in zip(values, stderrs, sizes, strict=True)
    )
    return math.sqrt(squares / (total - 1) / total)


def satterthwaite(stderrs: Sequence[float], weights: Sequence[float], dfs: Sequence[int]) -> float:
    """Degrees of freedom of a weighted mean (Welch and Satterthwaite); NaN without spread."""
    parts = [(se * w) ** 2 for se, w in zip(stderrs, weights, strict=True)]
    below = math.fsum(part**2 / df for part, df in zip(parts, dfs, strict=True) if part)
    return math.fsum(parts) ** 2 / below if below else math.nan


def _aligned(left: Sequence[float], right: Sequence[float]) -> None:
    if not left or len(left) != len(right):
        raise DataError(
            f"expected equally many numbers, at least one, got {len(left)} and {len(right)}"
        )
    if any(size < 0 for size in right):
        raise DataError(f"weights and sizes must be >= 0, got {min(right)}")
