"""Units of measurement: their spellings in a text, and what a quantity is in another unit.

The table of equivalents is data, in `units.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

Dimension: TypeAlias = tuple[tuple[str, int], ...]
"""Base dimensions with their powers, sorted; empty for what is only counted."""

_LATIN = re.compile(r"[A-Za-zµμΩ°¥€£₩₹¢]++(?: [A-Za-z]++)?")
_HAN = re.compile(r"[\u4e00-\u9fff℃℉]{1,5}")
_POWER = re.compile(r"(?:\^\{?|\*\*)?([23])\}?(?![\d.])")
_PER = re.compile(r" ?/ ?| per |每")
_DERIVED: Mapping[str, Dimension] = {
    "area": (("length", 2),),
    "volume": (("length", 3),),
    "speed": (("length", 1), ("time", -1)),
    "count": (),
}
_TEMPERATURES: Mapping[str, tuple[float, float]] = {
    "fahrenheit": (5 / 9, -160 / 9),
    "kelvin": (1.0, -273.15),
}


class Reading(NamedTuple):
    """One meaning of a unit: `value * factor + offset` is in the base unit of its dimension."""

    dimension: Dimension
    factor: float
    offset: float = 0.0


class UnitSpan(NamedTuple):
    """The unit that stands at a place of a text, in its own spelling, and where it ends."""

    unit: str
    end: int


def unit_at(text: str, start: int) -> UnitSpan:
    """Return the known unit that begins at `start` or one space later; an empty one if none."""
    begin = start + (text[start : start + 1] == " ")
    first = _atom_end(text, begin)
    if first == begin:
        return UnitSpan("", start)
    per = _PER.match(text, first)
    last = _atom_end(text, per.end()) if per else first
    end = last if per and last > per.end() else first
    return UnitSpan(text[begin:end], end)


def converted(value: float, unit: str, other: str) -> tuple[float, ...]:
    """Return `value` in the unit `other`, once for each dimension that both may have."""
    return tuple(
        (value * mine.factor + mine.offset - theirs.offset) / theirs.factor
        for mine in readings(unit)
        for theirs in readings(other)
        if mine.dimension == theirs.dimension
    )


@lru_cache(maxsize=4096)
def readings(unit: str) -> tuple[Reading, ...]:
    """Return all meanings of a unit: one without dimension for "", none for an unknown one."""
    if not unit:
        return (Reading((), 1.0),)
    above, *below = _PER.split(unit, maxsplit=1)
    if not below:
        return _atom_readings(above)
    return tuple(
        Reading(_combined(top.dimension, bottom.dimension, -1), top.factor / bottom.factor)
        for top in _atom_readings(above)
        for bottom in _atom_readings(below[0])
    )


def _atom_end(text: str, begin: int) -> int:
    """Return where the longest known unit at `begin` ends, its power included."""
    if latin := _LATIN.match(text, begin):
        words = latin[0]
        first = words.partition(" ")[0]
        # "18 in total" are no inches.
        known = next((w for w in (words, first) if _named(w) and (w != "in" or w == words)), "")
    else:
        han = _HAN.match(text, begin)
        spellings = (han[0][:size] for size in range(len(han[0]), 0, -1)) if han else ()
        known = next((spelling for spelling in spellings if _named(spelling)), "")
    end = begin + len(known)
    power = _POWER.match(text, end) if known and known.isascii() else None
    return power.end() if power else end


def _atom_readings(atom: str) -> tuple[Reading, ...]:
    if found := _named(atom):
        return found
    power = re.fullmatch(rf"([^\^*\d]+){_POWER.pattern}", atom)
    if not power:
        return ()
    times = int(power[2])
    return tuple(
        Reading(tuple((name, n * times) for name, n in reading.dimension), reading.factor**times)
        for reading in _named(power[1])
    )


def _named(spelling: str) -> tuple[Reading, ...]:
    table = _table()
    return table.get(spelling) or (table.get(spelling.lower(), ()) if len(spelling) > 1 else ())


def _combined(above: Dimension, below: Dimension, sign: int) -> Dimension:
    powers = dict(above)
    for name, n in below:
        powers[name] = powers.get(name, 0) + sign * n
    return tuple(sorted((name, n) for name, n in powers.items() if n))


@cache
def _table() -> Mapping[str, tuple[Reading, ...]]:
    import yaml

    data: dict[str, dict[Any, list[str]]] = yaml.safe_load(
        (files("xpe.text") / "units.yaml").read_text(encoding="utf-8")
    )
    table: dict[str, tuple[Reading, ...]] = {}
    for name, sizes in data.items():
        dimension = _DERIVED.get(name, ((name, 1),))
        for size, spellings in sizes.items():
            factor, offset = _TEMPERATURES.get(size, (size, 0.0))
            reading = Reading(dimension, float(factor), float(offset))
            for spelling in spellings:
                table[spelling] = (*table.get(spelling, ()), reading)
    return table
