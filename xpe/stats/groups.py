"""Estimates of groups, bottom-up from their tasks.

A group's number is made of leaf tasks, each counted once however often it is reached. A mean is
averaged, by size (micro) or equally (macro), with the standard error that fits. A metric of
summed rows is scored on the rows of all tasks together: the BLEU of all sentences, not the mean
of BLEUs. All else cannot be weighted.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import dataclasses as pydantic

from xpe.errors import ConfigError, unknown
from xpe.registry import STRICT
from xpe.stats import intervals, pooling
from xpe.stats.estimate import ErrorBar
from xpe.stats.intervals import Interval
from xpe.stats.settings import Stats
from xpe.stats.statistic import Additive, MeanOf, defined, statistic
from xpe.stats.summed import Stratified
from xpe.types import Estimate, Mean, Metric, Ratio, Sums, Table, TaskResult

_log = logging.getLogger(__name__)

Rows: TypeAlias = Mapping[str, Mapping[str, tuple[Metric, Table]]]
"""By task and result key: the metric, and the table that it was estimated from."""


@pydantic.dataclass(frozen=True, config=STRICT)
class Aggregate:
    """One metric of a group. Without `filter_list`: every filter that a task has it under."""

    metric: str
    filter_list: str | tuple[str, ...] | None = None
    weight_by_size: bool = True
    aggregation: Literal["mean"] = "mean"


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
    found: dict[str, dict[str, Estimate]] = {}
    for name, group in groups.items():
        leaves = leaf_names(name, groups, tasks, once=compat is None)
        estimates = {
            key: made
            for aggregate in group.aggregate_metric_list
            for key in _keys(aggregate, [tasks[leaf] for leaf in leaves])
            if (made := _group(name, key, aggregate, leaves, run))
        }
        if estimates:
            found[name] = estimates
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


def _keys(aggregate: Aggregate, tasks: Sequence[TaskResult]) -> list[str]:
    """Return the result keys of one metric of a group."""
    names = aggregate.filter_list
    if names is None:
        held = {key for task in tasks for key in task.estimates}
        return sorted(key for key in held if key.split(",")[0] == aggregate.metric) or [
            aggregate.metric
        ]
    filters = (names,) if isinstance(names, str) else names
    return [
        aggregate.metric if name == "none" else f"{aggregate.metric},{name}" for name in filters
    ]


def _group(
    name: str, key: str, aggregate: Aggregate, names: Sequence[str], run: Run
) -> Estimate | None:
    leaves = [
        Leaf(leaf, estimate, run.rows.get(leaf, {}).get(key))
        for leaf in names
        if (estimate := run.tasks[leaf].estimates.get(key)) and estimate.value is not None
    ]
    missing = tuple(leaf for leaf in names if leaf not in {found.name for found in leaves})
    if missing:
        _log.warning("group %s: no %s in %s", name, key, ", ".join(missing))
    if not leaves:
        return None
    if run.compat is not None:
        made = _harness(leaves, aggregate)
    elif _is_mean(leaves) or not aggregate.weight_by_size:
        made = _mean_of(leaves, aggregate, run.settings)
    else:
        made = _of_summed_rows(leaves, run.settings)
    return _with_counts(made, leaves, aggregate, missing)


def _is_mean(leaves: Sequence[Leaf]) -> bool:
    return all(leaf.source is None or isinstance(leaf.source[0].kind, Mean) for leaf in leaves)


def _harness(leaves: Sequence[Leaf], aggregate: Aggregate) -> Estimate:
    """Weigh by all samples of a task and pool the variance within tasks, weighted or not."""
    sizes = [leaf.estimate.n for leaf in leaves]
    weights = sizes if aggregate.weight_by_size else [1] * len(sizes)
    value = pooling.weighted_mean(_values(leaves), weights)
    stderrs = _stderrs(leaves)
    stderr = defined(pooling.pooled_stderr(stderrs, sizes)) if stderrs else None
    return _bare(value, stderr, None, None, None if stderr is not None else _why(leaves))


def _mean_of(leaves: Sequence[Leaf], aggregate: Aggregate, settings: Stats) -> Estimate:
    counts = [leaf.estimate.count for leaf in leaves]
    weights = counts if aggregate.weight_by_size else [1] * len(counts)
    value = pooling.weighted_mean(_values(leaves), weights)
    stderrs = _stderrs(leaves)
    if not stderrs:
        return _bare(value, None, None, None, _why(leaves))
    stderr = pooling.weighted_stderr(stderrs, weights)
    ci, ci_method = _interval(leaves, value, stderr, weights, settings)
    return replace(_bare(value, stderr, ci, ci_method, None), bounds=_bounds(leaves, weights))


def _interval(
    leaves: Sequence[Leaf],
    value: float,
    stderr: float,
    weights: Sequence[int],
    settings: Stats,
) -> tuple[Interval | None, str | None]:
    """Wilson on the effective size for 0/1 values, else t by Satterthwaite."""
    if settings.interval == "none":
        return None, None
    counts = [leaf.estimate.count for leaf in leaves]
    if all(_is_binary(leaf) for leaf in leaves) and settings.interval != "t":
        size = sum(weights) ** 2 / sum(w * w / n for w, n in zip(weights, counts, strict=True))
        spread = value * (1 - value)
        size = min(size, spread / stderr**2) if stderr and spread else size
        return intervals.wilson(value * size, size, settings.level), "wilson"
    df = pooling.satterthwaite(_stderrs(leaves) or (), weights, [count - 1 for count in counts])
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


def _with_counts(
    made: Estimate, leaves: Sequence[Leaf], aggregate: Aggregate, missing: tuple[str, ...]
) -> Estimate:
    parts = [leaf.estimate for leaf in leaves]
    directions = {part.higher_is_better for part in parts}
    signatures = {part.signature for part in parts}
    faults = ("n_failed", "n_invalid", "n_timeout", "n_unparsed", "n_truncated")
    return replace(
        made,
        n=sum(part.n for part in parts),
        count=sum(part.count for part in parts),
        min=min((part.min for part in parts if part.min is not None), default=None),
        max=max((part.max for part in parts if part.max is not None), default=None),
        **{name: sum(getattr(part, name) for part in parts) for name in faults},
        partial=bool(missing) or any(part.partial for part in parts),
        bounds=None if missing else made.bounds,
        higher_is_better=directions.pop() if len(directions) == 1 else None,
        signature=signatures.pop() if len(signatures) == 1 else None,
        extra={
            **made.extra,
            "weight_by_size": aggregate.weight_by_size,
            "n_tasks": len(leaves),
            "missing": missing,
        },
    )


def _bounds(leaves: Sequence[Leaf], weights: Sequence[int]) -> tuple[float, float] | None:
    """Combine bounds where any task is partial; None where one does not know its own."""
    parts = [leaf.estimate for leaf in leaves]
    if not any(part.partial for part in parts):
        return None
    ends = [part.bounds or (None if part.partial else (part.value, part.value)) for part in parts]
    known = [(low, high) for low, high in (end for end in ends if end) if low is not None]
    if len(known) < len(parts):
        return None
    sizes = [part.n for part in parts] if weights != [1] * len(parts) else weights
    return (
        pooling.weighted_mean([low for low, _ in known], sizes),
        pooling.weighted_mean([high for _, high in known if high is not None], sizes),
    )


def _values(leaves: Sequence[Leaf]) -> list[float]:
    return [leaf.estimate.value for leaf in leaves if leaf.estimate.value is not None]


def _stderrs(leaves: Sequence[Leaf]) -> list[float] | None:
    """Return the standard errors of all, None if one is undefined."""
    found = [leaf.estimate.stderr for leaf in leaves if leaf.estimate.stderr is not None]
    return found if len(found) == len(leaves) else None


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
