"""A metric of summed rows over several tasks, resampled within each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from xpe.seeds import derive
from xpe.stats.closed import totals
from xpe.stats.statistic import Additive, Draw
from xpe.types import Float


@dataclass(frozen=True)
class Stratified:
    """The score of the rows of all parts together; every part keeps its size."""

    parts: Sequence[Additive]

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def n_units(self) -> int:
        return sum(part.n_units for part in self.parts)

    @property
    def score(self) -> Callable[[Float], Float]:
        return self.parts[0].scored

    @cached_property
    def totals_K(self) -> Float:
        return totals(np.concatenate([part.rows_NK for part in self.parts]))

    @cached_property
    def value(self) -> float:
        return float(self.score(self.totals_K))

    @property
    def singles_N(self) -> Float:
        return np.concatenate([part.singles_N for part in self.parts])

    def closed(self) -> float | None:
        return None

    def exact(self) -> float | None:
        return None

    def replicates(self, draw: Draw) -> Float:
        from xpe.stats.bootstrap import resampled_sums

        # Parts of one size must not be drawn by the same indices.
        sums_PBK = [
            resampled_sums(
                part.units_GK,
                iters=draw.iters,
                seed=derive(draw.seed, place),
                threads=draw.threads,
            )
            for place, part in enumerate(self.parts)
        ]
        return self.score(sum(sums_PBK[1:], start=sums_PBK[0]))

    def jackknife(self) -> Float:
        return np.concatenate([self.score(self.totals_K - part.units_GK) for part in self.parts])
