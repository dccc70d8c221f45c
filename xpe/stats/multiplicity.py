"""Adjusted p-values of many comparisons (S19). The family is one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xpe.errors import DataError


def holm(ps: Sequence[float]) -> list[float]:
    """Control the chance of any false finding: for a planned table. In the order of `ps`."""
    m = len(_checked(ps))
    adjusted, largest = [0.0] * m, 0.0
    for rank, place in enumerate(sorted(range(m), key=ps.__getitem__)):
        largest = max(largest, (m - rank) * ps[place])
        adjusted[place] = min(1.0, largest)
    return adjusted


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Control the share of false findings: for exploration. In the order of `ps`."""
    m = len(_checked(ps))
    adjusted, smallest = [0.0] * m, 1.0
    for rank, place in reversed(list(enumerate(sorted(range(m), key=ps.__getitem__), start=1))):
        smallest = min(smallest, m * ps[place] / rank)
        adjusted[place] = smallest
    return adjusted


ADJUSTMENTS: Mapping[str, Callable[[Sequence[float]], list[float]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": list,
}


def _checked(ps: Sequence[float]) -> Sequence[float]:
    for p in ps:
        if not 0 <= p <= 1:
            raise DataError(f"a p-value lies in [0, 1], got {p}")
    return ps
