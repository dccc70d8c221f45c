"""Pooled rows of every group of a large tree at once. Axes: L leaves, G groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xpe.errors import DataError
from xpe.types import Float


@dataclass(frozen=True)
class Pooled:
    """One entry a group, (G,), over all leaves below it; NaN where undefined.

    Errors are NaN where one of the leaves has none. `missing` counts leaves without a score,
    which the other fields leave out.
    """

    leaves: NDArray[np.int64]
    missing: NDArray[np.int64]
    n: Float
    micro: Float
    """Σ n·score / Σ n."""
    micro_stderr: Float
    """√Σ(n·stderr)² / Σ n (S16)."""
    macro: Float
    """Σ score / leaves."""
    macro_stderr: Float
    """√Σ stderr² / leaves (S17)."""
    pooled_stderr: Float
    """√(Σ(n - 1)·n·stderr² / (Σ n - leaves) / Σ n): that of lm-evaluation-harness."""


def pooled_tree(
    group_of_leaf: ArrayLike,
    n: ArrayLike,
    score: ArrayLike,
    stderr: ArrayLike,
    parent_of_group: ArrayLike,
) -> Pooled:
    """Pool the leaves of each group, bottom-up, in one pass.

    Parameters
    ----------
    group_of_leaf
        (L,) place of each leaf's group.
    n, score, stderr
        (L,) samples, score (NaN: missing) and standard error (NaN: unknown) of each leaf.
    parent_of_group
        (G,) place of each group's group, which is beyond its own (inner groups come first); -1
        for a root.

    Raises
    ------
    DataError
        Mismatched lengths, a group out of range or out of order, a negative n or standard error,
        an infinite value.
    """
    groups_L = np.asarray(group_of_leaf, dtype=np.int64)
    parents_G = np.asarray(parent_of_group, dtype=np.int64)
    columns = [np.asarray(column, dtype=np.float64) for column in (n, score, stderr)]
    _check_order(groups_L, parents_G)
    _check_leaves(len(groups_L), *columns)
    from xpe_kernels.tree import pool

    counts_G2 = np.zeros((len(parents_G), 2), np.int64)
    out_G6 = np.empty((len(parents_G), 6))
    pool(groups_L, *columns, parents_G, counts_G2, out_G6)
    return Pooled(*counts_G2.T, *out_G6.T)


def _check_order(groups_L: NDArray[np.int64], parents_G: NDArray[np.int64]) -> None:
    n_groups = len(parents_G)
    lost_L = (groups_L < 0) | (groups_L >= n_groups)
    if lost_L.any():
        leaf = int(np.argmax(lost_L))
        raise DataError(f"the group of leaf {leaf} must be one of {n_groups}, got {groups_L[leaf]}")
    wrong_G = (parents_G != -1) & ((parents_G <= np.arange(n_groups)) | (parents_G >= n_groups))
    if wrong_G.any():
        group = int(np.argmax(wrong_G))
        raise DataError(
            f"the parent of group {group} must be -1 or in {group + 1}..{n_groups - 1}, "
            f"got {parents_G[group]}"
        )


def _check_leaves(n_leaves: int, n_L: Float, score_L: Float, stderr_L: Float) -> None:
    lengths = [n_leaves, len(n_L), len(score_L), len(stderr_L)]
    if len(set(lengths)) != 1:
        raise DataError(f"groups, n, score and stderr of leaves need equal lengths, got {lengths}")
    bad_L = np.isinf(score_L) | ~((n_L >= 0) & (n_L < np.inf)) | np.isinf(stderr_L) | (stderr_L < 0)
    if bad_L.any():
        leaf = int(np.argmax(bad_L))
        raise DataError(
            f"leaf {leaf} needs n >= 0, a finite score and a standard error >= 0, "
            f"got n={n_L[leaf]}, score={score_L[leaf]}, stderr={stderr_L[leaf]}"
        )
