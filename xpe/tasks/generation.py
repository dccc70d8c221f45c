"""Generation: the model writes, evaluators read what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.data.documents import Record
from xpe.errors import ConfigError
from xpe.registry import STRICT
from xpe.tasks.base import TextTask, required, typed_reference
from xpe.tasks.choices import choice_reference, gold_index
from xpe.types import Generate, Request, Sample

MAX_TOKENS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""Names of the token limit; the first that is given counts."""
DEFAULT_MAX_TOKENS = 256


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Generation(TextTask):
    """Ask for text, `repeats` times.

    Parameters
    ----------
    generation_kwargs
        `until` (stop strings; default: `fewshot_delimiter`), `max_gen_toks` or an alias of it,
        `do_sample`, `temperature`, `top_p`, `top_k`; anything else reaches the model as it is.
    """

    kind: ClassVar[str] = "generation"
    output_type: ClassVar[str] = "generate_until"

    generation_kwargs: dict[str, Any] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        required(self, "doc_to_text", "doc_to_target")
        limits = {
            name: value for name, value in self.generation_kwargs.items() if name in MAX_TOKENS
        }
        if self.compat is None and len(set(limits.values())) > 1:
            raise ConfigError(f"generation_kwargs: several token limits {limits}; give one of them")
        _ = self.settings

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Generate`, all but the prompt."""
        return generate_settings({"until": [self.fewshot_delimiter], **self.generation_kwargs})

    def gold(self, record: Record) -> tuple[Any, dict[str, Any]]:
        """Return the target text (a list where several are right) and the reference.

        Of several right choices all are to be named, of several right texts any.

        Raises
        ------
        DataError
            If there is no target, or it is none of the choices.
        """
        target = self.texts.target(record)
        choices = self.texts.choices(record)
        if not choices:
            return target, typed_reference(target, self.answer_type, record)
        several = list(target) if isinstance(target, (list, tuple)) else [target]
        golds = [gold_index(gold, choices, record.place) for gold in several]
        reference = choice_reference(golds, choices)
        if len(golds) > 1:
            reference["answer"]["several"] = True
        texts = [choices[gold] for gold in golds]
        return texts if isinstance(target, (list, tuple)) else texts[0], reference

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """Return the question, `repeats` times."""
        return (Generate(self.context(sample), **self.settings),) * self.repeats


def generate_settings(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Translate `generation_kwargs` into arguments of `Generate`.

    Without `do_sample`, a temperature above 0 samples; `do_sample: false` makes it 0, and
    `do_sample: true` without a temperature means 1.

    Raises
    ------
    ConfigError
        If a value is impossible.
    """
    left = dict(kwargs)
    stated = [left.pop(name) for name in MAX_TOKENS if name in left]
    until = left.pop("until", None)
    do_sample = left.pop("do_sample", None)
    temperature = left.pop("temperature", 1.0 if do_sample else 0.0)
    settings = {
        "max_tokens": stated[0] if stated else DEFAULT_MAX_TOKENS,
        "stop": _stops(until),
        "temperature": temperature,
        "top_p": left.pop("top_p", 1.0),
        "top_k": left.pop("top_k", 0),
    }
    _check(settings)
    greedy = do_sample is False
    return {
        **settings,
        "temperature": 0.0 if greedy else float(settings["temperature"]),
        "extra": left,
    }


def _stops(until: Any) -> tuple[str, ...]:
    stops = [until] if isinstance(until, str) else until or ()
    if not isinstance(stops, Sequence) or not all(isinstance(stop, str) and stop for stop in stops):
        raise ConfigError(
            f"generation_kwargs.until: expected texts that are not empty, got {until!r}"
        )
    return tuple(stops)


def _check(settings: Mapping[str, Any]) -> None:
    rules: dict[str, tuple[Callable[[Any], bool], str]] = {
        "max_tokens": (lambda v: isinstance(v, int) and v >= 1, "an integer of at least 1"),
        "temperature": (lambda v: isinstance(v, (int, float)) and v >= 0, "a number from 0"),
        "top_p": (lambda v: isinstance(v, (int, float)) and 0 < v <= 1, "a number in (0, 1]"),
        "top_k": (lambda v: isinstance(v, int), "an integer"),
    }
    for name, (holds, expected) in rules.items():
        if not holds(settings[name]):
            raise ConfigError(
                f"generation_kwargs: {name} must be {expected}, got {settings[name]!r}"
            )
