"""Values and standard errors of lm-evaluation-harness 0.4, to the last bit.

It takes the mean's error in closed form, bootstraps eight aggregations with draws of its own, and
has no error ("N/A") for all others, for fewer than two items and with the bootstrap off. BLEU,
chrF and TER get at most 100 replicates, and all get whole chunks of 1,000 only.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from xpe.metrics.aggregations import AGGREGATIONS
from xpe.stats.statistic import Additive, QuantileOf, RatioOf, Statistic, quotient, statistic
from xpe.types import Float, Items, Kind, Mean, Metric, Order, Ratio, Sums, Table

CAP = 100
"""Replicates of a corpus metric there: each scores the whole corpus anew."""
CAPPED = ("bleu", "chrf", "ter")


def harness_statistic(kind: Kind, table: Table) -> Statistic:
    """Take the rows behind a metric as the harness does: without clusters, NaN items included."""
    alone = replace(table, clusters=(None,) * len(table.clusters))
    if not isinstance(kind, Ratio):
        return statistic(kind, alone)
    rows_NK = np.column_stack([alone.column(kind.numerator), alone.column(kind.denominator)])
    return RatioOf(rows_NK[alone.scored_N], quotient, None)


def aggregation_of(metric: Metric) -> str:
    """Return the harness's name for how this metric is aggregated; `mean` or `` if it has none."""
    if metric.name in ("brier_score", "bypass"):
        return metric.name
    if isinstance(metric.kind, Mean):
        return "mean"
    if isinstance(metric.kind, Items) and not metric.kind.resample:
        return ""
    for name, aggregation in AGGREGATIONS.items():
        if aggregation.kind(_prefix(metric.kind)) == metric.kind and name != "brier_score":
            return name
    return _CORPUS.get(metric.name, "")


def harness_value(metric: Metric, found: Statistic) -> float:
    """Return the value as the harness computes it: Python's own sum, the upper median."""
    make = _VALUES.get(aggregation_of(metric))
    return found.value if make is None else make(found)


def harness_stderr(metric: Metric, found: Statistic, iters: int) -> float | None:
    """Return the standard error of the harness; None where it says N/A."""
    name = aggregation_of(metric)
    if not iters or found.count < 2:
        return None
    if name == "mean":
        values = _column(found, 0)
        return _spread(values) / math.sqrt(len(values))
    replicate = _REPLICATES.get(name)
    if replicate is None:
        return None
    return _spread(replicate(found, min(iters, CAP) if name in CAPPED else iters))


def _spread(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((x - mean) ** 2 for x in values) / (len(values) - 1))


# --- values ----------------------------------------------------------------------------------


def _mean(found: Statistic) -> float:
    values = _column(found, 0)
    return sum(values) / len(values)


def _upper_median(found: Statistic) -> float:
    values = _column(found, 0)
    return sorted(values)[len(values) // 2]


def _nanmean(found: Statistic) -> float:
    return float(np.nanmean(_with_nan(found)))


def _weighted(found: Statistic) -> float:
    return sum(_column(found, 0)) / sum(_column(found, 1))


def _exp(power: float) -> float:
    """Return e to a power; infinity, which counts as undefined, where the harness stops."""
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


_VALUES: Mapping[str, Callable[[Statistic], float]] = {
    "mean": _mean,
    "brier_score": _mean,
    "median": _upper_median,
    "nanmean": _nanmean,
    "perplexity": lambda found: _exp(-_weighted(found)),
    "weighted_perplexity": lambda found: _exp(-_weighted(found)),
    "bits_per_byte": lambda found: -_weighted(found) / math.log(2),
    "bypass": lambda _: 999.0,
}


# --- replicates ------------------------------------------------------------------------------


def _medians(found: Statistic, iters: int) -> list[float]:
    from xpe.stats.bootstrap import lm_eval_replicates

    return list(map(float, lm_eval_replicates(_column(found, 0), iters=iters, of="upper_median")))


def _perplexities(found: Statistic, iters: int) -> list[float]:
    from xpe.stats.bootstrap import lm_eval_replicates

    sums_B = lm_eval_replicates(_column(found, 0), iters=iters, of="sum")
    return [_exp(-(total / found.count)) for total in sums_B.tolist()]


def _nanmeans(found: Statistic, iters: int) -> list[float]:
    from xpe.stats.bootstrap import lm_eval_indices

    values_N = _with_nan(found)
    with warnings.catch_warnings():
        # A replicate without a number is nan, as it is in the harness, and worth no warning.
        warnings.simplefilter("ignore", RuntimeWarning)
        return [
            float(np.nanmean(values_N[drawn_N]))
            for drawn_N in lm_eval_indices(len(values_N), iters=iters)
        ]


def _scores(found: Statistic, iters: int) -> list[float]:
    from xpe.stats.bootstrap import lm_eval_replicates

    additive = _additive(found)
    sums_BK = lm_eval_replicates(additive.rows_NK, iters=iters, of="rows")
    return list(map(float, additive.scored(sums_BK)))


_REPLICATES: Mapping[str, Callable[[Statistic, int], list[float]]] = {
    "median": _medians,
    "perplexity": _perplexities,
    "nanmean": _nanmeans,
    **dict.fromkeys(("f1", "matthews_corrcoef", *CAPPED), _scores),
}
_CORPUS = {"corpus_bleu": "bleu", **dict(zip(CAPPED, CAPPED, strict=True))}


# --- the items behind a statistic ------------------------------------------------------------


def _additive(found: Statistic) -> Additive:
    assert isinstance(found, Additive)
    return found


def _column(found: Statistic, place: int) -> list[float]:
    if isinstance(found, QuantileOf):
        return list(map(float, found.singles_N))
    return list(map(float, _additive(found).rows_NK[:, place]))


def _with_nan(found: Statistic) -> Float:
    """Items of a nanmean: rows are (sum, n)."""
    rows_NK = _additive(found).rows_NK
    return np.where(rows_NK[:, 1] > 0, rows_NK[:, 0], np.nan)


def _prefix(kind: Kind) -> str:
    columns = _COLUMNS[type(kind)](kind)
    return columns[0].rpartition(".")[0] or columns[0]


_COLUMNS: Mapping[type, Callable[..., tuple[str, ...]]] = {
    Mean: lambda kind: (kind.column,),
    Ratio: lambda kind: (kind.numerator, kind.denominator),
    Sums: lambda kind: kind.columns,
    Order: lambda kind: (kind.column,),
    Items: lambda kind: (kind.column,),
}
