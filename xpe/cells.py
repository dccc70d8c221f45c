"""Rows of a comparison: one metric of a task, or of a group, in two runs."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic import dataclasses as pydantic

from xpe.errors import DataError
from xpe.registry import STRICT
from xpe.stats.compared import compare_summed, compare_tables, pooled_difference
from xpe.stats.groups import Aggregate, Group, leaf_names, result_keys
from xpe.stats.paired import Difference
from xpe.stats.power import detectable, needed
from xpe.stats.settings import Stats
from xpe.stats.statistic import Additive, scored_in, statistic
from xpe.stats.summed import Stratified
from xpe.types import Mean, Metric, Ratio, Sums, Table

_log = logging.getLogger(__name__)


@pydantic.dataclass(frozen=True, config=STRICT)
class Options:
    """How to compare.

    Parameters
    ----------
    adjust
        Of the p-values, over all cells of the table: `holm` for a planned one, `bh` to explore.
    delta
        A difference that matters: the number of samples that would detect it is told.
    alpha, power
        Of the minimum detectable effect and of `delta`.
    force
        Compare although prompts, targets or the metric's signature differ.
    """

    adjust: Literal["holm", "bh", "none"] = "holm"
    level: float = Field(default=0.95, gt=0, lt=1)
    iters: int = Field(default=100_000, ge=0)
    seed: int = Field(default=1234, ge=0)
    delta: float | None = None
    alpha: float = Field(default=0.05, gt=0, lt=1)
    power: float = Field(default=0.8, gt=0, lt=1)
    force: bool = False

    @property
    def stats(self) -> Stats:
        """The settings of the statistics."""
        return Stats(bootstrap_iters=self.iters, seed=self.seed, level=self.level)


@dataclass(frozen=True)
class Cell:
    """One metric of one task or group, of one run against the baseline.

    `mde` is the smallest difference that this comparison detects with the power asked for,
    `n_needed` the number of samples that detect `delta`. Flips are document ids. A group has
    `members`, the tasks that its row is made of, and lists those that lack the metric as
    `missing`; its values and difference are those of its members' common samples.
    """

    task: str
    metric: str
    run: str
    baseline_value: float
    run_value: float
    difference: Difference
    higher_is_better: bool | None
    left_out: int
    p_adjusted: float | None = None
    mde: float | None = None
    n_needed: int | None = None
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The task's name; of a group that it is one, and what it lacks."""
        lacks = f", without {', '.join(self.missing)}" if self.missing else ""
        return f"{self.task} (group{lacks})" if self.members else self.task


@dataclass(frozen=True)
class Compared:
    """The cell of a task with the tables it is made of: the baseline's and the run's."""

    cell: Cell
    metric: Metric
    tables: tuple[Table, Table]


def task_cell(
    task: str,
    key: str,
    run: str,
    pairs: tuple[tuple[Metric, Table], tuple[Metric, Table]],
    options: Options,
) -> Compared:
    """Compare one metric of one task.

    Raises
    ------
    DataError
        The signatures differ, or no sample is scored in both.
    """
    (metric, a), (other, b) = pairs
    if metric.signature != other.signature and not options.force:
        raise DataError(
            f"{task} {key}: signatures differ, {metric.signature} and {other.signature}. "
            "force=true compares all the same"
        )
    both_N = scored_in(metric.kind, a) & scored_in(metric.kind, b)
    gained, lost = _flipped(metric, a, b, both_N)
    found = compare_tables(metric, a, b, options.stats)
    cell = Cell(
        task=task,
        metric=key,
        run=run,
        baseline_value=_value(metric, a, both_N),
        run_value=_value(metric, b, both_N),
        difference=found,
        higher_is_better=metric.higher_is_better,
        left_out=int((~both_N).sum()),
        gained=gained,
        lost=lost,
    )
    return Compared(_planned(cell, options), metric, (a, b))


def group_cells(
    groups: Mapping[str, Group],
    tasks: Mapping[str, Any],
    compared: Sequence[Compared],
    options: Options,
) -> Iterator[Cell]:
    """Yield the declared metrics of every group, made of those of `tasks` that were compared.

    A mean is averaged as the group weighs it, with the error of independent paired differences;
    what is scored on summed rows is scored on those of all tasks, resampled within each on shared
    draws. All else cannot be weighted, and has no row.
    """
    found = {(one.cell.task, one.cell.metric): one for one in compared}
    for name, group in groups.items():
        names = leaf_names(name, groups, tasks)
        held = [key for task, key in found if task in names]
        for aggregate in group.aggregate_metric_list:
            for key in result_keys(aggregate, held):
                parts = [found[leaf, key] for leaf in names if (leaf, key) in found]
                missing = tuple(leaf for leaf in names if (leaf, key) not in found)
                if parts and (made := _group_cell(name, parts, aggregate, options)):
                    yield replace(made, missing=missing)


def _no_mean(aggregate: Aggregate) -> str | None:
    return None if aggregate.aggregation == "mean" else "a function aggregates its tasks"


def _group_cell(
    name: str, parts: Sequence[Compared], aggregate: Aggregate, options: Options
) -> Cell | None:
    cells = [part.cell for part in parts]
    by_size = aggregate.weight_by_size
    if why := _no_mean(aggregate) or _refusal(parts, by_size=by_size):
        _log.warning("group %s: %s is not compared: %s", name, cells[0].metric, why)
        return None
    if not by_size or all(isinstance(part.metric.kind, Mean) for part in parts):
        gaps = [cell.difference for cell in cells]
        found = pooled_difference(gaps, by_size=by_size, level=options.level)
        sizes = [gap.n if by_size else 1 for gap in gaps]
        before = _average([cell.baseline_value for cell in cells], sizes)
        after = _average([cell.run_value for cell in cells], sizes)
    else:
        tables = [part.tables for part in parts]
        found = compare_summed(parts[0].metric, tables, options.stats)
        before, after = (_summed(parts[0].metric, tables, side) for side in (0, 1))
    return _planned(
        Cell(
            task=name,
            metric=cells[0].metric,
            run=cells[0].run,
            baseline_value=before,
            run_value=after,
            difference=found,
            higher_is_better=cells[0].higher_is_better,
            left_out=sum(cell.left_out for cell in cells),
            members=tuple(cell.task for cell in cells),
        ),
        options,
    )


def _refusal(parts: Sequence[Compared], *, by_size: bool) -> str | None:
    """Say why the tasks have no common difference; None if they have one."""
    if not all(math.isfinite(part.cell.difference.value) for part in parts):
        return "one of its tasks has no difference"
    if not by_size or all(isinstance(part.metric.kind, Mean) for part in parts):
        return None
    if not all(isinstance(part.metric.kind, Ratio | Sums) for part in parts):
        return "not a mean, and its rows do not add up"
    signatures = {part.metric.signature for part in parts}
    return "its tasks differ in signature" if len(signatures) > 1 else None


def _average(values: Sequence[float], sizes: Sequence[int]) -> float:
    return math.fsum(v * n for v, n in zip(values, sizes, strict=True)) / sum(sizes)


def _summed(metric: Metric, tables: Sequence[tuple[Table, Table]], side: int) -> float:
    """Return the score of the rows of all tasks, of one side, that both sides have."""
    parts = []
    for pair in tables:
        both_N = scored_in(metric.kind, pair[0]) & scored_in(metric.kind, pair[1])
        parts.append(statistic(metric.kind, replace(pair[side], scored_N=both_N)))
    return Stratified([part for part in parts if isinstance(part, Additive)]).value


def _planned(cell: Cell, options: Options) -> Cell:
    """Say what the comparison could have detected."""
    found = cell.difference
    # Without any spread the variance is unknown, not 0.
    if not found.stderr:
        return cell
    variance, how = found.stderr**2 * found.n, {"alpha": options.alpha, "power": options.power}
    wanted = None if options.delta is None else math.ceil(needed(options.delta, variance, **how))
    return replace(cell, mde=detectable(variance, found.n, **how), n_needed=wanted)


def _value(metric: Metric, table: Table, both_N: NDArray[np.bool_]) -> float:
    return statistic(metric.kind, replace(table, scored_N=both_N)).value


def _flipped(
    metric: Metric, a: Table, b: Table, both_N: NDArray[np.bool_]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the documents that a 0/1 metric has right only after, and only before."""
    if not isinstance(metric.kind, Mean) or metric.higher_is_better is None:
        return (), ()
    before_N, after_N = (table.column(metric.kind.column) for table in (a, b))
    if not np.isin([before_N[both_N], after_N[both_N]], (0.0, 1.0)).all():
        return (), ()
    better_N = after_N > before_N if metric.higher_is_better else after_N < before_N
    worse_N = both_N & (after_N != before_N) & ~better_N
    ids = np.array(a.doc_ids)
    return tuple(ids[both_N & better_N].tolist()), tuple(ids[worse_N].tolist())
