"""How far calls agree with those that were wanted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from xpe.text.calls import Call, same_names
from xpe.text.lenient import Untyped

Matching: TypeAlias = Literal["share", "exact", "bfcl"]
Arguments: TypeAlias = Mapping[str, Any]

_NAME_WEIGHT = 0.5
_IGNORED = re.compile(r"[ ,./\-_*^]")
_LEFT_OUT = ""


class CallScore(NamedTuple):
    """Share of the calls that is right, 0–1, and whether the right tools are called."""

    accuracy: float
    hit: bool


def score_calls(made: Sequence[Call], wanted: Sequence[Call], matching: Matching) -> CallScore:
    """Score calls made at once, whatever their order.

    Each call counts 0.5 for its name and 0.5 for the arguments of a call with that name; made and
    wanted calls are assigned so that the sum is greatest, which is divided by the larger number
    of both. None wanted and none made is right.
    """
    if not made and not wanted:
        return CallScore(1.0, hit=True)
    match = MATCHES[matching]
    grid = [[_score(one, gold, match) for gold in wanted] for one in made]
    best = _assigned(grid)
    return CallScore(best / max(len(made), len(wanted)), same_names(made, wanted))


def _score(made: Call, wanted: Call, match: Callable[[Arguments, Arguments], float]) -> float:
    if made.name != wanted.name:
        return 0.0
    if made.arguments is None or wanted.arguments is None:
        return _NAME_WEIGHT
    return _NAME_WEIGHT + (1 - _NAME_WEIGHT) * match(made.arguments, wanted.arguments)


def _assigned(grid: Sequence[Sequence[float]]) -> float:
    if not grid or not grid[0]:
        return 0.0
    if len(grid) == 1 or len(grid[0]) == 1:
        return max(score for row in grid for score in row)
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(grid, maximize=True)
    return float(sum(grid[i][j] for i, j in zip(rows, columns, strict=True)))


# --- arguments -------------------------------------------------------------------------------


def shared(made: Arguments, wanted: Arguments) -> float:
    """Return the share of argument names, in union, whose values agree; 1 for none at all."""
    names = made.keys() | wanted.keys()
    if not names:
        return 1.0
    return sum(
        name in made and name in wanted and agree(made[name], wanted[name]) for name in names
    ) / len(names)


def exact(made: Arguments, wanted: Arguments) -> float:
    """Return 1 if all arguments agree, else 0."""
    return float(agree(made, wanted))


def allowed(made: Arguments, wanted: Arguments) -> float:
    """Return 1 if each argument has one of its allowed values, else 0.

    The rule of the Berkeley Function-Calling Leaderboard for Python. `wanted` lists the allowed
    values of each argument; one with "" among them may be left out. No argument may be made up.
    Strings are compared without case and without `` ,./-_*^``; a whole number stands for a
    float, and nothing else stands for another type.
    """
    if made.keys() - wanted.keys():
        return 0.0
    return float(all(_is_allowed(made, name, _several(wanted[name])) for name in wanted))


def within_schema(wanted: Sequence[Call], tools: Sequence[Arguments]) -> tuple[Call, ...]:
    """Return calls without the optional arguments that their tools do not define.

    Some golds of the leaderboard hold such, which it takes for made up when they are given.
    """
    defined = {tool["name"]: tool["parameters"].get("properties") for tool in tools}
    return tuple(
        Call(
            call.name,
            {
                name: values
                for name, values in (call.arguments or {}).items()
                if name in (defined.get(call.name) or (name,)) or _LEFT_OUT not in _several(values)
            },
        )
        for call in wanted
    )


MATCHES: Mapping[Matching, Callable[[Arguments, Arguments], float]] = {
    "share": shared,
    "exact": exact,
    "bfcl": allowed,
}


def agree(one: Any, other: Any) -> bool:
    """Say whether two values are the same: numbers as numbers, strings after NFKC and trimming.

    A value whose form tells no types is the same if either reading of it is.
    """
    match one, other:
        case Untyped(), _:
            return agree(str(one), other) or agree(one.read(), other)
        case _, Untyped():
            return agree(other, one)
        case bool(), _:
            return one is other
        case _, bool():
            return False
        case int() | float(), int() | float():
            return one == other
        case str(), str():
            return _folded(one) == _folded(other)
        case list() | tuple(), list() | tuple():
            return len(one) == len(other) and all(map(agree, one, other))
        case Mapping(), Mapping():
            return one.keys() == other.keys() and all(agree(one[k], other[k]) for k in one)
        case _:
            return one is None and other is None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip()


def _several(values: Any) -> Sequence[Any]:
    return values if isinstance(values, (list, tuple)) else [values]


def _is_allowed(made: Arguments, name: str, values: Sequence[Any]) -> bool:
    if name not in made:
        return _LEFT_OUT in values
    return any(_fits(made[name], value) for value in values)


def _fits(made: Any, value: Any) -> bool:
    match made, value:
        case Untyped(), _:
            return _fits(str(made), value) or _fits(made.read(), value)
        case bool(), _:
            return made is value
        case _, bool():
            return False
        case int() | float(), float():
            return made == value
        case int(), int():
            return made == value
        case str(), str():
            return _bare(made) == _bare(value)
        case list() | tuple(), list() | tuple():
            return len(made) == len(value) and all(map(_fits, made, value))
        case Mapping(), Mapping():
            return bool(allowed(made, value))
        case _:
            return made is None and value is None


def _bare(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')
