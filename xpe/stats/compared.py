"""One metric of two systems on the same samples: the difference B − A by kind of metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xpe.errors import DataError
from xpe.stats.closed import cluster_codes, cluster_sums, totals
from xpe.stats.paired import Difference, bootstrapped_difference, paired_difference
from xpe.stats.settings import Stats
from xpe.stats.statistic import (
    Draw,
    Listed,
    QuantileOf,
    finite,
    quotient,
    ratio_rows,
    scored_in,
    statistic,
)
from xpe.types import Float, Items, Kind, Mean, Metric, Order, Ratio, Sums, Table


def compare_tables(metric: Metric, a: Table, b: Table, settings: Stats) -> Difference:
    """Compare two systems by the samples that both have a score for.

    Means by the differences of samples, all else by replicates on shared draws; whole clusters
    where samples have them. The tables hold the same documents in the same order.

    Raises
    ------
    DataError
        The documents differ, or no sample is scored in both.
    """
    if a.doc_ids != b.doc_ids:
        raise DataError("expected the same documents in both tables")
    both_N = scored_in(metric.kind, a) & scored_in(metric.kind, b)
    if not both_N.any():
        raise DataError(f"no sample has {metric.name} in both")
    return _difference(metric.kind, _rows(a, both_N), _rows(b, both_N), settings)


def _rows(table: Table, kept_N: NDArray[np.bool_]) -> Table:
    places = np.flatnonzero(kept_N)
    return replace(
        table,
        rows_NK=table.rows_NK[places],
        doc_ids=tuple(table.doc_ids[place] for place in places),
        scored_N=table.scored_N[places],
        clusters=tuple(table.clusters[place] for place in places),
        items={name: tuple(held[i] for i in places) for name, held in table.items.items()},
    )


@singledispatch
def _difference(kind: Kind, a: Table, b: Table, settings: Stats) -> Difference:  # noqa: ARG001
    raise TypeError(f"expected Mean, Ratio, Sums, Order or Items, got {type(kind).__name__}")


@_difference.register
def _mean(kind: Mean, a: Table, b: Table, settings: Stats) -> Difference:
    return paired_difference(
        finite(b, kind.column), finite(a, kind.column), clusters=a.clusters, level=settings.level
    )


@_difference.register
def _ratio(kind: Ratio, a: Table, b: Table, settings: Stats) -> Difference:
    rows = [ratio_rows(kind, table) for table in (b, a)]
    return _resampled(quotient, rows, a.clusters, settings)


@_difference.register
def _sums(kind: Sums, a: Table, b: Table, settings: Stats) -> Difference:
    rows = [np.column_stack([finite(t, column) for column in kind.columns]) for t in (b, a)]
    return _resampled(kind.score, rows, a.clusters, settings)


def _resampled(
    score: Callable[[Float], Float],
    rows: Sequence[Float],
    clusters: Sequence[str | None],
    settings: Stats,
) -> Difference:
    """Compare a function of summed rows, of B and of A."""
    from xpe.stats.bootstrap import resampled_together

    codes_N, n = cluster_codes(clusters), len(clusters)
    units = [x_NK if codes_N is None else cluster_sums(x_NK, codes_N) for x_NK in rows]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values = [float(score(totals(unit_GK))) for unit_GK in units]
        if (why := _undrawn(len(units[0]), n, settings)) is not None:
            return _without_error(values[0] - values[1], n, why)
        sums = resampled_together(
            units, iters=settings.bootstrap_iters, seed=settings.seed, threads=settings.threads
        )
        b_B, a_B = (score(sums_BK) for sums_BK in sums)
    return bootstrapped_difference(values[0] - values[1], b_B, a_B, n, settings.level)


@_difference.register
def _listed(kind: Order | Items, a: Table, b: Table, settings: Stats) -> Difference:
    found: list[Any] = [statistic(kind, table) for table in (b, a)]
    value = found[0].value - found[1].value
    if (why := _undrawn(found[0].n_units, len(a.doc_ids), settings)) is not None:
        return _without_error(value, len(a.doc_ids), why)
    b_B, a_B = (_replicates(one, settings) for one in found)
    return bootstrapped_difference(value, b_B, a_B, len(a.doc_ids), settings.level)


def _replicates(found: Listed, settings: Stats) -> Float:
    """Draws of equally many units by one seed are the same where they are drawn by index."""
    shared = isinstance(found, QuantileOf)
    draw = Draw(settings.bootstrap_iters, settings.seed, settings.threads, shared=shared)
    return found.replicates(draw)


def _undrawn(n_units: int, n: int, settings: Stats) -> str | None:
    """Say why there is nothing to resample, None if there is."""
    if n_units < 2:
        return "n=1" if n == 1 else "one cluster"
    return None if settings.bootstrap_iters else "off"


def _without_error(value: float, n: int, why: str) -> Difference:
    if not math.isfinite(value):
        raise DataError("the metric is undefined on the common samples")
    return Difference(value, None, None, None, None, None, n, why)
