"""Metrics by name: per-sample function, aggregation, direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias, TypeVar

from xpe.errors import UnknownNameError, unknown
from xpe.metrics.views import OUTPUT_TYPES, OutputType, Texts, View
from xpe.registry import Registry

Function: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Function)

DEFAULTS: Mapping[OutputType, tuple[str, ...]] = {
    "loglikelihood": ("perplexity", "acc"),
    "loglikelihood_rolling": ("word_perplexity", "byte_perplexity", "bits_per_byte"),
    "multiple_choice": ("acc", "acc_norm"),
    "generate_until": ("exact_match",),
}
"""The metrics of a task that names none."""


@dataclass(frozen=True)
class Registered:
    """One metric. `functions` is by kind of output, since an exact match of choices is no text's.

    Parameters
    ----------
    repeats
        Whether the function wants the predictions of all repeats at once.
    outputs
        The metrics that a function gives at once, as a mapping; empty for one that gives an item.
    signature
        Says, for the metric's settings, what else moves the number (tokenizer, version).
    """

    name: str
    functions: Mapping[OutputType, Function]
    aggregation: str
    higher_is_better: bool = True
    repeats: bool = False
    outputs: tuple[str, ...] = ()
    signature: Callable[..., str] | None = None

    @property
    def output_types(self) -> tuple[OutputType, ...]:
        """The kinds of output that it can measure."""
        return tuple(self.functions)

    def items(self, view: View, **settings: Any) -> list[Any]:
        """Return the items of one answer: one a repeat, or one for all of them."""
        if isinstance(view, Texts):
            function = self.functions["generate_until"]
            groups = [view.predictions] if self.repeats else [(text,) for text in view.predictions]
            references = list(view.references)
            return [
                function(predictions=list(group), references=references, **settings)
                for group in groups
            ]
        return [self.functions[view.output_type](view, **settings)]


_REGISTERED: dict[str, Registered] = {}
_POINTS = Registry("metric", "xpe.metrics", {})


def register_metric(
    *,
    metric: str,
    higher_is_better: bool = True,
    output_type: str | Sequence[str] = "generate_until",
    aggregation: str = "mean",
    repeats: bool = False,
    outputs: Sequence[str] = (),
    signature: Callable[..., str] | None = None,
) -> Callable[[F], F]:
    """Register a per-sample function as a metric: a decorator.

    For `generate_until` it is called as `function(predictions=[text], references=[…], **settings)`
    with every reference of the sample (and all repeats with `repeats=True`); for other output
    types with the view of `xpe.metrics.views` first. It returns one item for `aggregation`. The
    same name may have a function of its own for each output type.

    Raises
    ------
    ConfigError
        If an output type is unknown.
    """
    types = (output_type,) if isinstance(output_type, str) else tuple(output_type)
    for given in types:
        if given not in OUTPUT_TYPES:
            raise unknown("output type", given, OUTPUT_TYPES)

    def decorate(function: F) -> F:
        known = _REGISTERED.get(metric)
        functions: dict[Any, Function] = dict(known.functions) if known else {}
        functions |= dict.fromkeys(types, function)
        _REGISTERED[metric] = Registered(
            metric, functions, aggregation, higher_is_better, repeats, tuple(outputs), signature
        )
        return function

    return decorate


def get_metric(name: str) -> Registered:
    """Return a metric: ours, one of an entry point, else one of the `evaluate` library.

    Raises
    ------
    UnknownNameError
        If nothing answers to `name`; the message lists the nearest known ones.
    """
    if name not in _REGISTERED and name in _POINTS:
        _POINTS[name]  # its module registers it
    if name not in _REGISTERED:
        return _from_library(name)
    return _REGISTERED[name]


def list_metrics() -> list[str]:
    """Return the names of all metrics, those of entry points included."""
    return sorted({*_REGISTERED, *_POINTS})


def default_metrics(output_type: OutputType) -> tuple[str, ...]:
    """Return the metrics of a task that names none."""
    return DEFAULTS[output_type]


def _from_library(name: str) -> Registered:
    if find_spec("evaluate") is None:
        raise unknown("metric", name, list_metrics())
    import evaluate

    try:
        loaded = evaluate.load(name)
    except Exception as error:
        ours = unknown("metric", name, list_metrics())
        raise UnknownNameError(
            f"{ours}; the library `evaluate` cannot load it either: {type(error).__name__}: {error}"
        ) from error

    def compute(predictions: list[str], references: list[str], **settings: Any) -> Any:
        result = loaded.compute(predictions=predictions, references=references[:1], **settings)
        return result[name] if name in result else next(iter(result.values()))

    return Registered(name, {"generate_until": compute}, "mean")
