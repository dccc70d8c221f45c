"""Adding up over a tree of groups. Axes: M nodes (leaves and groups), C components."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xpe_kernels._jit import kernel


@kernel
def add_up(parent_M: NDArray[np.int64], components_MC: NDArray[np.float64]) -> None:
    """Add each node's components to its parent's, bottom-up, in place.

    Pooled variances, micro and macro means are functions of components that add up (Σ n, Σ n·score,
    Σ (n - 1)·n·stderr² …), so one pass over all nodes gives every group of a tree.

    Parameters
    ----------
    parent_M
        (M,) int64, in post-order: parent[i] > i, or -1 for a root.
    components_MC
        (M, C) float64: of each leaf; of groups what they have besides their children, mostly 0.
        Becomes the sums over each node's subtree, added in the order of nodes.

    Notes
    -----
    O(M C) time. Checks nothing: `xpe.stats.pooled.pool` does.
    """
    n_components = components_MC.shape[1]
    for i in range(len(parent_M)):
        up = parent_M[i]
        if up >= 0:
            for c in range(n_components):
                components_MC[up, c] += components_MC[i, c]
