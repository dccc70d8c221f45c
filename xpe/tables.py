"""Rows of what evaluators measured, gathered while answers arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xpe.types import (
    FAULTS,
    FLAGS,
    Answer,
    Evaluator,
    Items,
    Mean,
    Measured,
    Metric,
    Table,
)

_COUNTS = frozenset((*FAULTS, *FLAGS))


def measure(evaluator: Evaluator, answer: Answer) -> Measured:
    """Measure one answer: a failed one is counted, not scored; a cut one is marked."""
    if answer.failures and not getattr(evaluator, "measures_failures", False):
        return {"failed": 1}
    found = evaluator.measure(answer)
    return {**found, "truncated": 1} if answer.truncated and "truncated" not in found else found


@dataclass
class Ledger:
    """What one evaluator measured so far; `table()` puts it in the order of doc ids."""

    evaluator: Evaluator
    _rows: dict[int, tuple[str | None, Mapping[str, float]]] = field(default_factory=dict)
    _items: dict[str, dict[int, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds = (metric.kind for metric in self.evaluator.metrics)
        self._items |= {kind.column: {} for kind in kinds if isinstance(kind, Items)}

    def add(self, answer: Answer, measured: Measured) -> None:
        """Keep the numbers of one answer; what is not a number stays only if a metric wants it."""
        doc_id = answer.sample.doc_id
        for column, values in self._items.items():
            values[doc_id] = measured.get(column)
        numbers = {k: float(v) for k, v in measured.items() if isinstance(v, (int, float))}
        self._rows[doc_id] = (answer.sample.cluster, numbers)

    def table(self) -> Table:
        """Return the rows of all answers; the columns are the union of what was measured."""
        ids = sorted(self._rows)
        found = [self._rows[doc_id] for doc_id in ids]
        columns = tuple(sorted({name for _, numbers in found for name in numbers}))
        rows_NK = np.zeros((len(ids), len(columns)))
        for row, (_, numbers) in zip(rows_NK, found, strict=True):
            row[:] = [numbers.get(name, 0.0) for name in columns]
        return Table(
            columns=columns,
            rows_NK=rows_NK,
            doc_ids=tuple(ids),
            scored_N=np.array([_is_scored(numbers) for _, numbers in found], dtype=bool),
            clusters=tuple(cluster for cluster, _ in found),
            items={name: tuple(values[i] for i in ids) for name, values in self._items.items()},
        )

    def metrics(self) -> dict[str, tuple[Metric, Table]]:
        """Return each metric that has a row in the result, with the table it is made of.

        A metric of a part of the samples has one only if the part has samples.
        """
        table = self.table()
        # A name given in the config tells two evaluators of one kind apart.
        prefix = getattr(self.evaluator, "prefix", "")
        # Functions of a task name their metrics by what they return.
        of_columns = getattr(self.evaluator, "metrics_of", None)
        metrics = of_columns(table.columns) if of_columns else self.evaluator.metrics
        return {
            result_key(prefix + metric.name, self.evaluator.filter): (metric, table)
            for metric in metrics
            if _applies(metric, table)
        }


def _is_scored(numbers: Mapping[str, float]) -> bool:
    """Whether a row holds more than counts of faults, or has no fault at all."""
    faulty = any(numbers.get(fault) for fault in FAULTS)
    return not faulty or bool(numbers.keys() - _COUNTS)


def _applies(metric: Metric, table: Table) -> bool:
    kind = metric.kind
    return not (isinstance(kind, Mean) and kind.of) or bool(table.column(kind.of).any())


def result_key(metric: str, filter_name: str) -> str:
    """Return `metric`, or `metric,filter` when answers went through a filter."""
    return metric if filter_name == "none" else f"{metric},{filter_name}"


def keys_of(evaluators: Sequence[Evaluator]) -> dict[str, Evaluator]:
    """Name each evaluator of a task as the sample file does: `name` or `name,filter`."""
    return {result_key(e.name, e.filter): e for e in evaluators}
