"""Rows of groups: means of means, and the standard errors that fit them (S16–S18).

Axes: M members, group after group, and G groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xpe.errors import DataError
from xpe.types import Float

_SQUARE_OVERFLOWS = 1e150


class MeanRow(NamedTuple):
    """One group's entry of `Means`."""

    value: float
    stderr: float
    df: float
    size: float


@dataclass(frozen=True)
class Means:
    """A mean of each group, (G,), with what its interval needs; NaN where undefined."""

    value_G: Float
    stderr_G: Float
    df_G: Float
    """Degrees of freedom (Welch and Satterthwaite); NaN without spread."""
    size_G: Float
    """How many samples of equal variance the mean is worth."""

    def at(self, place: int) -> MeanRow:
        """Return the entry of one group."""
        columns = (self.value_G, self.stderr_G, self.df_G, self.size_G)
        return MeanRow(*(float(column_G[place]) for column_G in columns))


@dataclass(frozen=True)
class Pooled:
    """The rows of G groups; errors are NaN where one of the leaves has none."""

    n_G: Float
    """Samples of all leaves."""
    micro: Means
    """Weighted by size: Σ n·score / Σ n with √Σ(n·stderr)² / Σ n (S16)."""
    macro: Means
    """Weighted equally: Σ score / k with √Σ stderr² / k (S17)."""
    pooled_stderr_G: Float
    """√(Σ(n - 1)·n·stderr² / (Σ n - k) / Σ n), that of lm-evaluation-harness, which leaves out
    the spread between tasks. NaN where Σ n = k."""
    total_stderr_G: Float
    """That of all samples thrown together: within and between tasks (S18)."""


def pooled(
    ends_G: ArrayLike,
    n_M: ArrayLike,
    score_M: ArrayLike,
    variance_M: ArrayLike,
    *,
    compensated: bool = True,
) -> Pooled:
    """Pool the leaves of each group.

    Parameters
    ----------
    ends_G
        The members [ends[g-1], ends[g]) are the leaves of group g; a leaf of several groups is a
        member of each.
    n_M, score_M, variance_M
        Samples, score and squared standard error (NaN: unknown) of each member.
    compensated
        Add as Python's `sum` does since 3.12; else from left to right, as it did before.

    Raises
    ------
    DataError
        Mismatched lengths, ends out of order, fewer samples than one, a score that is not finite,
        a variance that is negative or infinite.
    """
    ends = np.asarray(ends_G, dtype=np.int64)
    columns = [np.asarray(column, dtype=np.float64) for column in (n_M, score_M, variance_M)]
    _check_lengths(ends, columns)
    _check_leaves(*columns)
    from xpe_kernels.pooling import pool

    out_GC = np.empty((len(ends), 11))
    pool(ends, *columns, compensated, out_GC)
    n_G, *means, pooled_G, total_G = out_GC.T
    return Pooled(n_G, Means(*means[:4]), Means(*means[4:]), pooled_G, total_G)


def squared(stderr: float | None) -> float:
    """Square by Python's own power, which is the harness's to the last bit; NaN: unknown."""
    return math.nan if stderr is None or stderr > _SQUARE_OVERFLOWS else stderr**2


def _check_lengths(ends_G: NDArray[np.int64], columns: list[Float]) -> None:
    lengths = [len(column) for column in columns]
    if len(set(lengths)) != 1:
        raise DataError(f"n, score and variance of leaves need equal lengths, got {lengths}")
    whole_G = np.concatenate([[0], ends_G])
    if (np.diff(whole_G) < 0).any() or whole_G[-1] != lengths[0]:
        raise DataError(f"ends of groups must rise to {lengths[0]}, got {ends_G.tolist()}")


def _check_leaves(n_M: Float, score_M: Float, variance_M: Float) -> None:
    bad_M = ~((n_M >= 1) & (n_M < np.inf)) | ~np.isfinite(score_M)
    bad_M |= np.isinf(variance_M) | (variance_M < 0)
    if bad_M.any():
        leaf = int(np.argmax(bad_M))
        raise DataError(
            f"leaf {leaf} needs n >= 1, a finite score and a variance >= 0, "
            f"got n={n_M[leaf]}, score={score_M[leaf]}, variance={variance_M[leaf]}"
        )
