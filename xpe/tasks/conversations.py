"""Recorded conversations with tools: from the file to turns, and from turns to pairs.

A record is `{"conversations": [{"from", "value"}, …], "system", "tools"}`. `role` and `content`,
as chat APIs write messages, are read too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, Literal

from xpe.data.documents import Record
from xpe.errors import DataError, FieldTypeError, MissingFieldError
from xpe.text.calls import Call, calls_in, native_calls
from xpe.text.lenient import plain
from xpe.text.reasoning import MARKERS, split_reasoning
from xpe.text.tools import tools_in

Role = Literal["user", "calls", "result", "answer", "system"]

_FROM: Mapping[str, Role] = {
    "human": "user",
    "function_call": "calls",
    "observation": "result",
    "gpt": "answer",
}
_ROLES: Mapping[str, Role] = {
    **_FROM,
    "user": "user",
    "assistant": "answer",
    "tool": "result",
    "function": "result",
    "system": "system",
}


@dataclass(frozen=True)
class Turn:
    """One step of a conversation.

    `calls` are those made at once; None where the file holds a call that cannot be read.
    """

    role: Role
    text: str
    calls: tuple[Call, ...] | None = ()


@dataclass(frozen=True)
class Pair:
    """What is predicted, `turns[at]`, from all turns before it.

    `kind` 1: a call after the user spoke; 2: a call after a result; 3: an answer after a result.
    `first` is the place of the turn whose calls brought that result, where it is of kind 1.
    """

    kind: Literal[1, 2, 3]
    at: int
    first: int | None = None


@dataclass(frozen=True)
class Conversation:
    """A record, read and checked."""

    system: str
    tools: tuple[Mapping[str, Any], ...]
    turns: tuple[Turn, ...]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs, in the order of the conversation."""
        return tuple(_pairs(self.turns))

    def tools_before(self, at: int) -> tuple[Mapping[str, Any], ...]:
        """Return the tools on offer at a turn: those of the record and those in results so far."""
        shown = (tools_in(turn.text) for turn in self.turns[:at] if turn.role == "result")
        found: dict[str, Mapping[str, Any]] = {}
        for tool in chain(self.tools, *shown):
            found.setdefault(tool["name"], tool)
        return tuple(found.values())

    @property
    def results_without_calls(self) -> int:
        """How many results follow no call."""
        before = zip((None, *self.turns), self.turns, strict=False)
        return sum(
            turn.role == "result" and (last is None or last.role not in ("calls", "result"))
            for last, turn in before
        )


def read(record: Record, default_system: str | None = None) -> Conversation:
    """Read a record.

    Parameters
    ----------
    default_system
        Stands in where a record has no `system`.

    Raises
    ------
    MissingFieldError
        There is no `conversations` or no `system`, or a message lacks a field. A KeyError.
    FieldTypeError
        A field has the wrong type. A TypeError.
    DataError
        `from` is none of the four known values, or `tools` is not JSON. A ValueError.
    """
    name = "messages" if "conversations" not in record.doc and "messages" in record.doc else (
        "conversations"
    )  # fmt: skip
    said = _field(record.doc, name, list, record.place, "an array of messages")
    turns = [_turn(message, f"{record.place}, message {n}") for n, message in enumerate(said, 1)]
    return Conversation(
        system=_system(record, turns, default_system),
        tools=_tools(record),
        turns=tuple(_merged(turn for turn in turns if turn.role != "system")),
    )


# --- from a record to turns ------------------------------------------------------------------


def _system(record: Record, turns: Sequence[Turn], default: str | None) -> str:
    said = [turn.text for turn in turns if turn.role == "system"]
    if "system" not in record.doc and said:
        return "\n\n".join(said)
    if "system" not in record.doc and default is not None:
        return default
    hint = "; set default_system for records without"
    return str(_field(record.doc, "system", str, record.place, "a string (the prompt)", hint=hint))


def _tools(record: Record) -> tuple[Mapping[str, Any], ...]:
    given = record.doc.get("tools")
    if given is None or isinstance(given, (list, Mapping)):
        return tools_in(given)
    if not isinstance(given, str):
        raise FieldTypeError(
            f"{record.place}: tools must be a string of JSON or an array, got "
            f"{type(given).__name__}"
        )
    try:
        return tools_in(json.loads(given or "[]"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{record.place}: tools is not JSON ({error}): {given:.60}") from error


def _turn(message: Any, place: str) -> Turn:
    if not isinstance(message, Mapping):
        raise FieldTypeError(f"{place}: expected an object, got {type(message).__name__}")
    by_role = "from" not in message and "role" in message
    known, speaker, content = (_ROLES, "role", "content") if by_role else (_FROM, "from", "value")
    who = _field(message, speaker, str, place, f"one of {', '.join(known)}")
    if who not in known:
        raise DataError(f"{place}: {speaker} is {who!r}, expected one of {', '.join(known)}")
    made = message.get("tool_calls")
    if by_role and made:
        return _native(made, str(message.get(content) or ""), place)
    role = known[who]
    kinds = (str, list, Mapping) if role in ("calls", "result") else (str,)
    value = _field(message, content, kinds, place, "a string")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if role == "calls" or (role == "answer" and "<tool_call>" in text):
        return Turn("calls", text, calls_wanted(text))
    if role == "answer":
        text = split_reasoning(text, markers=MARKERS).answer or text
    return Turn(role, text)


def _native(made: Any, text: str, place: str) -> Turn:
    if not isinstance(made, list) or not all(isinstance(call, Mapping) for call in made):
        raise FieldTypeError(f"{place}: tool_calls must be an array of objects, got {made!r:.80}")
    found = native_calls(made)
    return Turn("calls", text, None if found.unparsed else _readable(found.calls))


def calls_wanted(text: str) -> tuple[Call, ...] | None:
    """Return the calls that a recorded message makes, None where they cannot be read.

    Reasoning before them is skipped. `{tool: {argument: …}}` is read as well.
    """
    text = split_reasoning(text, markers=MARKERS).answer.strip()
    found = calls_in(text).calls or _by_name(text)
    return () if text == "[]" else _readable(found) if found else None


def _by_name(text: str) -> tuple[Call, ...]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(one, Mapping) and len(one) == 1 for one in several):
        return ()
    items = [item for one in several for item in one.items()]
    named = all(isinstance(arguments, Mapping) for _, arguments in items)
    return tuple(Call(name, arguments) for name, arguments in items) if named else ()


def _readable(calls: tuple[Call, ...]) -> tuple[Call, ...] | None:
    found = tuple(
        Call(name, {key: plain(value) for key, value in arguments.items()})
        for name, arguments in calls
        if arguments is not None
    )
    return found if len(found) == len(calls) else None


def _merged(turns: Iterator[Turn]) -> Iterator[Turn]:
    """Make one turn of calls that follow each other: they are made at once."""
    for role, run in groupby(turns, key=lambda turn: turn.role):
        group = list(run)
        if role != "calls" or len(group) == 1:
            yield from group
            continue
        calls = [call for turn in group for call in turn.calls or ()]
        unread = any(turn.calls is None for turn in group)
        text = "\n".join(turn.text for turn in group)
        yield Turn("calls", text, None if unread else tuple(calls))


def _field(
    doc: Mapping[str, Any],
    name: str,
    kind: Any,
    place: str,
    expected: str,
    *,
    hint: str = "",
) -> Any:
    if name not in doc:
        raise MissingFieldError(
            f"{place}: no field {name!r}, expected {expected}; there is "
            f"{', '.join(map(str, doc)) or 'nothing'}{hint}"
        )
    if not isinstance(doc[name], kind):
        raise FieldTypeError(
            f"{place}: {name} must be {expected}, got {type(doc[name]).__name__}{hint}"
        )
    return doc[name]


# --- from turns to pairs ---------------------------------------------------------------------


def _pairs(turns: Sequence[Turn]) -> Iterator[Pair]:
    for at in range(1, len(turns)):
        match turns[at - 1].role, turns[at].role:
            case "user", "calls":
                yield Pair(1, at)
            case "result", "calls":
                yield Pair(2, at, _first(turns, at))
            case "result", "answer":
                yield Pair(3, at)


def _first(turns: Sequence[Turn], at: int) -> int | None:
    """Return the turn whose calls brought the result before `at`, if the user asked for them."""
    at -= 1
    while at and turns[at].role == "result":
        at -= 1
    asked = at > 0 and turns[at].role == "calls" and turns[at - 1].role == "user"
    return at if asked else None
