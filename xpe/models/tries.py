"""Several rows that begin alike, packed into one sequence in which nothing is there twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xpe.models.windows import Row


@dataclass(frozen=True)
class Trie:
    """The tokens that rows read, as a tree laid out in one sequence.

    Node n has token `tokens[n]`, follows node `parents[n]` (-1: the header), and stands at
    `depths[n]` behind the header. `reads[r]` are the nodes at which row r's scored tokens are
    predicted, `targets[r]` those tokens.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]

    @property
    def branches(self) -> bool:
        """Whether it is more than one chain: attention then needs a mask."""
        return any(parent != n - 1 for n, parent in enumerate(self.parents))

    def visible(self, size: int) -> NDArray[np.bool_]:
        """Return which nodes each node attends to, (size, size); padding attends to itself."""
        seen = np.eye(size, dtype=np.bool_)
        for n, parent in enumerate(self.parents):
            if parent >= 0:
                seen[n] |= seen[parent]
        return seen


def packed(rows: Sequence[Row], header: int = 0) -> Trie:
    """Pack rows whose first `header` tokens are computed elsewhere.

    Every scored token is predicted at a node, so `header` is less than the least `start`.
    """
    tokens: list[int] = []
    parents: list[int] = []
    depths: list[int] = []
    children: dict[tuple[int, int], int] = {}
    reads: list[tuple[int, ...]] = []
    for row in rows:
        node, path = -1, []
        for depth, token in enumerate(row.seen[header:]):
            below = children.get((node, token))
            if below is None:
                below = children[node, token] = len(tokens)
                tokens.append(token)
                parents.append(node)
                depths.append(depth)
            node = below
            path.append(node)
        reads.append(tuple(path[row.start - 1 - header :]) if row.tokens[row.start :] else ())
    targets = tuple(row.tokens[row.start :] for row in rows)
    return Trie(tuple(tokens), tuple(parents), tuple(depths), tuple(reads), targets)
