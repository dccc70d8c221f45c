"""Which number is the answer? Numbers with their units in a text, and the one it ends with."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from xpe.text.anchors import Anchor, last_anchor
from xpe.text.normalise import clip
from xpe.text.numerals import HAN, NUMERAL, plain_math, value_of
from xpe.text.units import UnitSpan, converted, unit_at

Rule: TypeAlias = Literal["auto", "last", "first", "strict"]
"""`auto` takes what is announced as the answer, else the last number; `strict` wants the whole
answer to be the number.
"""

_START = re.compile(rf"[-+$¥€£₩₹\d.{HAN}半]|US\$|HK\$", re.ASCII)
_PLAIN = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d{1,300})(?:\.\d{1,300})?", re.ASCII)
_LEAD = " \t\r\n*_`([{\"'“‘:：~≈=约\\"
_SENTENCE_END = re.compile(r"[。；;!！?？\n]|\.(?=\s|$)")
_LINE = 200
_WEAK = frozenset("一两半十百千万亿零〇俩")
_SAID_BEFORE = frozenset("是为有剩共得下出约到于:=≈用需要花")
_LEFT = ("剩", "剩下", "只有", "仅有")
_TAIL = " \t\r\n。.!！?？*_`"
_WORDS = re.compile(
    r"一(?:共|些|样|起|定|般|直|下|步|种|个|方面|旦|点|部分|边|致|切|项|位|次|道|本|天|家|条)"
    r"|万一|唯一|统一|同一|之一|其一|逐一|两者|二者|两种|两个|两人|千万|万分(?!之)|十分(?!钟|之)|百货|三角|四边|五边"
    r"|六边|八边|多边|(?:星期|周|礼拜)[一二三四五六]|四周|四处|三明治|百姓"
)


class Number(NamedTuple):
    """A number of a text: its value, its unit as spelled there ("" for none), and its span."""

    value: float
    unit: str
    start: int
    end: int
    strong: bool = True
    """Whether it is surely meant as a number: the 一 of 一共 is not."""
    kilo: bool = False
    """Whether 千 before the unit may belong to the numeral: 五千米 is 5 km or 5000 m."""

    @property
    def meanings(self) -> Sequence[tuple[float, str]]:
        """The value and the unit, in both ways of reading 五千米."""
        if self.kilo:
            return ((self.value, self.unit), (self.value * 1000, self.unit[1:]))
        return ((self.value, self.unit),)


def numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text that `plain_math` has rewritten, ordinals (第3次) excepted.

    What is spelled in several units (1小时30分, 5元5角) is one number in the first of them.
    """
    waiting: Number | None = None
    for number in _single_numbers(text):
        joined = _joined(waiting, number) if waiting else None
        if waiting and not joined:
            yield waiting
        waiting = joined or number
    if waiting:
        yield waiting


def _joined(first: Number, second: Number) -> Number | None:
    if not (first.unit and second.unit and 0 <= second.start - first.end <= 1):
        return None
    smaller = [size for size in converted(1.0, second.unit, first.unit) if size < 1]
    if not smaller:
        return None
    return first._replace(value=first.value + second.value * smaller[0], end=second.end)


def _single_numbers(text: str) -> Iterator[Number]:
    at = 0
    while start := _START.search(text, at):
        match = NUMERAL.match(text, start.start())
        if match is None:
            at = start.end()
            continue
        at = match.end()
        value = value_of(match)
        if math.isnan(value) or text[match.start() - 1 : match.start()] == "第":
            continue
        # $18$ is mathematics, $18 money.
        quoted = match["currency"] == "$" and text[at : at + 1] == "$"
        unit = unit_at(text, at + quoted)
        strong = match["han"] is None and match["half"] is None
        if not strong:
            strong = _strong(text, match, unit)
        at = unit.end if unit.unit else at + quoted
        currency = match["currency"] or ""
        spelled = unit.unit or ("" if quoted else currency)
        kilo = match["han"] is not None and spelled.startswith("千")
        yield Number(value, spelled, match.start(), at, strong, kilo)


def _strong(text: str, match: re.Match[str], unit: UnitSpan) -> bool:
    """Whether a Chinese numeral is meant as a number, by its length and what stands around it."""
    start = match.start()
    ends = len(text) - unit.end < _LINE and not text[unit.end :].strip(_TAIL)
    if unit.unit and (ends or text.endswith(_LEFT, 0, start)):
        return True
    first = max(0, start - 3)
    near = _WORDS.finditer(text[first : start + 4])
    if any(word.start() <= start - first < word.end() for word in near):
        return False
    spelled = match[0].lstrip("-")
    if len(spelled) > 1:
        return True
    if spelled in _WEAK and not unit.unit:
        return False
    return bool(unit.unit) or text[start - 1 : start] in _SAID_BEFORE


def answer_number(text: str, rule: Rule = "auto", *, normalise: bool = True) -> Number | None:
    """Return the number that `text` gives as its answer, None if it gives none.

    Spans count in the rewritten text. Without `normalise` the text is read as it is: full-width
    digits, 负 and LaTeX are then no parts of numbers.
    """
    bare = text.strip()
    if _PLAIN.fullmatch(bare):
        return Number(float(bare.replace(",", "")), "", 0, len(bare))
    text = clip(text)
    return _RULES[rule](plain_math(text) if normalise else text)


@lru_cache(maxsize=4096)
def number_of(text: str) -> Number | None:
    """Return the number that a gold answer is or ends with; cached, as golds come again."""
    return answer_number(text)


def whole_number(text: str) -> Number | None:
    """Return the number with its unit if a text from `plain_math` is nothing else, else None."""
    bare = text.strip()
    found = next(numbers(bare), None)
    if found is None or (found.start, found.end) != (0, len(bare)):
        return None
    return found


def _auto(text: str) -> Number | None:
    anchor = last_anchor(text)
    announced = _announced(text, anchor) if anchor else None
    return announced or _last(text)


def _announced(text: str, anchor: Anchor) -> Number | None:
    region = text[anchor.start : anchor.end].lstrip(_LEAD)
    if anchor.kind != "line":
        return _stated(region)
    first = next(numbers(region[:_LINE]), None)
    return first if first and first.strong and first.start == 0 else _last(region)


def _stated(region: str) -> Number | None:
    """Return the number that a statement gives: behind its last equals sign, else its first."""
    sentence = _SENTENCE_END.split(region, maxsplit=1)[0]
    for part in (sentence.rpartition("=")[2], sentence):
        found = list(numbers(part))
        if found:
            opens = not part[: found[0].start].strip(_LEAD)
            return found[0] if opens else next((n for n in found if n.strong), found[0])
    return _last(region)


def _last(text: str) -> Number | None:
    last = weak = None
    for number in numbers(text):
        if number.strong:
            last = number
        else:
            weak = number
    return last or weak


def _first(text: str) -> Number | None:
    weak = None
    for number in numbers(text):
        if number.strong:
            return number
        weak = weak or number
    return weak


_RULES: Mapping[Rule, Callable[[str], Number | None]] = {
    "auto": _auto,
    "last": _last,
    "first": _first,
    "strict": whole_number,
}


def close(value: float, gold: float, tolerance: float) -> bool:
    """Whether two values agree: `tolerance` is relative, absolute where the gold is below it."""
    if value == gold:
        return True
    scale = 1.0 if abs(gold) < tolerance else abs(gold)
    # inf - inf is no number and agrees with nothing.
    return abs(value - gold) <= tolerance * scale


def agree(said: Number, gold: Number, tolerance: float, *, units: bool) -> bool:
    """Whether two numbers agree.

    With `units` both must be the same quantity (1.5 km and 1500 m are); without, the same value
    is enough.
    """
    return any(
        (not units and close(value, right, tolerance))
        or (
            (units or (unit and right_unit))
            and any(close(same, right, tolerance) for same in converted(value, unit, right_unit))
        )
        for value, unit in said.meanings
        for right, right_unit in gold.meanings
    )
