"""Formulas as strings: which part of an answer is one, in which spelling, and plain collections.

Tuples, sets and intervals of plain numbers are compared here; everything else needs algebra.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xpe.text.anchors import last_anchor
from xpe.text.normalise import WHITE, clip
from xpe.text.numbers import close, whole_number
from xpe.text.numerals import plain_math, raised, read_numeral

_LONGEST = 1000
_DEEPEST = 40
_LATEX: Mapping[str, str] = {
    "π": r"\pi ",
    "∞": r"\infty ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "⩽": r"\le ",
    "⩾": r"\ge ",
    "≠": r"\ne ",
    "×": r"\times ",
    "÷": r"\div ",
    "·": r"\cdot ",
    "∈": r"\in ",
    "±": r"\pm ",
    "θ": r"\theta ",
    "α": r"\alpha ",
    "β": r"\beta ",
    "或": " or ",
    "和": " and ",
    "，": ",",
    "；": ";",
    "（": "(",
    "）": ")",
    "−": "-",
}
_SPELLING = str.maketrans(dict(_LATEX))
_ROOT = re.compile(r"√ ?(?:\(([^()]{1,200})\)|\{([^{}]{1,200})\}|(\d{1,50}|[A-Za-z]))")
_POWER = re.compile(r"\^([+-]?\d{2,}|[+-]\d)(?!\d)")
_FUNCTION = re.compile(r"(?<![\\A-Za-z])(sqrt|pi|sin|cos|tan|ln|log|exp|infty)(?![A-Za-z])")
_SQRT_CALL = re.compile(r"\\sqrt ?\(([^()]{1,200})\)")
_NOT_MATHS = re.compile(r"[\u4e00-\u9fff]|(?<![\\A-Za-z])[A-Za-z]{3,}")
_WORD = re.compile(
    r"(?![或和])[\u4e00-\u9fff]|(?<![\\A-Za-z])(?!or|and)(?:[A-Za-z]{3,}|so|is|we|to|be|it|by|as)"
    r"(?![A-Za-z])"
)
_ALGEBRA = re.compile(
    r"\\[A-Za-z]{2,}|[√π∞±!^]|[\d)}a-z] ?[+*/×÷·-] ?[\d({\\a-z]|\d ?[a-z(]|[<>≤≥∪∩]|^[a-zA-Z]$"
)
_INLINE = re.compile(
    r"\$\$?([^$]{1,1000})\$\$?|\\\[(.{1,1000}?)\\\]|\\\((.{1,1000}?)\\\)", re.DOTALL
)
_SENTENCE_END = re.compile(r"[。\n]|[.;；](?=\s|$)")
_SQUASHED = re.compile(r"\\(?:left|right|displaystyle|,|;|!|quad|qquad)|[\s$]|\\(?=[{}%$])")


def is_algebra(text: str) -> bool:
    """Whether a text is mathematics that is not a plain number: x^2+1, 2√3, [0, 1), 3+5."""
    if len(text) > _LONGEST:
        return False
    text = plain_math(text).strip(f"{WHITE}$")
    if not text or _NOT_MATHS.search(_FUNCTION.sub("", text)):
        return False
    return whole_number(text) is None and (
        _ALGEBRA.search(text) is not None
        or _FUNCTION.search(text) is not None
        or collection_of(text) is not None
    )


def formula_of(text: str) -> str:
    """Return the formula that `text` gives as its answer: what is announced, or its last one."""
    text = clip(text)
    anchor = last_anchor(text)
    region = text[anchor.start : anchor.end][: 4 * _LONGEST] if anchor else text
    region = region.strip(f"{WHITE}*:：")
    if anchor and anchor.kind in {"box", "hashes"}:
        return region
    if anchor is None and (len(region) <= _LONGEST and "\n" not in region):
        return region if is_algebra(region) else (_inline(region) or _without_words(region))
    if anchor is None:
        return _inline(region) or _without_words(region.rpartition("\n")[2])
    sentence = _SENTENCE_END.split(region, maxsplit=1)[0]
    if (first := _INLINE.search(region)) and first.start() <= len(sentence):
        return _inside(first)
    return _without_words(sentence)


def _inline(text: str) -> str:
    """Return the last formula between dollars or brackets of LaTeX, "" without one."""
    found = list(_INLINE.finditer(text[-4 * _LONGEST :]))
    return _inside(found[-1]) if found else ""


def _inside(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).strip()


def _without_words(text: str) -> str:
    """Return what follows the last word, all of the text where that is nothing."""
    bare = text.strip(f"{WHITE}*.。")
    words = [*_WORD.finditer(_FUNCTION.sub(lambda match: "0" * len(match[0]), bare))]
    rest = bare[words[-1].end() :].strip(f"{WHITE},，:：*$") if words else bare
    return rest or bare


def latex_of(text: str) -> str | None:
    """Return a formula in LaTeX; None for what is too long or too deep to be one."""
    text = text.strip(f"{WHITE}$.。")
    if len(text) > _LONGEST or _depth(text) > _DEEPEST:
        return None
    text = _POWER.sub(r"^{\1}", raised(text))
    text = _ROOT.sub(lambda match: rf"\sqrt{{{match[1] or match[2] or match[3]}}}", text)
    text = _FUNCTION.sub(r"\\\1 ", text.translate(_SPELLING).replace("**", "^"))
    return _SQRT_CALL.sub(r"\\sqrt{\1}", text)


def squashed(formula: str) -> str:
    r"""Return a formula without what does not change it: spaces, \left and \right, dollars."""
    return _SQUASHED.sub("", formula.strip().rstrip(".。")).replace("dfrac", "frac")


# --- tuples, sets, intervals -----------------------------------------------------------------


class Collection(NamedTuple):
    """Plain numbers between brackets: an interval, a tuple, a list, or a set, which is sorted."""

    opening: str
    closing: str
    values: tuple[float, ...]


def collection_of(text: str) -> tuple[Collection, ...] | None:
    """Return the parts of a collection of plain numbers (unions of intervals have several)."""
    if len(text) > _LONGEST:
        return None
    text = plain_math(text).replace("\\{", "{").replace("\\}", "}").replace("\\cup", "∪")
    text = text.replace("\\infty", "∞").replace("，", ",").strip(f"{WHITE}$")
    parts = [_part(part.strip()) for part in text.split("∪")]
    found = tuple(part for part in parts if part)
    return found if found and len(found) == len(parts) else None


def collections_equal(
    said: Sequence[Collection], gold: Sequence[Collection], tolerance: float
) -> bool:
    """Whether two collections agree: brackets, and values one by one, in sets in any order."""
    return len(said) == len(gold) and all(
        _same(left, right, tolerance)
        for left, right in zip(sorted(said, key=_key), sorted(gold, key=_key), strict=True)
    )


def _part(text: str) -> Collection | None:
    if len(text) < 2 or text[0] not in "([{" or text[-1] not in ")]}":
        return None
    values = [_number(item.strip()) for item in text[1:-1].split(",")]
    numbers = tuple(value for value in values if value is not None)
    if len(numbers) != len(values) or (len(values) == 1 and text[0] != "{"):
        return None
    if text[0] == "{":
        numbers = tuple(sorted(set(numbers)))
    return Collection(text[0], text[-1], numbers)


def _number(item: str) -> float | None:
    if item.lstrip("+-") == "∞":
        return -math.inf if item.startswith("-") else math.inf
    return read_numeral(item)


def _same(left: Collection, right: Collection, tolerance: float) -> bool:
    return (
        (left.opening, left.closing) == (right.opening, right.closing)
        and len(left.values) == len(right.values)
        and all(close(v, w, tolerance) for v, w in zip(left.values, right.values, strict=True))
    )


def _key(collection: Collection) -> tuple[float, ...]:
    return collection.values


def _depth(text: str) -> int:
    deepest = depth = 0
    for bracket in re.findall(r"[()\[\]{}]", text):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    return deepest
