"""Estimates of groups, bottom-up from their tasks.

A group's number is made of leaf tasks, each counted once however often it is reached. A mean is
averaged, by size (micro) or equally (macro), with the standard error that fits. A metric of
summed rows is scored on the rows of all tasks together: the BLEU of all sentences, not the mean
of BLEUs. All else cannot be weighted.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from pydantic import dataclasses as pydantic

from xpe.data.code import Function
from xpe.errors import ConfigError, unknown
from xpe.registry import STRICT
from xpe.stats import intervals
from xpe.stats.estimate import ErrorBar
from xpe.stats.intervals import Interval
from xpe.stats.pooling import MeanRow, Pooled, pooled, squared
from xpe.stats.settings import Stats
from xpe.stats.statistic import Additive, MeanOf, defined, statistic
from xpe.stats.summed import Stratified
from xpe.types import Estimate, Mean, Metric, Ratio, Sums, Table, TaskResult

_log = logging.getLogger(__name__)

Rows: TypeAlias = Mapping[str, Mapping[str, tuple[Metric, Table]]]
"""By task and result key: the metric, and the table that it was estimated from."""


@pydantic.dataclass(frozen=True, config=STRICT)
class Aggregate:
    """One metric of a group. Without `filter_list`: every filter that a task has it under.

    A function in place of `mean` gets the values of the tasks, their sizes and `weight_by_size`.
    """

    metric: str
    filter_list: str | tuple[str, ...] | None = None
    weight_by_size: bool = True
    aggregation: Literal["mean"] | Function = "mean"


class Group(Protocol):
    """What statistics need to know of a group config; `tasks` names tasks and groups."""

    @property
    def tasks(self) -> Sequence[str]: ...
    @property
    def aggregate_metric_list(self) -> Sequence[Aggregate]: ...


@dataclass(frozen=True)
class Run:
    """What all groups of a run are made of."""

    tasks: Mapping[str, TaskResult]
    rows: Rows
    settings: Stats
    compat: str | None


@dataclass(frozen=True)
class Leaf:
    """One task's estimate of the metric, with what it was made of where that is at hand."""

    name: str
    estimate: Estimate
    source: tuple[Metric, Table] | None


@dataclass(frozen=True)
class Part:
    """One metric of one group, before it is a number; `leaves` is not empty."""

    group: str
    key: str
    aggregate: Aggregate
    leaves: Sequence[Leaf]
    missing: tuple[str, ...]


def group_estimates(
    groups: Mapping[str, Group],
    tasks: Mapping[str, TaskResult],
    rows: Rows,
    settings: Stats,
    *,
    compat: str | None = None,
) -> dict[str, dict[str, Estimate]]:
    """Estimate the declared metrics of every group; a group that declares none is left out.

    Raises
    ------
    UnknownNameError
        A group names what is neither a task nor a group.
    ConfigError
        A group contains itself.
    """
    run = Run(tasks, rows, settings, compat)
    parts = [part for name in groups for part in _parts(name, groups, run)]
    if not parts:
        return {}
    rows_G = _pooled(parts, compat)
    found: dict[str, dict[str, Estimate]] = {}
    for place, part in enumerate(parts):
        by_size = part.aggregate.weight_by_size
        row = (rows_G.micro if by_size else rows_G.macro).at(place)
        if compat is not None:
            made = _harness(part, row.value, float(rows_G.pooled_stderr_G[place]))
        elif part.aggregate.aggregation != "mean":
            made = _of_function(part, part.aggregate.aggregation)
        elif _is_mean(part.leaves) or not by_size:
            made = _mean_of(part, row, settings)
        else:
            made = _of_summed_rows(part.leaves, settings)
        found.setdefault(part.group, {})[part.key] = _with_counts(made, part)
    return found


def leaf_names(
    name: str, groups: Mapping[str, Group], tasks: Mapping[str, Any], *, once: bool = True
) -> tuple[str, ...]:
    """Return the tasks below a group, in the order of its config.

    `once=False` repeats a task that is reached twice, as lm-evaluation-harness does.
    """
    found = tuple(_walk(name, groups, tasks, ()))
    return tuple(dict.fromkeys(found)) if once else found


def _walk(
    name: str, groups: Mapping[str, Group], tasks: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[str]:
    if name in above:
        raise ConfigError(f"group {name!r} contains itself: {' > '.join((*above, name))}")
    for member in groups[name].tasks:
        if member in groups:
            yield from _walk(member, groups, tasks, (*above, name))
        elif member in tasks:
            yield member
        else:
            raise unknown(f"task in group {name!r}:", member, {*tasks, *groups})


def result_keys(aggregate: Aggregate, held: Iterable[str]) -> list[str]:
    """Return the result keys of one metric of a group, of those that its tasks hold."""
    names = aggregate.filter_list
    if names is None:
        return sorted({key for key in held if key.split(",")[0] == aggregate.metric}) or [
            aggregate.metric
        ]
    filters = (names,) if isinstance(names, str) else names
    return [
        aggregate.metric if name == "none" else f"{aggregate.metric},{name}" for name in filters
    ]


def _parts(name: str, groups: Mapping[str, Group], run: Run) -> Iterator[Part]:
    names = leaf_names(name, groups, run.tasks, once=run.compat is None)
    held = {key for leaf in names for key in run.tasks[leaf].estimates}
    for aggregate in groups[name].aggregate_metric_list:
        for key in result_keys(aggregate, held):
            leaves = [
                Leaf(leaf, estimate, run.rows.get(leaf, {}).get(key))
                for leaf in names
                if (estimate := run.tasks[leaf].estimates.get(key)) and estimate.value is not None
            ]
            found = {leaf.name for leaf in leaves}
            missing = tuple(leaf for leaf in names if leaf not in found)
            if missing:
                _log.warning("group %s: no %s in %s", name, key, ", ".join(missing))
            if leaves:
                yield Part(name, key, aggregate, leaves, missing)


def _pooled(parts: Sequence[Part], compat: str | None) -> Pooled:
    """Pool all parts at once; the harness counts the samples that a task has, we those scored."""
    estimates = [leaf.estimate for part in parts for leaf in part.leaves]
    sizes = [found.count if compat is None else found.n for found in estimates]
    values = [math.nan if found.value is None else found.value for found in estimates]
    return pooled(
        np.cumsum([len(part.leaves) for part in parts], dtype=np.int64),
        sizes,
        values,
        [squared(found.stderr) for found in estimates],
        compensated=compat is None or sys.version_info >= (3, 12),
    )


def _is_mean(leaves: Sequence[Leaf]) -> bool:
    return all(leaf.source is None or isinstance(leaf.source[0].kind, Mean) for leaf in leaves)


def _harness(part: Part, value: float, pooled_stderr: float) -> Estimate:
    """Weigh by all samples of a task and pool the variance within tasks, weighted or not."""
    stderr = defined(pooled_stderr)
    return _bare(value, stderr, None, None, None if stderr is not None else _why(part.leaves))


def _of_function(part: Part, aggregation: Function) -> Estimate:
    """Call a function of the task; it tells no error, and its own fault costs no other number."""
    if part.missing:
        return _bare(None, None, None, None, f"no value in {', '.join(part.missing)}")
    values = [leaf.estimate.value for leaf in part.leaves]
    sizes = [leaf.estimate.n for leaf in part.leaves]
    try:
        value = float(aggregation(values, sizes, part.aggregate.weight_by_size))
    except Exception as error:  # noqa: BLE001
        why = f"{aggregation.place} fails: {type(error).__name__}: {error}"
        return _bare(None, None, None, None, why)
    return _bare(defined(value), None, None, None, "a function of the tasks gives no error")


def _mean_of(part: Part, row: MeanRow, settings: Stats) -> Estimate:
    if not math.isfinite(row.stderr):
        return _bare(row.value, None, None, None, _why(part.leaves))
    ci, ci_method = _interval(part.leaves, row, settings)
    return replace(_bare(row.value, row.stderr, ci, ci_method, None), bounds=_bounds(part))


def _interval(
    leaves: Sequence[Leaf], row: MeanRow, settings: Stats
) -> tuple[Interval | None, str | None]:
    """Wilson on the effective size for 0/1 values, else t by Satterthwaite."""
    if settings.interval == "none":
        return None, None
    value, stderr, df, size = row
    if all(_is_binary(leaf) for leaf in leaves) and settings.interval != "t":
        spread = value * (1 - value)
        size = min(size, spread / stderr**2) if stderr and spread else size
        return intervals.wilson(value * size, size, settings.level), "wilson"
    if math.isnan(df):
        return None, None
    return intervals.t(value, stderr, df, settings.level), "t"


def _is_binary(leaf: Leaf) -> bool:
    if leaf.source is None:
        return False
    metric, table = leaf.source
    found = statistic(metric.kind, table)
    return isinstance(found, MeanOf) and found.binary


def _of_summed_rows(leaves: Sequence[Leaf], settings: Stats) -> Estimate:
    """Score the rows of all tasks together, resampled within each task."""
    sources = [leaf.source for leaf in leaves if leaf.source is not None]
    kinds = [metric.kind for metric, _ in sources]
    if len(sources) < len(leaves) or not all(isinstance(kind, (Ratio, Sums)) for kind in kinds):
        return _bare(None, None, None, None, "not a mean, and its rows do not add up")
    signatures = {metric.signature for metric, _ in sources}
    if len(signatures) > 1:
        listed = ", ".join(sorted(map(str, signatures)))
        return _bare(None, None, None, None, f"tasks differ in signature: {listed}")
    parts = [statistic(metric.kind, table) for metric, table in sources]
    found = Stratified([part for part in parts if isinstance(part, Additive)])
    error = ErrorBar(found, settings)
    ci, ci_method = error.interval()
    made = _bare(defined(found.value), error.stderr, ci, ci_method, error.why)
    return replace(made, extra=error.extra)


def _with_counts(made: Estimate, part: Part) -> Estimate:
    parts = [leaf.estimate for leaf in part.leaves]
    directions = {found.higher_is_better for found in parts}
    signatures = {found.signature for found in parts}
    faults = ("n_failed", "n_invalid", "n_timeout", "n_unparsed", "n_truncated")
    return replace(
        made,
        n=sum(found.n for found in parts),
        count=sum(found.count for found in parts),
        min=min((found.min for found in parts if found.min is not None), default=None),
        max=max((found.max for found in parts if found.max is not None), default=None),
        **{name: sum(getattr(found, name) for found in parts) for name in faults},
        partial=bool(part.missing) or any(found.partial for found in parts),
        bounds=None if part.missing else made.bounds,
        higher_is_better=directions.pop() if len(directions) == 1 else None,
        signature=signatures.pop() if len(signatures) == 1 else None,
        extra={
            **made.extra,
            "weight_by_size": part.aggregate.weight_by_size,
            "n_tasks": len(parts),
            "missing": part.missing,
        },
    )


def _bounds(part: Part) -> tuple[float, float] | None:
    """Combine bounds where any task is partial; None where one does not know its own."""
    parts = [leaf.estimate for leaf in part.leaves]
    if not any(found.partial for found in parts):
        return None
    sizes = [found.n if part.aggregate.weight_by_size else 1 for found in parts]
    ends: tuple[list[float], list[float]] = ([], [])
    for found, size in zip(parts, sizes, strict=True):
        exact = None if found.partial or found.value is None else (found.value, found.value)
        known = found.bounds or exact
        if known is None:
            return None
        for end, bound in zip(ends, known, strict=True):
            end.append(size * bound)
    return math.fsum(ends[0]) / sum(sizes), math.fsum(ends[1]) / sum(sizes)


def _why(leaves: Sequence[Leaf]) -> str:
    reasons = {
        f"{leaf.name}: {leaf.estimate.why or 'undefined'}"
        for leaf in leaves
        if leaf.estimate.stderr is None
    }
    return "; ".join(sorted(reasons)) or "undefined"


def _bare(
    value: float | None,
    stderr: float | None,
    ci: Interval | None,
    ci_method: str | None,
    why: str | None,
) -> Estimate:
    return Estimate(value, stderr, ci, ci_method, n=0, count=0, why=why)
