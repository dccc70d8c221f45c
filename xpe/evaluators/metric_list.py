"""Any list of registered metrics over one answer: what tasks in the harness's style name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pydantic.dataclasses import dataclass

from xpe.errors import ConfigError
from xpe.evaluators.base import TextEvaluator, golds_of
from xpe.metrics import (
    OUTPUT_TYPES,
    OutputType,
    Registered,
    Texts,
    default_metrics,
    get_aggregation,
    get_metric,
    output_type_of,
    view_of,
)
from xpe.metrics.aggregations import Aggregation
from xpe.metrics.views import View
from xpe.registry import STRICT
from xpe.types import Answer, Measured, Metric

TaskKind: TypeAlias = Literal["generation", "perplexity"]
_OF_KIND: Mapping[str, OutputType] = {
    **{output_type: output_type for output_type in OUTPUT_TYPES},
    "generation": "generate_until",
    "perplexity": "loglikelihood_rolling",
}
_OURS = frozenset({"metric", "name", "aggregation", "higher_is_better", "hf_evaluate"})


@plain_dataclass(frozen=True)
class Chosen:
    """One metric of a list, with what the list says differently."""

    name: str
    metric: Registered
    aggregation: Aggregation
    higher_is_better: bool
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, entry: str | Mapping[str, Any]) -> Chosen:
        """Read an entry: a name, or `{metric, …}` with settings of its function."""
        given: dict[str, Any] = {"metric": entry} if isinstance(entry, str) else dict(entry)
        if "metric" not in given:
            raise ConfigError(f"an entry of a metric list needs `metric`, got {given}")
        metric = get_metric(given["metric"])
        return cls(
            name=given.get("name") or metric.name,
            metric=metric,
            aggregation=get_aggregation(given.get("aggregation") or metric.aggregation),
            higher_is_better=given.get("higher_is_better", metric.higher_is_better),
            settings={key: value for key, value in given.items() if key not in _OURS},
        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of its values: one, or those that the function gives at once."""
        signature = self.metric.signature
        return tuple(
            Metric(
                name=name,
                kind=self.aggregation.kind(name),
                higher_is_better=self.higher_is_better,
                signature=signature(**self.settings) if signature else None,
            )
            for name in self.metric.outputs or (self.name,)
        )

    def measured(self, view: View) -> Measured:
        """Return the columns of one answer."""
        items = self.metric.items(view, **self.settings)
        if not self.metric.outputs:
            return self.aggregation.measured(self.name, items)
        columns: dict[str, Any] = {}
        for name in self.metric.outputs:
            columns |= self.aggregation.measured(name, [item[name] for item in items])
        return columns


@dataclass(frozen=True, config=STRICT)
class MetricList(TextEvaluator):
    """Measures registered metrics.

    Parameters
    ----------
    names
        Names, or mappings `{metric, name, aggregation, higher_is_better, …}` whose other keys
        are settings of the metric. Empty: the defaults of `output_type`.
    output_type
        What the task asks for, also by kind of task; None: seen from each answer (then `names`
        must not be empty).
    """

    names: tuple[str | dict[str, Any], ...] = ()
    output_type: OutputType | TaskKind | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.names and self.output_type is None:
            raise ConfigError("a metric list needs `names` or `output_type`, got neither")
        for chosen in self._chosen:
            fitting = chosen.metric.output_types
            if self._asked is not None and self._asked not in fitting:
                raise ConfigError(
                    f"metric {chosen.metric.name!r} measures {', '.join(fitting)}, not"
                    f" {self._asked}: choose other metrics for this task"
                )

    @property
    def _asked(self) -> OutputType | None:
        return None if self.output_type is None else _OF_KIND[self.output_type]

    @cached_property
    def _chosen(self) -> tuple[Chosen, ...]:
        defaults = default_metrics(self._asked) if self._asked else ()
        return tuple(Chosen.of(entry) for entry in self.names or defaults)

    @cached_property
    def metrics(self) -> Sequence[Metric]:
        """The metrics of the list, in its order."""
        return tuple(metric for chosen in self._chosen for metric in chosen.metrics)

    def measure(self, answer: Answer) -> Measured:
        """Measure what the answer holds of the list's kind of output; nothing is invalid."""
        view = view_of(answer, self._asked or output_type_of(answer))
        return {"invalid": 1} if view is None else self._measured(view)

    def judge_text(self, prediction: str, reference: Mapping[str, Any]) -> Measured:
        """Measure a text against the right answers, one text or several."""
        return self._measured(Texts((prediction,), tuple(map(str, golds_of(reference)))))

    def _measured(self, view: View) -> Measured:
        columns: dict[str, Any] = {}
        for chosen in self._chosen:
            if view.output_type in chosen.metric.output_types:
                columns |= chosen.measured(view)
        return columns
