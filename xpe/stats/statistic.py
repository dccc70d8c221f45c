"""What error bars need to know of a metric: its value, its units, its replicates.

A unit is what is drawn together: a sample, or a whole cluster of samples. Additive metrics are a
function of summed rows, which the kernels resample fast; quantiles and functions of a list draw
indices.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from xpe.errors import DataError
from xpe.stats.closed import (
    cluster_codes,
    cluster_sums,
    clustered_stderr,
    mean_stderr,
    ratio_stderr,
    totals,
)
from xpe.types import Float, Items, Kind, Mean, Order, Ratio, Sums, Table

Codes = NDArray[np.intp]
_log = logging.getLogger(__name__)


class Draw(NamedTuple):
    """How to resample. `shared` draws by index, so that equally many units are drawn alike."""

    iters: int
    seed: int
    threads: int | None = None
    shared: bool = False


class Statistic(Protocol):
    """A metric on the rows behind it."""

    @property
    def count(self) -> int: ...
    @property
    def n_units(self) -> int: ...
    @property
    def value(self) -> float: ...
    @property
    def singles_N(self) -> Float:
        """The metric of each row alone, NaN where undefined."""

    def closed(self) -> float | None:
        """Return the closed-form standard error if it is this metric's default, else None."""

    def exact(self) -> float | None:
        """Return the closed or exact form of the bootstrapped error, None if there is none."""

    def replicates(self, draw: Draw) -> Float:
        """Return the metric of each resample, (B,)."""

    def jackknife(self) -> Float:
        """Return the metric with each unit left out, (G,)."""


@dataclass(frozen=True)
class Additive:
    """A function of summed rows."""

    rows_NK: Float
    score: Callable[[Float], Float]
    codes_N: Codes | None

    @property
    def count(self) -> int:
        return len(self.rows_NK)

    @property
    def n_units(self) -> int:
        return len(self.units_GK)

    @cached_property
    def units_GK(self) -> Float:
        """The rows that are drawn: those of samples, or the sums of clusters."""
        return self.rows_NK if self.codes_N is None else cluster_sums(self.rows_NK, self.codes_N)

    @cached_property
    def value(self) -> float:
        return float(self.scored(totals(self.rows_NK)))

    @property
    def singles_N(self) -> Float:
        return self.scored(self.rows_NK)

    def scored(self, sums: Float) -> Float:
        """Score sums (..., K); 0/0 is NaN, without a warning."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray(self.score(sums), dtype=np.float64)

    def closed(self) -> float | None:
        return None

    def exact(self) -> float | None:
        from xpe.stats.exact import sums_stderr

        return None if self.codes_N is not None else sums_stderr(self.score, self.rows_NK)

    def replicates(self, draw: Draw) -> Float:
        from xpe.stats.bootstrap import resampled_sums

        return self.scored(resampled_sums(self.units_GK, **draw._asdict()))

    def jackknife(self) -> Float:
        return self.scored(totals(self.units_GK) - self.units_GK)


@dataclass(frozen=True)
class MeanOf(Additive):
    """A mean: rows are (value, 1)."""

    @property
    def values_N(self) -> Float:
        return self.rows_NK[:, 0]

    @property
    def binary(self) -> bool:
        """Whether all values are 0 or 1."""
        return bool(np.isin(self.values_N, (0.0, 1.0)).all())

    def closed(self) -> float | None:
        if self.codes_N is None:
            return mean_stderr(self.values_N)
        return clustered_stderr(self.values_N, self.codes_N)


@dataclass(frozen=True)
class RatioOf(Additive):
    """A ratio of sums: rows are (numerator, denominator)."""

    def exact(self) -> float | None:
        return ratio_stderr(self.units_GK[:, 0], self.units_GK[:, 1])


@dataclass(frozen=True)
class Listed:
    """A function of a list of values of any type, resampled by index in Python."""

    values: Sequence[Any]
    aggregate: Callable[[Sequence[Any]], float]
    codes_N: Codes | None

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def n_units(self) -> int:
        return len(self.members)

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The places of each unit's samples."""
        if self.codes_N is None:
            return tuple((place,) for place in range(len(self.values)))
        units: list[list[int]] = [[] for _ in range(int(self.codes_N.max()) + 1)]
        for place, code in enumerate(self.codes_N):
            units[code].append(place)
        return tuple(tuple(unit) for unit in units)

    @cached_property
    def value(self) -> float:
        return float(self.aggregate(self._held))

    @property
    def singles_N(self) -> Float:
        return np.empty(0)

    def closed(self) -> float | None:
        return None

    def exact(self) -> float | None:
        return None

    def replicates(self, draw: Draw) -> Float:
        started = time.perf_counter()
        self.aggregate(self._held)
        seconds = (time.perf_counter() - started) * draw.iters
        _log.warning(
            "%s is a function of a list: %d replicates take about %.0f s; "
            "a function of sums is resampled a thousand times faster",
            _name_of(self.aggregate),
            draw.iters,
            seconds,
        )
        return np.array(
            [
                self._of(unit for code in drawn_G for unit in self.members[code])
                for drawn_G in draws(self.n_units, draw)
            ]
        )

    def jackknife(self) -> Float:
        return np.array(
            [
                self._of(
                    place
                    for other, unit in enumerate(self.members)
                    if other != left_out
                    for place in unit
                )
                for left_out in range(self.n_units)
            ]
        )

    @cached_property
    def _held(self) -> Any:
        """The values as the function takes them: an array of numbers if numba compiled it."""
        compiled = hasattr(self.aggregate, "py_func")
        return np.asarray(self.values, dtype=np.float64) if compiled else self.values

    def _of(self, places: Iterator[int]) -> float:
        held = self._held
        drawn: Any = [held[place] for place in places] if held is self.values else held[[*places]]
        return float(self.aggregate(drawn))


@dataclass(frozen=True)
class Told(Listed):
    """A number that is told as it is: there is nothing to draw."""

    @property
    def n_units(self) -> int:
        return min(1, len(self.values))


@dataclass(frozen=True)
class QuantileOf(Listed):
    """A quantile of numbers, interpolated between neighbours (0.5: the usual median)."""

    quantile: float = 0.5

    @property
    def singles_N(self) -> Float:
        return np.asarray(self.values, dtype=np.float64)

    def exact(self) -> float | None:
        from xpe.stats.exact import quantile_stderr

        if self.codes_N is not None:
            return None
        return quantile_stderr(np.asarray(self.values), self.quantile)

    def replicates(self, draw: Draw) -> Float:
        from xpe.stats.bootstrap import resampled_quantiles

        clusters = None if self.codes_N is None else self.codes_N.tolist()
        return resampled_quantiles(
            self.singles_N, self.quantile, clusters=clusters, **draw._asdict()
        )


def draws(n: int, draw: Draw) -> Iterator[NDArray[np.intp]]:
    """Yield the indices of each resample; replicate b depends on (seed, b) alone."""
    for replicate in range(draw.iters):
        words_N = np.random.Philox(key=[draw.seed, replicate]).random_raw(n)
        yield ((words_N >> 11) * 2.0**-53 * n).astype(np.intp)


# --- from a table ----------------------------------------------------------------------------


@singledispatch
def statistic(kind: Kind, table: Table) -> Statistic:  # noqa: ARG001
    """Take from `table` the rows behind a metric of this kind."""
    raise TypeError(f"expected Mean, Ratio, Sums, Order or Items, got {type(kind).__name__}")


@statistic.register
def _mean(kind: Mean, table: Table) -> Statistic:
    kept_N = scored_in(kind, table)
    values_N = finite(table, kind.column)[kept_N]
    rows_NK = np.column_stack([values_N, np.ones(len(values_N))])
    return MeanOf(rows_NK, quotient, _codes(table, kept_N))


@statistic.register
def _ratio(kind: Ratio, table: Table) -> Statistic:
    rows_NK = ratio_rows(kind, table)
    kept_N = table.scored_N & (rows_NK != 0).any(axis=1)
    return RatioOf(rows_NK[kept_N], quotient, _codes(table, kept_N))


@statistic.register
def _sums(kind: Sums, table: Table) -> Statistic:
    rows_NK = np.column_stack([finite(table, column) for column in kind.columns])
    return Additive(rows_NK[table.scored_N], kind.score, _codes(table, table.scored_N))


@statistic.register
def _order(kind: Order, table: Table) -> Statistic:
    values_N = finite(table, kind.column)[table.scored_N]

    def quantile(values: Sequence[float]) -> float:
        return float(np.quantile(values, kind.quantile))

    codes_N = _codes(table, table.scored_N)
    return QuantileOf(cast("Sequence[float]", values_N), quantile, codes_N, kind.quantile)


@statistic.register
def _items(kind: Items, table: Table) -> Statistic:
    held: Sequence[Any] = table.items.get(kind.column) or finite(table, kind.column).tolist()
    values = [value for value, kept in zip(held, table.scored_N, strict=True) if kept]
    made = Listed if kind.resample else Told
    return made(values, kind.aggregate, _codes(table, table.scored_N))


def scored_in(kind: Kind, table: Table) -> NDArray[np.bool_]:
    """Say which rows a metric is made of, (N,)."""
    if isinstance(kind, Mean) and kind.of:
        return table.scored_N & (table.column(kind.of) > 0)
    return table.scored_N


def ratio_rows(kind: Ratio, table: Table) -> Float:
    """Return numerator and denominator, (N, 2), refusing a negative denominator."""
    rows_NK = np.column_stack([finite(table, kind.numerator), finite(table, kind.denominator)])
    if (rows_NK[:, 1] < 0).any():
        place = int(np.argmax(rows_NK[:, 1] < 0))
        raise DataError(
            f"column {kind.denominator!r} must be >= 0, got {rows_NK[place, 1]} "
            f"in document {table.doc_ids[place]}"
        )
    return rows_NK


def quotient(sums: Float) -> Float:
    """Divide the first of two sums by the second."""
    shares: Float = sums[..., 0] / sums[..., 1]
    return shares


def finite(table: Table, column: str) -> Float:
    """Return a column, refusing NaN and infinity with the document that has them."""
    values_N = table.column(column)
    bad_N = ~np.isfinite(values_N) & table.scored_N
    if bad_N.any():
        place = int(np.argmax(bad_N))
        raise DataError(
            f"column {column!r} must be finite, got {values_N[place]} "
            f"in document {table.doc_ids[place]}"
        )
    return values_N


def _name_of(function: Any) -> str:
    inner = getattr(getattr(function, "__self__", None), "function", function)
    return str(getattr(inner, "__name__", inner))


def _codes(table: Table, kept_N: NDArray[np.bool_]) -> Codes | None:
    return cluster_codes([table.clusters[place] for place in np.flatnonzero(kept_N)])


def defined(value: float) -> float | None:
    """Return None for NaN and infinity."""
    return value if math.isfinite(value) else None
