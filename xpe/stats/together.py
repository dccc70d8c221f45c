"""Several metrics of one task resampled in one pass."""

from __future__ import annotations

from collections.abc import Mapping

from xpe.stats.settings import Stats
from xpe.stats.statistic import Additive, Draw, MeanOf, Statistic
from xpe.types import Float


def draw_of(settings: Stats) -> Draw:
    """Return how the settings resample."""
    return Draw(settings.bootstrap_iters, settings.seed, settings.threads)


def drawn_together(found: Mapping[str, Statistic], settings: Stats) -> dict[str, Float]:
    """Return the replicates of the statistics that gain from a common pass, by key.

    These are the ones whose rows are drawn by index: equally many units and one seed are then
    drawn alike, so a common pass gives the bits that each alone would. Metrics of few distinct
    rows are counted faster alone, and fractions would widen the rows of whole numbers.
    """
    from xpe.stats.bootstrap import resampled_together

    if not settings.bootstrap_iters:
        return {}
    parts: dict[tuple[int, bool], dict[str, Additive]] = {}
    for key, one in found.items():
        if isinstance(one, Additive) and (whole := _indexed(one, settings)) is not None:
            parts.setdefault((one.n_units, whole), {})[key] = one
    drawn: dict[str, Float] = {}
    for part in parts.values():
        if len(part) > 1:
            sums = resampled_together(
                [one.units_GK for one in part.values()],
                iters=settings.bootstrap_iters,
                seed=settings.seed,
                threads=settings.threads,
            )
            pairs = zip(part.items(), sums, strict=True)
            drawn |= {key: one.scored(sums_BK) for (key, one), sums_BK in pairs}
    return drawn


def _indexed(one: Additive, settings: Stats) -> bool | None:
    """Say whether the rows are whole numbers; None if they will not be drawn by index."""
    from xpe.stats._draws import kinds
    from xpe.stats._fixed import to_fixed

    closed = isinstance(one, MeanOf) and settings.interval not in {"percentile", "bca"}
    if closed or settings.method == "exact" or one.n_units < 2:
        return None
    fixed = to_fixed(one.units_GK)
    return None if kinds(fixed.integers_NK) is not None else not fixed.shift_K.any()
