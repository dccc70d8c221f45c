"""The base of all evaluators, and of those that judge one text against one reference.

`BaseEvaluator` is the documented interface. `TextEvaluator` is the base of the built-in ones: a
frozen dataclass that judges one text at a time, which makes it usable both from Python
(`evaluate`) and in a run (`measure`). `adapt` brings a custom evaluator into a run.
"""

from __future__ import annotations

import abc
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from pydantic.dataclasses import dataclass

from xpe.registry import STRICT
from xpe.types import (
    FAULTS,
    FLAGS,
    Answer,
    Evaluator,
    Float,
    Items,
    Kind,
    Mean,
    Measured,
    Metric,
    Order,
    Ratio,
    Sums,
)

logger = logging.getLogger(__name__)


class BaseEvaluator(abc.ABC):
    """Scores predictions against references.

    `metric_names` may name the metrics that `evaluate` returns; without it a run learns them by
    evaluating no samples.
    """

    name: str
    kwargs: Mapping[str, Any]
    metric_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **kwargs: Any) -> None:
        self.name = kwargs.get("name", self.__class__.__name__)
        self.kwargs = kwargs

    @abc.abstractmethod
    def evaluate(
        self, predictions: Sequence[str], references: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return `{metric: {score, min, max, count}}` over all samples."""

    def _is_valid_sample(self, prediction: Any, reference: Any) -> bool:
        """Say whether there is a prediction, and a reference `{"answer": {"value": …}}`."""
        if prediction is None or not isinstance(reference, Mapping):
            return False
        answer = reference.get("answer")
        return isinstance(answer, Mapping) and "value" in answer

    def aggregate_scores(self, individual_scores: Sequence[float]) -> dict[str, float]:
        """Return mean, lowest, highest and number of scores; zeros for none."""
        if not individual_scores:
            return {"score": 0.0, "min": 0.0, "max": 0.0, "count": 0}
        return {
            "score": sum(individual_scores) / len(individual_scores),
            "min": min(individual_scores),
            "max": max(individual_scores),
            "count": len(individual_scores),
        }


@dataclass(frozen=True, config=STRICT)
class TextEvaluator(BaseEvaluator):
    """Judges one text at a time. A subclass is a frozen dataclass with `judge_text`, `metrics`.

    Parameters
    ----------
    name
        The class's own name where none is given; a given one tells two of a kind apart.
    filter
        Name of the filter that answers go through first.
    """

    name: str = ""
    filter: str = "none"

    def __new__(cls, *_args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        object.__setattr__(self, "_given", kwargs)
        return self

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", type(self).__name__)

    @property
    def kwargs(self) -> Mapping[str, Any]:  # type: ignore[override]
        """The settings as they were given."""
        return dict(self.__dict__["_given"])

    @property
    def prefix(self) -> str:
        """What goes before metric names in a result: a given name and `_`, else nothing."""
        return "" if self.name == type(self).__name__ else f"{self.name}_"

    @property
    @abc.abstractmethod
    def metrics(self) -> Sequence[Metric]:
        """The metrics, without prefix; those of a part (`Mean(of=…)`) after the whole."""

    @abc.abstractmethod
    def judge_text(self, prediction: str, reference: Mapping[str, Any]) -> Measured:
        """Measure one text; `reference` is `{answer: {type, value}, choices: […]}`.

        Numbers become columns (absent = 0); other values go to the sample file. Never raises on
        what a model wrote; what cannot be judged is `{"invalid": 1}` or `{"timeout": 1}` alone.
        """

    def measure(self, answer: Answer) -> Measured:
        """Measure an answer; columns of repeats are averaged over those that are scored."""
        reference = answer.sample.reference
        return averaged([self._judged(text, reference) for text in predictions(answer)])

    def evaluate(
        self, predictions: Sequence[str], references: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return `{metric: {score, min, max, count}}`; invalid samples are skipped and logged.

        Raises
        ------
        ValueError
            If there are not as many references as predictions.
        """
        _check_lengths(predictions, references)
        rows = []
        for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
            measured = self._judged(prediction, reference)
            if is_scored(measured):
                rows.append(measured)
            else:
                logger.warning("%s: sample %d skipped: %s", self.name, index, ", ".join(measured))
        return scores(self.metrics, rows)

    def _judged(self, prediction: Any, reference: Any) -> Measured:
        if not self._is_valid_sample(prediction, reference) or reference["answer"]["value"] is None:
            return {"invalid": 1}
        return self.judge_text(str(prediction), reference)


@dataclass(frozen=True, config=STRICT)
class Adapted:
    """A custom evaluator that only overrides `evaluate`, as part of a run.

    `evaluate` is called once, on all samples; it gives no values per sample, hence no error bar.
    """

    evaluator: BaseEvaluator
    filter: str = "none"

    @property
    def name(self) -> str:
        """The name of the evaluator inside."""
        return self.evaluator.name

    @cached_property
    def metrics(self) -> Sequence[Metric]:
        """Those that the class declares in `metric_names`, else those of no samples."""
        evaluate = _once(self._scored)
        return tuple(
            Metric(name, Items("items", lambda items, name=name: evaluate(items, name), False))  # type: ignore[misc]
            for name in self.evaluator.metric_names or self._names_of_nothing()
        )

    def measure(self, answer: Answer) -> Measured:
        """Keep prediction and reference; an object column, one pair a repeat."""
        reference = answer.sample.reference
        pairs = tuple((text, reference) for text in predictions(answer))
        valid = bool(pairs) and all(self.evaluator._is_valid_sample(*pair) for pair in pairs)  # noqa: SLF001
        return {"items": pairs} if valid else {"invalid": 1}

    def _names_of_nothing(self) -> tuple[str, ...]:
        try:
            names = tuple(self.evaluator.evaluate([], []))
        except Exception:  # noqa: BLE001
            names = ()
        return names or (self.name,)

    def _scored(self, items: Sequence[Any]) -> Mapping[str, float]:
        pairs = [pair for item in items for pair in item]
        result = self.evaluator.evaluate([text for text, _ in pairs], [ref for _, ref in pairs])
        values = {str(name): _score_of(value) for name, value in result.items()}
        known = {metric.name for metric in self.metrics}
        if len(values) == 1 and known == {self.name}:
            return dict.fromkeys(known, *values.values())
        if missing := values.keys() - known:
            logger.warning(
                "%s.evaluate() also returned %s; declare them in its `metric_names` to have them"
                " in the results",
                type(self.evaluator).__name__,
                ", ".join(sorted(missing)),
            )
        return values


def adapt(evaluator: Any) -> Evaluator:
    """Return what a run can use: the evaluator itself if it measures, else `Adapted`."""
    return evaluator if hasattr(evaluator, "measure") else Adapted(evaluator)


# --- answers and rows ------------------------------------------------------------------------


def predictions(answer: Answer) -> Sequence[str | None]:
    """Return the texts to judge: what was written, else the id of the likeliest choice."""
    if answer.generated:
        return [reply.text for reply in answer.generated]
    choices = answer.sample.reference.get("choices") or ()
    values = [value for reply in answer.scored for value in reply.log_likelihoods][: len(choices)]
    if not choices or len(values) < len(choices):
        return []
    return [str(choices[int(np.argmax(values))]["id"])]


def golds_of(reference: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return all right answers: `values` where a task gives several, else `value`, maybe a list."""
    answer = reference["answer"]
    stated = answer.get("values") or answer["value"]
    return tuple(stated) if isinstance(stated, (list, tuple)) else (stated,)


def is_scored(measured: Measured) -> bool:
    """Say whether a row has no fault, or holds more than faults and flags."""
    faulty = any(measured.get(fault) for fault in FAULTS)
    return not faulty or bool(measured.keys() - {*FAULTS, *FLAGS})


def averaged(rows: Sequence[Measured]) -> Measured:
    """Return the row of an answer from those of its repeats, averaged over the scored ones.

    Faults are shares of all repeats; values that are not numbers become tuples. No rows at all
    means that there was nothing to judge.
    """
    if not rows:
        return {"invalid": 1}
    if len(rows) == 1:
        return rows[0]
    good = [row for row in rows if is_scored(row)]
    numbers = {key for row in good for key, value in row.items() if _is_number(value)}
    objects = {key for row in good for key in row} - numbers
    faults = {key: sum(row.get(key, 0) for row in rows) / len(rows) for key in FAULTS}
    return {
        **{key: sum(row.get(key, 0) for row in good) / len(good) for key in sorted(numbers)},
        **{key: tuple(row.get(key) for row in rows) for key in sorted(objects)},
        **{key: share for key, share in faults.items() if share},
    }


def scores(metrics: Sequence[Metric], rows: Sequence[Measured]) -> dict[str, Any]:
    """Return `{metric: {score, min, max, count}}`; the first metric always, others where n > 0."""
    results = {metric.name: _summary(metric.kind, rows) for metric in metrics}
    first = metrics[0].name
    return {name: made for name, made in results.items() if made["count"] or name == first}


def _summary(kind: Kind, rows: Sequence[Measured]) -> dict[str, float]:
    value, singles = _value_and_singles(kind, rows)
    if not len(singles):
        return {"score": 0.0, "min": 0.0, "max": 0.0, "count": 0}
    defined = [single for single in singles if not math.isnan(single)] or [math.nan]
    return {"score": value, "min": min(defined), "max": max(defined), "count": len(singles)}


def _value_and_singles(kind: Kind, rows: Sequence[Measured]) -> tuple[float, list[float]]:
    match kind:
        case Mean(column, of):
            chosen = [row for row in rows if of is None or row.get(of, 0) > 0]
            values = [float(row.get(column, 0)) for row in chosen]
            return sum(values) / len(values) if values else math.nan, values
        case Ratio(above, below):
            asked = [row for row in rows if row.get(below, 0) > 0]
            return _of_sums((above, below), _ratio, asked)
        case Sums(columns, score):
            return _of_sums(columns, score, rows)
        case Order(column, quantile):
            values = [float(row.get(column, 0)) for row in rows]
            return float(np.quantile(values, quantile)) if values else math.nan, values
        case Items(column, aggregate):
            items = [row[column] for row in rows if column in row]
            return float(aggregate(items)), [float(aggregate([item])) for item in items]


def _of_sums(
    columns: Sequence[str], score: Callable[[Float], Float], rows: Sequence[Measured]
) -> tuple[float, list[float]]:
    rows_NK = np.array([[row.get(column, 0) for column in columns] for row in rows], np.float64)
    if not len(rows_NK):
        return math.nan, []
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(score(rows_NK.sum(axis=0))), [float(value) for value in score(rows_NK)]


def _ratio(sums: Float) -> Float:
    quotient: Float = sums[..., 0] / sums[..., 1]
    return quotient


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def _score_of(value: Any) -> float:
    return float(value["score"] if isinstance(value, Mapping) else value)


def _once(scored: Callable[[Sequence[Any]], Mapping[str, float]]) -> Callable[..., float]:
    """Share one call of `scored` between the metrics that ask about the same items."""
    last: tuple[tuple[int, ...], Mapping[str, float]] | None = None

    def value(items: Sequence[Any], name: str) -> float:
        nonlocal last
        key = tuple(map(id, items))
        if last is None or last[0] != key:
            last = (key, scored(items))
        return last[1].get(name, math.nan)

    return value


def _check_lengths(predictions: Sequence[Any], references: Sequence[Any]) -> None:
    if len(predictions) != len(references):
        raise ValueError(
            f"as many predictions as references are needed, got {len(predictions)} predictions"
            f" and {len(references)} references"
        )
