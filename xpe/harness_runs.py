"""Results of lm-evaluation-harness as a run to compare with: its own files, nothing asked anew."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from xpe.errors import DataFileError, UnknownNameError
from xpe.harness_samples import answer_of, lines_of
from xpe.metrics import get_aggregation, get_metric
from xpe.metrics.aggregations import Aggregation
from xpe.tables import Ledger
from xpe.types import Answer, Measured, Metric, Sample, Table

_PREFIX = "samples_"


def is_harness(path: Path) -> bool:
    """Whether a path is a sample file of the harness, or a folder of them."""
    if path.is_dir():
        return not (path / "results.json").exists() and any(path.glob(f"{_PREFIX}*.jsonl"))
    return path.name.startswith(_PREFIX) and path.suffix == ".jsonl"


@dataclass(frozen=True)
class HarnessRun:
    """What the harness wrote of one run; of several in a folder the last of each task."""

    folder: Path

    @property
    def name(self) -> str:
        """The name of the folder or file."""
        return self.folder.name

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """The sample file of each task."""
        found = [self.folder] if self.folder.is_file() else sorted(self.folder.glob("samples_*"))
        return {_task_of(file): file for file in found if file.suffix == ".jsonl"}

    @cached_property
    def results(self) -> Mapping[str, Any]:
        """The result file, if it is there; always with `results` by task."""
        place = self.folder.parent if self.folder.is_file() else self.folder
        files = sorted(place.glob("results_*.json"))
        found = json.loads(files[-1].read_text("utf-8")) if files else {}
        return {**found, "results": {task: {} for task in self.files}}

    def lines(self, task: str) -> dict[int, Mapping[str, Any]]:
        """Return what each document was asked and answered, and its metrics by filter.

        Raises
        ------
        DataFileError
            A file is broken.
        """
        found: dict[int, dict[str, Any]] = {}
        for line, where in lines_of(self.files[task]):
            doc_id = int(line["doc_id"])
            answer = answer_of(line, task, where)
            kept = found.setdefault(
                doc_id,
                {
                    "doc_id": doc_id,
                    "doc": line["doc"],
                    "target": line["target"],
                    "replies": _said(answer),
                    "prompt_hash": line.get("prompt_hash"),
                    "doc_hash": line.get("doc_hash"),
                    "measured": {},
                },
            )
            kept["measured"][str(line["filter"])] = {m: line.get(m) for m in line["metrics"]}
        if not found:
            raise DataFileError(f"{self.files[task]}: holds no samples")
        return dict(found)

    def rows(
        self, task: str, lines: Mapping[int, Mapping[str, Any]]
    ) -> dict[str, tuple[Metric, Table]]:
        """Return each metric of a task with its table, from what the harness logged."""
        names = {name for line in lines.values() for name in line["measured"]}
        found: dict[str, tuple[Metric, Table]] = {}
        for name in sorted(names):
            logged = _Logged(name, self._entries(task), lines)
            ledger = Ledger(logged)
            for doc_id, line in lines.items():
                answer = Answer(Sample(task, doc_id, line["measured"].get(name, {}), None, {}), ())
                ledger.add(answer, logged.measure(answer))
            found |= ledger.metrics()
        return found

    def _entries(self, task: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the metric list of a task as its config states it."""
        config = (self.results.get("configs") or {}).get(task) or {}
        stated = config.get("metric_list") or []
        return {str(entry.get("metric")): entry for entry in stated}


class _Logged:
    """An evaluator of what the harness logged of a document under one filter: its `doc`."""

    def __init__(
        self,
        name: str,
        entries: Mapping[str, Mapping[str, Any]],
        lines: Mapping[int, Mapping[str, Any]],
    ) -> None:
        self.name = self.filter = name
        items = [line["measured"].get(name, {}) for line in lines.values()]
        self._made = dict(_metrics(items, entries))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(metric for metric, _ in self._made.values())

    def measure(self, answer: Answer, /) -> Measured:
        """Return the columns of the metrics that can be compared."""
        found: dict[str, Any] = {}
        for name, item in answer.sample.doc.items():
            if name in self._made:
                metric, aggregation = self._made[name]
                found |= aggregation.measured(name, [_item(item, metric)])
        return found or {"invalid": 1}


def _metrics(
    items: list[Mapping[str, Any]], entries: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[Metric, Aggregation]]]:
    """Yield the metrics whose items can be compared: numbers, and those of known aggregations."""
    for name in sorted({key for row in items for key in row}):
        values = [row[name] for row in items if name in row]
        numbers = all(isinstance(v, (int, float)) and math.isfinite(v) for v in values)
        stated = entries.get(name, {}).get("aggregation")
        aggregation, better = _known(name)
        better = entries.get(name, {}).get("higher_is_better", better)
        chosen = stated if isinstance(stated, str) and stated in _KNOWN else aggregation
        if numbers and chosen not in ("perplexity", "median"):
            chosen = "mean"
        if chosen is None or (not numbers and chosen == "mean"):
            continue
        made = get_aggregation(chosen)
        metric = Metric(name, made.kind(name), bool(better), _signature(name))
        if all(_measurable(value, metric, made) for value in values):
            yield name, (metric, made)


_KNOWN = frozenset(
    {"mean", "median", "perplexity", "weighted_perplexity", "bits_per_byte", "f1",
     "matthews_corrcoef", "brier_score", "bleu", "chrf", "ter"}
)  # fmt: skip


def _known(name: str) -> tuple[str | None, bool]:
    try:
        metric = get_metric(name)
    except (UnknownNameError, ValueError):
        return None, True
    return metric.aggregation, metric.higher_is_better


def _signature(name: str) -> str | None:
    """Return how the harness counts a corpus metric: every text with the tokenizer for English."""
    from xpe.metrics.corpus import SCORES, signature

    return signature(name, "en") if name in SCORES else None


def _measurable(item: Any, metric: Metric, aggregation: Aggregation) -> bool:
    """Whether an item survived the way to the file: the harness writes arrays as text."""
    try:
        aggregation.measured(metric.name, [_item(item, metric)])
    except (TypeError, ValueError, IndexError):
        return False
    return True


def _item(item: Any, metric: Metric) -> Any:
    """Return an item as aggregations take it: JSON knows lists only."""
    if not isinstance(item, list):
        return item
    if metric.signature is None:
        return tuple(item)
    from xpe.metrics.corpus import Pair

    references, prediction = item
    return Pair([references] if isinstance(references, str) else references, prediction, "en")


def _said(answer: Answer) -> list[dict[str, Any]]:
    return [
        {"text": reply.text} if hasattr(reply, "text") else
        {"log_likelihoods": list(getattr(reply, "log_likelihoods", ()))}
        for reply in (exchange.reply for exchange in answer.exchanges)
    ]  # fmt: skip


def _task_of(file: Path) -> str:
    """Return the task in `samples_<task>_<time>.jsonl`."""
    stem, _, time = file.stem.removeprefix(_PREFIX).rpartition("_")
    return stem if stem and time[:4].isdigit() and "T" in time else file.stem[len(_PREFIX) :]
