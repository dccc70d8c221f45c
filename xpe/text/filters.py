"""Filters: what is read out of replies before they are scored, by the names that tasks use.

A filter takes all replies to one question (one a repeat) and gives a value or a list of them.
A pipeline is a list of filters. What a filter cannot read becomes its fallback and is counted;
nothing that a model wrote makes a filter fail.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from xpe.errors import ConfigError, SettingTypeError, unknown

Doc: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Filtered:
    """What became of the replies to one question; `missed` counts those with a fallback."""

    value: Any
    missed: int = 0


class Filter(Protocol):
    """Makes something of all replies to a question about `doc`."""

    def __call__(self, replies: Sequence[Any], doc: Doc, /) -> Filtered: ...


FILTERS: dict[str, Callable[..., Filter]] = {}


def register_filter(name: str) -> Callable[[Any], Any]:
    """Register a class whose objects are filters under `name`: a decorator."""

    def decorate(cls: Any) -> Any:
        FILTERS[name] = cls
        return cls

    return decorate


def get_filter(name: str, **settings: Any) -> Filter:
    """Return the filter called `name`.

    Raises
    ------
    UnknownNameError
        If there is none.
    ConfigError
        If it does not take these settings.
    """
    if name not in FILTERS:
        raise unknown("filter", name, FILTERS)
    try:
        return FILTERS[name](**settings)
    except TypeError as error:
        raise ConfigError(f"filter {name!r}: {error}") from error


def filtered(
    pipeline: Sequence[Filter], replies: Sequence[Any], doc: Doc, *, letters: bool = False
) -> Filtered:
    """Send the replies to one question through a pipeline.

    A filter that follows one which left a single value gets a list of that value, and a single
    value comes out again. With `letters` it gets the letters of a text one by one instead, as in
    lm-evaluation-harness.
    """
    value: Any = list(replies)
    missed = 0
    for step in pipeline:
        spelt = letters and isinstance(value, str) and value
        single = not isinstance(value, list) and not spelt
        found = step(list(value) if spelt else [value] if single else value, doc)
        value, missed = found.value, missed + found.missed
        if single and isinstance(value, list) and len(value) == 1:
            value = value[0]
    return Filtered(value, missed)


# --- choosing among replies ------------------------------------------------------------------


@register_filter("take_first")
@dataclass(frozen=True)
class TakeFirst:
    """The first reply."""

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        return Filtered(replies[0])


@register_filter("take_first_k")
@dataclass(frozen=True)
class TakeFirstK:
    """The first `k` replies; fewer where there are no more, which counts as missed."""

    k: int

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        return Filtered(list(replies[: self.k]), int(len(replies) < self.k))


@register_filter("majority_vote")
@dataclass(frozen=True)
class MajorityVote:
    """The most frequent reply, as a list of one; the first among equally frequent ones."""

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        votes = Counter(_key(reply) for reply in replies)
        most = votes.most_common(1)[0][0]
        return Filtered([next(reply for reply in replies if _key(reply) == most)])


# --- rewriting each reply --------------------------------------------------------------------


@dataclass(frozen=True)
class _Each:
    """Rewrites texts one by one; what is no text stays as it is."""

    rewrite: Callable[[str], str]

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        return Filtered([self.rewrite(r) if isinstance(r, str) else r for r in replies])


FILTERS["lowercase"] = lambda: _Each(str.lower)
FILTERS["uppercase"] = lambda: _Each(str.upper)
FILTERS["remove_whitespace"] = lambda: _Each(str.strip)


@register_filter("map")
@dataclass(frozen=True)
class Map:
    """Replaces each reply by what `mapping_dict` says; others become `default_value`."""

    mapping_dict: Mapping[Any, Any] = field(default_factory=dict)
    default_value: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.mapping_dict, Mapping):
            raise SettingTypeError(f"mapping_dict: expected a mapping, got {self.mapping_dict!r}")

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        known = [isinstance(r, Hashable) and r in self.mapping_dict for r in replies]
        values = [
            self.mapping_dict[reply] if is_known else self.default_value
            for reply, is_known in zip(replies, known, strict=True)
        ]
        return Filtered(values, known.count(False))


# --- reading with patterns -------------------------------------------------------------------


@register_filter("regex")
@dataclass(frozen=True)
class Regex:
    """The `group_select`-th match of a pattern; of several groups the first that is not empty."""

    regex_pattern: str = r"#### (\-?[0-9\.\,]+)"
    group_select: int = 0
    fallback: Any = "[invalid]"

    def __post_init__(self) -> None:
        _ = self._pattern

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return _compiled(self.regex_pattern)

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        found = [picked(self._pattern, reply, self.group_select) for reply in replies]
        values = [self.fallback if match is None else match for match in found]
        return Filtered(values, found.count(None))


@register_filter("regex_pos")
@dataclass(frozen=True)
class RegexPos:
    """The tags of `('token', 'TAG')` pairs; `fallback` where there are none.

    The pattern is fixed; `regex_pattern` and `group_select` are taken and not used.
    """

    regex_pattern: str = ""
    group_select: int = 0
    fallback: Any = None

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        found = [self._tags(reply) for reply in replies]
        fallback = ["invalid"] if self.fallback is None else self.fallback
        return Filtered([tags or fallback for tags in found], found.count([]))

    @staticmethod
    def _tags(reply: Any) -> list[str]:
        text = reply if isinstance(reply, str) else ""
        return [tag for _, tag in re.findall(r"\('([^']*)', '([^']*)'\)", text)]


@register_filter("multi_choice_regex")
@dataclass(frozen=True)
class MultiChoiceRegex:
    """The letter of a choice, as `(A)`: by the pattern, by the choice's text, by `: A`.

    The document has the choices as `choices`. `longest_first` looks for the longer of two texts
    first where one begins with the other; without it their order in the document decides.
    """

    regex_pattern: str = r"#### (\-?[0-9\.\,]+)"
    group_select: int = 0
    fallback: Any = "[invalid]"
    ignore_case: bool = False
    ignore_punctuation: bool = False
    regexes_to_ignore: Sequence[str] | None = None
    longest_first: bool = True

    def __post_init__(self) -> None:
        _ = self._pattern

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return _compiled(self.regex_pattern)

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        steps = self._steps([str(choice) for choice in doc.get("choices") or ()])
        found = [self._letter(reply, steps) for reply in replies]
        return Filtered([letter or self.fallback for letter in found], found.count(""))

    def _letter(self, reply: Any, steps: Sequence[tuple[re.Pattern[str], bool, Doc]]) -> str:
        text = reply if isinstance(reply, str) else ""
        for pattern, cleaned, letters in steps:
            match = picked(pattern, self._cleaned(text) if cleaned else text, self.group_select)
            if match:
                return str(letters.get(match, match))
        return ""

    def _steps(self, choices: Sequence[str]) -> list[tuple[re.Pattern[str], bool, Doc]]:
        texts = [self._cleaned(choice.strip()) for choice in choices]
        names = [chr(ord("A") + place) for place in range(len(choices))]
        by_text = {text: f"({name})" for text, name in zip(texts, names, strict=True)}
        by_name = {name: f"({name})" for name in names}
        ordered = sorted(texts, key=len, reverse=True) if self.longest_first else texts
        return [
            (self._pattern, False, {}),
            (re.compile("|".join(map(re.escape, ordered))), True, by_text),
            (re.compile(rf":\s*({'|'.join(map(re.escape, names))})"), False, by_name),
        ]

    def _cleaned(self, text: str) -> str:
        for pattern in self.regexes_to_ignore or ():
            text = re.sub(pattern, "", text)
        text = text.lower() if self.ignore_case else text
        return _without_punctuation(text) if self.ignore_punctuation else text


def picked(pattern: re.Pattern[str], reply: Any, place: int) -> str | None:
    """Return the match at `place` among all, stripped; None if there is none or it is empty-handed.

    What is no text has no match. Of several groups the first that is not empty counts.
    """
    matches = pattern.findall(reply) if isinstance(reply, str) else []
    if not -len(matches) <= place < len(matches):
        return None
    match = matches[place]
    if isinstance(match, tuple):
        match = next(filter(None, match), None)
    return None if match is None else str(match).strip()


# --- named entities --------------------------------------------------------------------------

_ENTITIES = {
    "person": "PER",
    "location": "LOC",
    "organization": "ORG",
    "counties": "LOC",
    "places": "LOC",
    "people": "PER",
    "persons": "PER",
    "company": "ORG",
    "country": "LOC",
    "continent": "LOC",
    "time": "DATE",
    "date": "DATE",
    "per": "PER",
    "loc": "LOC",
    "org": "ORG",
}
"""Names that models give to kinds of entities, in the order in which they are replaced."""
_SPAN = re.compile(r"\b(PER|LOC|ORG|DATE):\s*([^$]+)")


@register_filter("format_span")
@dataclass(frozen=True)
class FormatSpan:
    """Named entities as `per: … $ loc: …`, in lower case, whatever the model called the kinds."""

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        return Filtered([entities(r) if isinstance(r, str) else r for r in replies])


def entities(text: str) -> str:
    """Return the entities of a text such as `PERSON: Ada $$ LOCATION: London, none`."""
    text = text.lower()
    for name, kind in _ENTITIES.items():
        text = re.sub(rf"\b{name}\s*:", f"{kind}:", text)
    text = text.replace("$$", "$").rstrip("$").replace("\n", "$").strip()
    return " $ ".join(
        f"{kind.lower()}: {value.strip()}"
        for kind, values in _SPAN.findall(text)
        for value in values.split(",")
        if value.strip().lower() != "none"
    )


# --- functions of a task ---------------------------------------------------------------------


@register_filter("custom")
@dataclass(frozen=True)
class Custom:
    """A function of lists of replies and documents; it is given one question at a time."""

    filter_fn: Callable[[Sequence[Sequence[Any]], Sequence[Doc]], Any]

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        return _first(self.filter_fn([list(replies)], [doc]))


@dataclass(frozen=True)
class Applied:
    """An object with `apply(replies, docs)`, as classes of lm-evaluation-harness have it."""

    part: Any

    def __call__(self, replies: Sequence[Any], doc: Doc) -> Filtered:
        return _first(self.part.apply([list(replies)], [doc]))


def _first(found: Any) -> Filtered:
    value = next(iter(found))
    return Filtered(list(value) if isinstance(value, tuple | map | filter) else value)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"regex_pattern {pattern!r} is not a regular expression: {error}") from (
            error
        )


def _without_punctuation(text: str) -> str:
    return "".join(char for char in text if not unicodedata.category(char).startswith("P"))


def _key(reply: Any) -> Any:
    return reply if isinstance(reply, Hashable) else repr(reply)
