"""How the items of one metric, one an answer, become a number.

An item is what the harness calls one: a number, `(gold, predicted)`, `(log likelihood, words)`,
`(references, prediction)`. An aggregation turns it into columns that can be summed, so that
error bars, groups and comparisons need no second look at the texts. A function of the whole
list works too (`register_aggregation`), but is slow to resample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from xpe.errors import ConfigError, DataError, unknown
from xpe.types import Float, Items, Kind, Mean, Measured, Order, Ratio, Sums

LN2 = math.log(2)


class Aggregation(Protocol):
    """Makes columns of items, and a kind of metric of the columns."""

    def measured(self, metric: str, items: Sequence[Any], /) -> Measured:
        """Return the columns of one answer from its items, one a repeat."""

    def kind(self, metric: str, /) -> Kind:
        """Return how the number is made of those columns."""


@dataclass(frozen=True)
class OfRows:
    """Numbers of each item, averaged over repeats; `make` builds the kind from column names.

    Where an item is one number, its variance within the question and the number of repeats stand
    beside the average, as `<metric>.within` and `<metric>.repeats`.
    """

    suffixes: tuple[str, ...]
    row: Callable[[Any], Sequence[float]]
    make: Callable[[tuple[str, ...]], Kind]

    def measured(self, metric: str, items: Sequence[Any]) -> Measured:
        rows = [self.row(item) for item in items]
        columns = zip(self._columns(metric), *rows, strict=True)
        means = {name: float(sum(values)) / len(rows) for name, *values in columns}
        if len(rows) < 2 or self.suffixes != ("",):
            return means
        squares = sum((value - means[metric]) ** 2 for (value,) in rows)
        within = squares / (len(rows) - 1)
        return {**means, f"{metric}.within": within, f"{metric}.repeats": len(rows)}

    def kind(self, metric: str) -> Kind:
        return self.make(self._columns(metric))

    def _columns(self, metric: str) -> tuple[str, ...]:
        return tuple(f"{metric}.{suffix}" if suffix else metric for suffix in self.suffixes)


@dataclass(frozen=True)
class OfList:
    """A function of the list of all items, those of repeats one after another.

    `resample` False: the items say nothing of its error.
    """

    function: Callable[[list[Any]], float]
    resample: bool = True

    def measured(self, metric: str, items: Sequence[Any]) -> Measured:
        return {metric: tuple(items)}

    def kind(self, metric: str) -> Kind:
        return Items(metric, self._of_answers, self.resample)

    def _of_answers(self, answers: Sequence[Any]) -> float:
        items = [item for answer in answers if answer is not None for item in answer]
        return float(self.function(items))


AGGREGATIONS: dict[str, Aggregation] = {}


def register_aggregation(name: str) -> Callable[[Any], Any]:
    """Register a function of the list of items (or an `Aggregation`) under `name`: a decorator."""

    def decorate(function: Any) -> Any:
        rows = hasattr(function, "measured") and hasattr(function, "kind")
        AGGREGATIONS[name] = function if rows else OfList(function)
        return function

    return decorate


def get_aggregation(name: str) -> Aggregation:
    """Return the aggregation called `name`; an unknown one is an UnknownNameError."""
    if name not in AGGREGATIONS:
        raise unknown("aggregation", name, AGGREGATIONS)
    return AGGREGATIONS[name]


# --- functions of sums: (..., K) to (...) ----------------------------------------------------


def _perplexity(sums: Float) -> Float:
    value: Float = np.exp(-sums[..., 0] / sums[..., 1])
    return value


def _bits(sums: Float) -> Float:
    value: Float = -sums[..., 0] / sums[..., 1] / LN2
    return value


def _f1(sums: Float) -> Float:
    hits, extra, missed = sums[..., 0], sums[..., 1], sums[..., 2]
    below = 2 * hits + extra + missed
    value: Float = np.where(below > 0, 2 * hits / np.where(below > 0, below, 1), 0.0)
    return value


def _mcc(sums: Float) -> Float:
    """Matthews correlation of K classes (Gorodkin 2004): hits, n, K predicted, K true."""
    half = (sums.shape[-1] - 2) // 2
    hits, n = sums[..., 0], sums[..., 1]
    predicted, true = sums[..., 2 : 2 + half], sums[..., 2 + half :]
    above = hits * n - (predicted * true).sum(axis=-1)
    spread = (n**2 - (predicted**2).sum(axis=-1)) * (n**2 - (true**2).sum(axis=-1))
    below = np.sqrt(np.maximum(spread, 0))
    value: Float = np.where(below > 0, above / np.where(below > 0, below, 1), 0.0)
    return value


# --- numbers of one item ---------------------------------------------------------------------

CLASSES = 10
"""Labels that mcc tells apart, beside -1 for an answer that names none."""


def _pair_counts(item: tuple[int, int]) -> tuple[bool, bool, bool, bool]:
    gold, predicted = (label == 1 for label in item)
    return (
        gold and predicted,
        predicted and not gold,
        gold and not predicted,
        not (gold or predicted),
    )


def _class_counts(item: tuple[int, int]) -> list[float]:
    gold, predicted = item
    if not (max(item) < CLASSES and predicted >= -1):
        raise ConfigError(f"mcc counts labels from -1 to {CLASSES - 1}, got {item}")
    said, true = [0.0] * (CLASSES + 1), [0.0] * (CLASSES + 1)
    said[predicted] = 1  # -1 is the last of them
    if gold >= 0:
        true[gold] = 1
    return [float(gold == predicted), 1, *said, *true]


def _brier(item: tuple[int, Sequence[float]]) -> tuple[float]:
    gold, shares = item
    return (sum((share - (index == gold)) ** 2 for index, share in enumerate(shares)),)


def _weighted(item: tuple[float, float]) -> tuple[float, float]:
    ll, weight = item
    if weight < 0:
        raise DataError(f"expected a weight >= 0, got {weight}")
    return ll, weight


def _defined(item: float) -> tuple[float, float]:
    return (0.0, 0.0) if math.isnan(item) else (item, 1.0)


def _of_sums(score: Callable[[Float], Float]) -> Callable[[tuple[str, ...]], Kind]:
    return lambda columns: Sums(columns, score)


_MCC_COLUMNS = (
    "hits",
    "n",
    *(f"predicted_{label}" for label in (*range(CLASSES), "none")),
    *(f"true_{label}" for label in (*range(CLASSES), "none")),
)
_BUILT_IN: Mapping[str, Aggregation] = {
    "mean": OfRows(("",), lambda item: (item,), lambda c: Mean(c[0])),
    "median": OfRows(("",), lambda item: (item,), lambda c: Order(c[0])),
    "nanmean": OfRows(("sum", "n"), _defined, lambda c: Ratio(*c)),
    "perplexity": OfRows(("ll", "n"), lambda item: (item, 1), _of_sums(_perplexity)),
    "weighted_perplexity": OfRows(("ll", "weight"), _weighted, _of_sums(_perplexity)),
    "bits_per_byte": OfRows(("ll", "weight"), _weighted, _of_sums(_bits)),
    "f1": OfRows(("tp", "fp", "fn", "tn"), _pair_counts, _of_sums(_f1)),
    "matthews_corrcoef": OfRows(_MCC_COLUMNS, _class_counts, _of_sums(_mcc)),
    "brier_score": OfRows(("",), _brier, lambda c: Mean(c[0])),
    # What the harness reports where nothing was scored.
    "bypass": OfList(lambda _: 999.0, resample=False),
}
AGGREGATIONS.update(_BUILT_IN)
