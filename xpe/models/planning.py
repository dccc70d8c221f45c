"""Which requests are computed together: pure functions of their tokens and of a budget.

Requests that begin alike go into one batch, so that what they share is computed once; among
those, like lengths go together, longest first, so that little is padded and a budget that is
too large shows at once.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xpe.models.windows import Tokens

Batches: TypeAlias = list[list[int]]

FAMILY = 64
"""Requests whose first 64 tokens are equal form a family."""
BLOCK = 32
"""A shared header is cut to a multiple of this, so that neighbouring batches share it too."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a request costs: the tokens it begins with, and how many come on top of them.

    `tokens` is text with one character a token, which is compact and compared at once; `as_text`
    makes it.
    """

    tokens: str
    more: int = 0

    @property
    def cost(self) -> int:
        """Tokens to compute when nothing is shared."""
        return len(self.tokens) + self.more


def as_text(tokens: Tokens) -> str:
    """Return one character a token."""
    return "".join(map(chr, tokens))


def shared_length(sequences: Iterable[Tokens | str]) -> int:
    """Return how many tokens all sequences begin with alike."""
    rest = iter(sequences)
    first = next(rest, ())
    length = len(first)
    for other in rest:
        length = min(length, len(other))
        if first[:length] != other[:length]:
            length = bisect_left(
                range(length), True, key=lambda i: first[: i + 1] != other[: i + 1]
            )
    return length


def header_length(sequences: Sequence[Tokens | str], most: int = sys.maxsize) -> int:
    """Return the length of a shared beginning that is worth a cache of its own, else 0."""
    if len(sequences) < 2:
        return 0
    length = min(shared_length(sequences), most)
    return length - length % BLOCK


def planned(needs: Sequence[Need], budget: int, least: int = 0) -> Batches:
    """Deal the indices of `needs` into batches of at most `budget` padded tokens.

    A request that exceeds the budget on its own gets a batch of its own. A family that costs
    fewer than `least` tokens is worked off together with those that have none: where each step
    of a batch costs time whatever its size, a small batch costs more than its header saves.
    """
    return [
        batch
        for family, header in _families(needs, least)
        for batch in dealt([needs[i].cost - header for i in family], budget, family, header)
    ]


def dealt(
    costs: Sequence[int], budget: int, names: Sequence[int] | None = None, header: int = 0
) -> Batches:
    """Cut a list into consecutive batches whose padded size stays within the budget.

    Parameters
    ----------
    costs
        Tokens of each member beyond the header.
    names
        What to put into the batches, one a member; the indices if None.
    header
        Tokens that a batch computes once.
    """
    batches: Batches = []
    widest = 0
    for name, cost in zip(range(len(costs)) if names is None else names, costs, strict=True):
        widest = max(widest, cost)
        if batches and header + widest * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(name)
        else:
            batches.append([name])
            widest = cost
    return batches


def grouped(keys: Sequence[Hashable]) -> Batches:
    """Return the indices of equal keys together, in the order of first appearance."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i, key in enumerate(keys):
        groups[key].append(i)
    return list(groups.values())


def _families(needs: Sequence[Need], least: int) -> Iterator[tuple[list[int], int]]:
    """Yield the members of each family in the order of work, and the length of their header."""
    families = grouped([need.tokens[:FAMILY] for need in needs])
    large = [len(f) > 1 and sum(needs[i].cost for i in f) >= least for f in families]
    shared = [family for family, is_large in zip(families, large, strict=True) if is_large]
    loners = [
        i for family, is_large in zip(families, large, strict=True) if not is_large for i in family
    ]
    for family in [*shared, loners]:
        header = header_length([needs[i].tokens for i in family])
        yield _longest_first(family, needs, header), header


def _longest_first(family: Sequence[int], needs: Sequence[Need], header: int) -> list[int]:
    """Sort by length, but keep together what shares at least half of its own part."""
    clusters: Batches = []
    for i in sorted(family, key=lambda i: (needs[i].tokens, i)):
        if clusters and _alike(needs[clusters[-1][-1]].tokens, needs[i].tokens, header):
            clusters[-1].append(i)
        else:
            clusters.append([i])
    longest = [max(needs[i].cost for i in cluster) for cluster in clusters]
    order = sorted(range(len(clusters)), key=lambda c: (-longest[c], clusters[c][0]))
    return [i for c in order for i in clusters[c]]


def _alike(one: str, other: str, header: int) -> bool:
    beyond = shared_length([one, other]) - header
    return beyond >= BLOCK and 2 * beyond >= max(len(one), len(other)) - header
