"""One metric of two systems on the same samples: the difference B − A by kind of metric.

Of a group: the differences of its tasks pooled, or one score of the rows of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xpe.errors import DataError
from xpe.seeds import derive
from xpe.stats import intervals
from xpe.stats.closed import cluster_codes, cluster_sums, totals
from xpe.stats.paired import Difference, bootstrapped_difference, paired_difference, t_test
from xpe.stats.pooling import pooled, squared
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
    return _difference(metric.kind, *_common(metric, a, b), settings)


def compare_summed(
    metric: Metric, pairs: Sequence[tuple[Table, Table]], settings: Stats
) -> Difference:
    """Compare two systems by the score of the rows of several tasks together.

    `metric` is of summed rows; each pair of tables is as in `compare_tables`, and is resampled
    within itself.

    Raises
    ------
    DataError
        The rows do not add up, or no sample of a task is scored in both.
    """
    kind = metric.kind
    if not isinstance(kind, Ratio | Sums):
        raise DataError(f"{metric.name} is not a mean, and its rows do not add up")
    strata = []
    for place, (a, b) in enumerate(pairs):
        # Tasks of one size must not be drawn by the same indices.
        seed = derive(settings.seed, place)
        strata.append(_stratum(kind, *_common(metric, a, b), seed))
    return _resampled(_score(kind), strata, settings)


def pooled_difference(
    differences: Sequence[Difference], *, by_size: bool, level: float
) -> Difference:
    """Average the differences of several tasks, by their samples or equally (S16, S17).

    The tasks are independent of each other; each difference is paired within its task. The test
    is Student's t with Satterthwaite's degrees of freedom.
    """
    n = sum(found.n for found in differences)
    rows = pooled(
        [len(differences)],
        [found.n for found in differences],
        [found.value for found in differences],
        [squared(found.stderr) for found in differences],
    )
    value, stderr, df, _ = (rows.micro if by_size else rows.macro).at(0)
    whys = [found.why or "undefined" for found in differences if found.stderr is None]
    if whys:
        return Difference(value, None, None, None, None, None, n, whys[0])
    if math.isnan(df):
        return Difference(value, stderr, None, None, None, None, n, "no spread")
    ci, p = intervals.t(value, stderr, df, level), t_test(value, stderr, df)
    return Difference(value, stderr, ci, None, p, "t", n)


def _common(metric: Metric, a: Table, b: Table) -> tuple[Table, Table]:
    """Keep the samples that both have a score for."""
    if a.doc_ids != b.doc_ids:
        raise DataError("expected the same documents in both tables")
    both_N = scored_in(metric.kind, a) & scored_in(metric.kind, b)
    if not both_N.any():
        raise DataError(f"no sample has {metric.name} in both")
    return _rows(a, both_N), _rows(b, both_N)


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
def _summed(kind: Ratio | Sums, a: Table, b: Table, settings: Stats) -> Difference:
    return _resampled(_score(kind), [_stratum(kind, a, b, settings.seed)], settings)


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


class Stratum(NamedTuple):
    """The units of B and of A, (G, K), that are drawn together by `seed`, and their samples."""

    b_GK: Float
    a_GK: Float
    seed: int
    n: int


def _resampled(
    score: Callable[[Float], Float], strata: Sequence[Stratum], settings: Stats
) -> Difference:
    """Compare a function of summed rows; every stratum keeps its size."""
    from xpe.stats.bootstrap import resampled_together

    n = sum(stratum.n for stratum in strata)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        b, a = (
            float(score(totals(np.concatenate(units))))
            for units in zip(*(stratum[:2] for stratum in strata), strict=True)
        )
        whys = [_undrawn(len(stratum.b_GK), stratum.n, settings) for stratum in strata]
        if why := next(filter(None, whys), None):
            return _without_error(b - a, n, why)
        sums = [
            resampled_together(
                (stratum.b_GK, stratum.a_GK),
                iters=settings.bootstrap_iters,
                seed=stratum.seed,
                threads=settings.threads,
            )
            for stratum in strata
        ]
        b_B, a_B = (score(sum(parts[1:], start=parts[0])) for parts in zip(*sums, strict=True))
    return bootstrapped_difference(b - a, b_B, a_B, n, settings.level)


def _added(kind: Ratio | Sums, table: Table) -> Float:
    """Return the rows that are summed, (N, K)."""
    if isinstance(kind, Ratio):
        return ratio_rows(kind, table)
    return np.column_stack([finite(table, column) for column in kind.columns])


def _score(kind: Ratio | Sums) -> Callable[[Float], Float]:
    return quotient if isinstance(kind, Ratio) else kind.score


def _stratum(kind: Ratio | Sums, a: Table, b: Table, seed: int) -> Stratum:
    codes_N = cluster_codes(a.clusters)
    b_GK, a_GK = (
        rows_NK if codes_N is None else cluster_sums(rows_NK, codes_N)
        for rows_NK in (_added(kind, b), _added(kind, a))
    )
    return Stratum(b_GK, a_GK, seed, len(a.doc_ids))


def _undrawn(n_units: int, n: int, settings: Stats) -> str | None:
    """Say why there is nothing to resample, None if there is."""
    if n_units < 2:
        return "n=1" if n == 1 else "one cluster"
    return None if settings.bootstrap_iters else "off"


def _without_error(value: float, n: int, why: str) -> Difference:
    if not math.isfinite(value):
        raise DataError("the metric is undefined on the common samples")
    return Difference(value, None, None, None, None, None, n, why)
