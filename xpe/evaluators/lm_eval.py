"""The metrics of a task in the format of lm-evaluation-harness: filters, functions, its rules.

Replies go through a pipeline of filters, become one item a metric, and aggregations make numbers
of items. Under `compat: lm_eval` items are the harness's own; without it, those of `xpe.metrics`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from functools import cached_property, partial
from typing import Any, Literal

from pydantic.dataclasses import dataclass

from xpe.data.code import Function, as_function, is_named
from xpe.errors import ConfigError
from xpe.evaluators.base import TextEvaluator
from xpe.evaluators.harness_items import PASSED_ON, choice_items, text_item
from xpe.metrics import (
    OutputType,
    Registered,
    Texts,
    default_metrics,
    get_aggregation,
    get_metric,
    list_metrics,
    view_of,
)
from xpe.metrics.aggregations import Aggregation, OfList
from xpe.metrics.views import references_of
from xpe.registry import STRICT
from xpe.text.filters import Applied, Filter, Filtered, filtered, get_filter
from xpe.types import Answer, Generated, Items, Kind, Mean, Measured, Metric, Sample, Scored

logger = logging.getLogger(__name__)

_OURS = frozenset({"metric", "aggregation", "higher_is_better", "hf_evaluate"})
_SEEN = ".given"
"""Ending of the column that says whether a function gave a value for a document."""


@plain_dataclass(frozen=True)
class OfFunction(OfList):
    """An aggregation that a task brings along; it is not resampled."""

    def kind(self, metric: str) -> Kind:
        """Return the kind of a function of the whole list."""
        return Items(metric, self._of_answers, resample=False)


@plain_dataclass(frozen=True)
class Entry:
    """One entry of a metric list. `make` is the function of a task, `registered` one of ours."""

    name: str
    aggregation: Aggregation
    higher_is_better: bool
    settings: Mapping[str, Any]
    make: Function | None = None
    registered: Registered | None = None

    @property
    def plain(self) -> bool:
        """Whether its items are averaged."""
        return isinstance(self.aggregation.kind(self.name), Mean)


@dataclass(frozen=True, config=STRICT)
class HarnessMetrics(TextEvaluator):
    """Measures what a task of lm-evaluation-harness measures.

    Parameters
    ----------
    names
        Names, or mappings `{metric, aggregation, higher_is_better, …}` whose other keys are
        settings of the metric; metric and aggregation may be functions. Empty: the defaults.
    output_type
        What the task asks for.
    filters
        The pipeline that replies go through: `{kind, …}` each.
    process_results
        A function of the document and the results that gives all items at once.
    compat
        `lm_eval`: items as the harness makes them.
    """

    names: tuple[str | dict[str, Any], ...] = ()
    output_type: OutputType = "generate_until"
    filters: tuple[dict[str, Any], ...] = ({"kind": "take_first"},)
    process_results: Function | None = None
    compat: Literal["lm_eval"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._entries, self._pipeline
        if self.output_type != "generate_until" and not all(
            is_named(step["kind"]) or step["kind"] in ("take_first", "custom")
            for step in self.filters
        ):
            raise ConfigError(
                f"filter {self.filter!r}: {[step['kind'] for step in self.filters]} read texts, "
                f"and the task asks for {self.output_type}"
            )

    # --- what is measured ------------------------------------------------------------------

    @cached_property
    def metrics(self) -> Sequence[Metric]:
        """The metrics of the list; functions may give others (see `metrics_of`)."""
        return tuple(self._metric(entry.name, entry) for entry in self._entries.values())

    def metrics_of(self, columns: Sequence[str]) -> Sequence[Metric]:
        """Return the metrics of the list, and those that functions gave beside them."""
        given = {name.removesuffix(_SEEN) for name in columns if name.endswith(_SEEN)}
        others = sorted(given - self._entries.keys())
        source = self._source
        hidden = {source.name} - given if source and others else set()
        listed = [metric for metric in self.metrics if metric.name not in hidden]
        return (*listed, *(self._metric(name, source) for name in others))

    @property
    def _source(self) -> Entry | None:
        """The only function among the metrics: what it gives under other names is aggregated
        as it is.
        """
        functions = [entry for entry in self._entries.values() if entry.make is not None]
        return functions[0] if len(functions) == 1 and self.process_results is None else None

    @cached_property
    def _entries(self) -> Mapping[str, Entry]:
        stated = self.names or default_metrics(self.output_type)
        entries = [self._entry({"metric": e} if isinstance(e, str) else e) for e in stated]
        return {entry.name: entry for entry in entries}

    def _entry(self, stated: Mapping[str, Any]) -> Entry:
        if "metric" not in stated:
            raise ConfigError(f"an entry of metric_list needs `metric`, got {dict(stated)}")
        metric, aggregation = (as_function(stated.get(key)) for key in ("metric", "aggregation"))
        make = metric if isinstance(metric, Function) else None
        name = make.function if make else str(metric)
        passed_on = isinstance(aggregation, Function) or name in PASSED_ON
        registered = None if make or self.process_results else self._registered(name, passed_on)
        default = registered.aggregation if registered else "mean"
        better = registered.higher_is_better if registered else True
        return Entry(
            name=name,
            aggregation=(
                OfFunction(aggregation)
                if isinstance(aggregation, Function)
                else get_aggregation(aggregation or default)
            ),
            higher_is_better=stated.get("higher_is_better", better),
            settings={key: value for key, value in stated.items() if key not in _OURS},
            make=make,
            registered=registered,
        )

    def _registered(self, name: str, passed_on: bool) -> Registered | None:
        if passed_on and name not in list_metrics():
            return None
        found = get_metric(name)
        if self.output_type in found.output_types:
            return found
        if passed_on:
            return None
        raise ConfigError(
            f"metric {name!r} measures {', '.join(found.output_types)}, not {self.output_type}"
        )

    def _metric(self, name: str, entry: Entry | None) -> Metric:
        kind = entry.aggregation.kind(name) if entry else Mean(name)
        if isinstance(kind, Mean) and (entry is None or entry.make or self.process_results):
            kind = Mean(name, of=f"{name}{_SEEN}")
        signature = entry.registered.signature if entry and entry.registered else None
        return Metric(
            name=name,
            kind=kind,
            higher_is_better=entry.higher_is_better if entry else True,
            signature=signature(**self._language) if signature else None,
        )

    @property
    def _language(self) -> Mapping[str, Any]:
        """The harness has one tokenizer for all languages."""
        return {"language": "en"} if self.compat else {}

    # --- answers ---------------------------------------------------------------------------

    def measure(self, answer: Answer) -> Measured:
        """Measure what the filters leave; what a function fails on, or is no number, is invalid."""
        results = self.results(answer)
        if results is None:
            return {"invalid": 1}
        try:
            columns = self._columns(self._items(answer, results.value))
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - the code of a task may raise anything
            place = answer.sample.task, self.filter, answer.sample.doc_id
            said = type(error).__name__, error
            logger.warning("%s %s: document %d cannot be scored: %s: %s", *place, *said)
            return {"invalid": 1}
        if not all(math.isfinite(v) for v in columns.values() if isinstance(v, (int, float))):
            return {"invalid": 1}
        return {**columns, "unparsed": 1} if results.missed else columns

    def items(self, answer: Answer) -> Mapping[str, Any]:
        """Return the item of each metric, as the harness logs it; none for what has no answer.

        Raises whatever a function of the task raises.
        """
        results = self.results(answer)
        found = {} if results is None else self._items(answer, results.value)
        return {name: items[0] if len(items) == 1 else items for name, items in found.items()}

    def judge_text(self, prediction: str, reference: Mapping[str, Any]) -> Measured:
        """Measure a text against `reference["answer"]["value"]`, one text or several."""
        value = reference["answer"]["value"]
        values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        found = filtered(self._pipeline, [prediction], {})
        texts = found.value if isinstance(found.value, list) else [found.value]
        view = Texts(tuple(map(str, texts)), tuple(map(str, values)))
        columns: dict[str, Any] = {"unparsed": 1} if found.missed else {}
        for entry in self._entries.values():
            if entry.registered is not None:
                items = entry.registered.items(view, **entry.settings)
                columns |= entry.aggregation.measured(entry.name, items)
        return columns

    @cached_property
    def _pipeline(self) -> tuple[Filter, ...]:
        return tuple(self._filter(dict(step)) for step in self.filters)

    def _filter(self, step: dict[str, Any]) -> Filter:
        kind = as_function(step.pop("kind"))
        settings = {key: as_function(value) for key, value in step.items()}
        if isinstance(kind, Function):
            return _Late(partial(kind, **settings))
        if kind == "multi_choice_regex":
            settings.setdefault("longest_first", self.compat is None)
        return get_filter(str(kind), **settings)

    def results(self, answer: Answer) -> Filtered | None:
        """Return what each request left after the filters, in the harness's form."""
        replies = [e.reply for e in answer.exchanges if e.request.to == "model"]
        if self.output_type == "generate_until":
            texts = [reply.text for reply in replies if isinstance(reply, Generated)]
            if not texts:
                return None
            found = filtered(self._pipeline, texts, answer.sample.doc, letters=bool(self.compat))
            return Filtered([found.value], found.missed)
        scored = [reply for reply in replies if isinstance(reply, Scored)]
        if self.output_type == "loglikelihood_rolling":
            return Filtered([sum(r.log_likelihoods) for r in scored]) if scored else None
        pairs = [p for r in scored for p in zip(r.log_likelihoods, r.greedy, strict=True)]
        return Filtered(pairs) if pairs else None

    def _columns(self, items: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """Return the columns of items; those that no entry names are averaged."""
        source = self._source
        columns: dict[str, Any] = {}
        for name, several in items.items():
            entry = self._entries.get(name) or source
            aggregation = entry.aggregation if entry else get_aggregation("mean")
            columns |= aggregation.measured(name, several)
            if self.process_results is not None or (entry and entry.make):
                columns[f"{name}{_SEEN}"] = 1
        return columns

    def _items(self, answer: Answer, results: list[Any]) -> dict[str, list[Any]]:
        """Return the items of each metric: one, or one a repeat."""
        if self.process_results is not None:
            given = self.process_results(dict(answer.sample.doc), results)
            return {str(name): [item] for name, item in given.items()}
        if self.output_type == "generate_until":
            return self._text_items(answer.sample, results[0])
        if self.output_type == "multiple_choice" and self.compat:
            texts = [str(c["text"]) for c in answer.sample.reference.get("choices") or ()]
            found = choice_items(tuple(self._entries), results, texts, answer.sample.target)
            return {name: [item] for name, item in found.items()}
        view = view_of(answer, self.output_type)
        return {
            name: entry.registered.items(view)  # settings are for texts only
            for name, entry in self._entries.items()
            if entry.registered is not None and view is not None
        }

    def _text_items(self, sample: Sample, result: Any) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for name, entry in self._entries.items():
            if entry.make is not None:
                found |= _given(entry, sample.target, result)
            elif self.compat or entry.registered is None or not entry.plain:
                item = text_item(name, entry.settings, sample.target, result)
                found[name] = [self._spoken(entry, item)]
            else:
                values = result if isinstance(result, list) else [result]
                view = Texts(tuple(map(str, values)), references_of(sample))
                found[name] = entry.registered.items(view, **entry.settings)
        return found

    def _spoken(self, entry: Entry, item: Any) -> Any:
        """Say that the harness takes every text for English, whatever it is."""
        if entry.name not in ("bleu", "chrf", "ter") or isinstance(entry.aggregation, OfList):
            return item
        from xpe.metrics.corpus import Pair

        references, prediction = item
        several = [str(r) for r in references] if isinstance(references, list) else [references]
        return Pair(several, str(prediction), "en" if self.compat else "auto")


def _given(entry: Entry, gold: Any, result: Any) -> dict[str, list[Any]]:
    """Call a task's own metric; a mapping gives several metrics at once."""
    gold = gold if isinstance(gold, list) or isinstance(result, list) else str(gold)
    call: Callable[..., Any] = entry.make.resolved if entry.make else dict
    try:
        found = call(references=[gold], predictions=[result], **entry.settings)
    except TypeError:
        found = call([gold, result])
    items = found if isinstance(found, Mapping) else {entry.name: found}
    return {str(name): [item] for name, item in items.items()}


@plain_dataclass(frozen=True)
class _Late:
    """A filter class of a task, made on first use: its file is not run to check a config."""

    make: Callable[[], Any]

    @cached_property
    def _filter(self) -> Applied:
        return Applied(self.make())

    def __call__(self, replies: Sequence[Any], doc: Mapping[str, Any]) -> Filtered:
        return self._filter(replies, doc)
