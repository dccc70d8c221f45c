"""Agreement of judges (S21)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

from xpe.errors import DataError


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Agreement beyond chance of two judges on the same items: (p_o − p_e) / (1 − p_e).

    NaN where both give one and the same label throughout: chance alone explains that.
    """
    if len(first) != len(second) or not first:
        raise DataError(f"expected pairs, at least one, got {len(first)} and {len(second)} labels")
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    counts, others = Counter(first), Counter(second)
    expected = sum(counts[label] * others[label] for label in counts) / n**2
    return math.nan if expected == 1 else (observed - expected) / (1 - expected)
