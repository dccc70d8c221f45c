"""Values as models write them: JSON, JSON with slips, Python literals.

Single and typographic quotes, trailing commas, names without quotes, `True`, tuples and
full-width punctuation are read. Reading takes linear time: a scan that comes back to the same
characters too often gives up.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

DEPTH = 50
"""Deepest nesting that is read."""

_PER_CHARACTER = 10
_BRACKET = re.compile(r"[{\[]")
_SPACE = re.compile(r"\s*")
_STRING = re.compile(
    r'"(?P<double>(?:[^"\\]++|\\.)*+)"'
    r"|'(?P<single>(?:[^'\\]++|\\.)*+)'"
    r"|“(?P<curly>[^”]*+)”",
    re.DOTALL,
)
_QUOTES = frozenset("\"'“")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*+(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?(?![\w.])")
_WORD = re.compile(r"[^\W\d][\w.\-]*+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""}
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "undefined": None,
}
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_COMMAS = frozenset(",，")
_COLONS = frozenset(":：")


class Found(NamedTuple):
    """A value and where it stands: `text[start:end]`."""

    value: Any
    start: int
    end: int


class Untyped(str):
    """An argument from a form that writes all values alike, such as XML: "3" may be a number."""

    __slots__ = ()

    def read(self) -> Any:
        """Return the JSON or Python value that it spells, else the plain text."""
        reader = Reader(self)
        try:
            value, end = reader.value(0)
            return value if reader.space(end) == len(self) else str(self)
        except (Unreadable, Spent):
            return str(self)


def plain(value: Any) -> Any:
    """Return a value as it is, and one without a type as what it spells."""
    return value.read() if isinstance(value, Untyped) else value


class Unreadable(Exception):  # noqa: N818 - says that there is no value here
    """What stands here is no value."""


class Spent(Exception):  # noqa: N818 - ends a scan
    """The scan has come back to the same characters too often."""


def values_in(text: str) -> Iterator[Found]:
    """Yield the objects and lists that stand in a text, from left to right, the outermost."""
    reader = Reader(text)
    at = 0
    while bracket := _BRACKET.search(text, at):
        at = bracket.start()
        try:
            value, end = reader.value(at)
        except Unreadable:
            at += 1
        except Spent:
            return
        else:
            yield Found(value, at, end)
            at = end


class Reader:
    """Reads single values out of one text; all reading together is bounded."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._left = _PER_CHARACTER * len(text) + 1000

    def value(self, at: int, depth: int = 0) -> tuple[Any, int]:
        """Return the value that begins at `at`, behind spaces, and the place after it.

        Raises
        ------
        Unreadable
            There is none.
        Spent
            Too much was read already.
        """
        at = self.space(at)
        first = self.text[at : at + 1]
        if first in _CLOSING and first:
            return self._collection(at, depth)
        if first in _QUOTES:
            return self._string(at)
        return self._plain(at)

    def space(self, at: int) -> int:
        """Return the next place that is not a space."""
        found = _SPACE.match(self.text, at)
        end = found.end() if found else at
        self._spend(end - at + 1)
        return end

    def comma(self, at: int, closing: str) -> int:
        """Return the place after the comma that has to stand here, or of `closing`."""
        at = self.space(at)
        here = self.text[at : at + 1]
        if here in _COMMAS and here:
            return self.space(at + 1)
        if here != closing:
            raise Unreadable
        return at

    def _collection(self, at: int, depth: int) -> tuple[Any, int]:
        if depth >= DEPTH:
            raise Unreadable
        closing = _CLOSING[self.text[at]]
        items: list[Any] = []
        place = self.space(at + 1)
        while (here := self.text[place : place + 1]) != closing:
            if not here:
                raise Unreadable
            item, place = (self._item if closing == "}" else self.value)(place, depth + 1)
            items.append(item)
            place = self.comma(place, closing)
        return (dict(items) if closing == "}" else items), place + 1

    def _item(self, at: int, depth: int) -> tuple[tuple[str, Any], int]:
        key, place = self._string(at) if self.text[at] in _QUOTES else self._plain(at)
        place = self.space(place)
        here = self.text[place : place + 1]
        if here not in _COLONS or not here or isinstance(key, float):
            raise Unreadable
        value, place = self.value(place + 1, depth)
        return (str(key), value), place

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self.text, at)
        if found is None:
            self._spend(len(self.text) - at)
            raise Unreadable
        self._spend(found.end() - at)
        return _unescaped(found), found.end()

    def _plain(self, at: int) -> tuple[Any, int]:
        self._spend(1)
        if found := _NUMBER.match(self.text, at):
            return _number(found[0]), found.end()
        found = _WORD.match(self.text, at)
        if found is None:
            raise Unreadable
        self._spend(len(found[0]))
        return _WORDS.get(found[0], found[0]), found.end()

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise Spent


def _unescaped(found: re.Match[str]) -> str:
    if found["double"] is not None:
        try:
            return str(json.loads(found[0], strict=False))
        except ValueError:
            pass
    inner = str(found[found.lastgroup or 0])
    if "\\" not in inner or found["curly"] is not None:
        return inner
    plain = _ESCAPE.sub(_character, inner)
    # Halves of a character outside of the first plane are written one by one.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _ESCAPED.get(found[3], found[3])


def _number(text: str) -> Any:
    """Return the number; one that no JSON file can hold stays text."""
    plain = text.replace("_", "")
    try:
        if plain.lstrip("+-").isdecimal():
            return int(plain)
        number = float(plain)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
