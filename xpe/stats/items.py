"""Error bars of an aggregation from its items, without a task: the Python API."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from xpe._explain import build
from xpe.errors import ConfigError, DataError
from xpe.metrics import get_aggregation
from xpe.stats.estimate import estimate
from xpe.stats.intervals import Interval
from xpe.stats.settings import IntervalName, Method, Stats
from xpe.types import Estimate, Items, Metric, Table

Aggregation: TypeAlias = str | Callable[[Sequence[Any]], float]
"""A registered name, or a function of the list of items (of an array, if numba compiled it)."""


def stderr(
    aggregation: Aggregation,
    items: Sequence[Any],
    *,
    iters: int = 100_000,
    method: Method = "bootstrap",
    seed: int = 1234,
    compat: str | None = None,
) -> float:
    """Return the standard error of an aggregation; NaN where it is undefined or off.

    Parameters
    ----------
    aggregation
        mean, median, perplexity, weighted_perplexity, bits_per_byte, f1, matthews_corrcoef,
        brier_score, nanmean, bleu, chrf, ter, another registered one, or a function.
    items
        As lm-evaluation-harness passes them: numbers, (gold, predicted), (log likelihood, words),
        (references, prediction).
    iters
        Replicates; 0 turns bootstrapped errors off.
    method
        `exact` takes the closed or exact form where there is one.
    compat
        `lm_eval`: the harness's number to the last bit, its caps and its N/A (NaN) included.

    Raises
    ------
    UnknownNameError
        No aggregation has that name.
    ConfigError
        A setting is out of range.
    DataError
        An item is not what the aggregation takes, or not finite; a weight is negative.
    """
    how = {"bootstrap_iters": iters, "method": method, "seed": seed, "interval": "none"}
    settings: Stats = build(Stats, how, "")
    found = described(aggregation, items, settings, compat=compat).stderr
    return math.nan if found is None else found


def interval(
    aggregation: Aggregation,
    items: Sequence[Any],
    *,
    level: float = 0.95,
    interval: IntervalName = "auto",
    iters: int = 100_000,
    method: Method = "bootstrap",
    seed: int = 1234,
) -> Interval:
    """Return the confidence interval of an aggregation; NaN at both ends where undefined.

    `interval` as in `Stats`; the other parameters, and errors, as in `stderr`.
    """
    how = {"bootstrap_iters": iters, "method": method, "seed": seed}
    settings: Stats = build(Stats, {**how, "level": level, "interval": interval}, "")
    return described(aggregation, items, settings).ci or (math.nan, math.nan)


def described(
    aggregation: Aggregation,
    items: Sequence[Any],
    settings: Stats,
    *,
    clusters: Sequence[str | None] | None = None,
    compat: str | None = None,
) -> Estimate:
    """Return value, standard error and interval of an aggregation of items.

    Parameters and errors as in `stderr`; `clusters` names, for each item, whom it shares chance
    with.
    """
    if compat not in {None, "lm_eval"}:
        raise ConfigError(f"compat must be 'lm_eval' or None, got {compat!r}")
    name, table = tabulated(aggregation, items, clusters)
    kind = Items("item", aggregation) if callable(aggregation) else _kind(aggregation)
    return estimate(Metric(name, kind), table, settings, compat=compat)


def tabulated(
    aggregation: Aggregation, items: Sequence[Any], clusters: Sequence[str | None] | None = None
) -> tuple[str, Table]:
    """Return the name of an aggregation and the rows of its items."""
    names = tuple(clusters) if clusters is not None else (None,) * len(items)
    if len(names) != len(items):
        raise DataError(f"expected a cluster for each of {len(items)} items, got {len(names)}")
    called = getattr(aggregation, "__name__", str(aggregation))
    if aggregation != "nanmean":
        _check_finite(called, items)
    everywhere = np.ones(len(items), dtype=bool)
    places = tuple(range(len(items)))
    if callable(aggregation):
        held = {"item": tuple(items)}
        return called, Table((), np.zeros((len(items), 0)), places, everywhere, names, held)
    found = get_aggregation(aggregation)
    rows = [_measured(aggregation, found, item, place) for place, item in enumerate(items)]
    if isinstance(kind := found.kind(aggregation), Items):
        held = {kind.column: tuple(row[kind.column] for row in rows)}
        empty = np.zeros((len(items), 0))
        return aggregation, Table((), empty, places, everywhere, names, held)
    columns = tuple(rows[0]) if rows else ()
    rows_NK = np.array([[row[column] for column in columns] for row in rows], dtype=np.float64)
    rows_NK = rows_NK.reshape(len(rows), len(columns))
    return aggregation, Table(columns, rows_NK, places, everywhere, names)


def _check_finite(name: str, items: Sequence[Any]) -> None:
    for place, item in enumerate(items):
        parts = item if isinstance(item, (tuple, list)) else (item,)
        for part in parts:
            for number in part if isinstance(part, (tuple, list, np.ndarray)) else (part,):
                if isinstance(number, (float, np.floating)) and not math.isfinite(number):
                    raise DataError(f"item {place} of {name} must be finite, got {item!r:.100}")


def _kind(name: str) -> Any:
    return get_aggregation(name).kind(name)


def _measured(name: str, aggregation: Any, item: Any, place: int) -> dict[str, Any]:
    try:
        return dict(aggregation.measured(name, [item]))
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise DataError(f"item {place} of {name} is {item!r:.100}: {error}") from error
