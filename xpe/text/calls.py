"""Tool calls out of what a model wrote.

Read are `<tool_call>` tags and their like, fenced and bare JSON (`{"name", "arguments"}` under the
names that are in use, one or a list), the forms of `xpe.text.markup`, `Action:` with
`Action Input:`, and Python-style calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xpe.text.lenient import Reader, Spent, Unreadable, values_in
from xpe.text.markup import elements, first_element, headed, headed_alone

_TAG = re.compile(
    r"<(?P<close>/?)(?:[\w｜]{1,16}[:｜])?(?:tool_calls?|function_calls?|functioncall)>"
    r"|<[|｜](?P<shut>/?)tool[_▁]calls?(?:[_▁]section)?(?:[_▁](?:begin|start|(?P<end>end)))?[|｜]>"
    r"|(?P<python><\|python_tag\|>)|\[TOOL_CALLS\]|\bto=functions\.",
    re.IGNORECASE,
)
_NAMES = ("name", "tool_name", "function_name", "tool", "api_name", "action")
_ARGUMENTS = (
    "arguments",
    "parameters",
    "args",
    "params",
    "tool_input",
    "action_input",
    "input",
    "kwargs",
)
_WRAPPERS = ("tool_calls", "tool_call", "function_call", "function_calls")
_LABEL = re.compile(r"\A\s*json")
_BARE = frozenset({"name", "id", "type"})
_ACTION = re.compile(
    r"^[ \t]*(?:Action|✿FUNCTION✿):[ \t]*([^\s(]+)[ \t]*\r?\n[ \t]*(?:Action Input|✿ARGS✿):",
    re.MULTILINE,
)
_NAME = r"(?:[^\W\d]\w*\.)*+[^\W\d]\w*+"
_LINE = re.compile(rf"^[ \t\[*>`\-]*+(?:\w++[ \t]*=[ \t]*)?+(?={_NAME}\()", re.MULTILINE)
_CALL = re.compile(rf"({_NAME})\(")
_METHOD = re.compile(r"\A\s*+([^\W\d]\w*+)\.call\(")
_KEY = re.compile(r"([^\W\d]\w*+)\s*+=(?!=)")
_LINE_REST = re.compile(r"[^\n]*")
_REST = re.compile(r"[ \t`\];]*+(?:<[|｜/][^<>\n]{0,40}+>)*+(?=\r?\n|$)")
_ATTEMPT = re.compile(
    rf"""["'“](?:{"|".join(_NAMES + _ARGUMENTS)})["'”]\s*+[:：]|Action Input:|<arg_key>"""
    rf"""|^\s*+\[?{_NAME}\(""",
)
_BRACKET = re.compile(r"[{\[]")
_ALONE = re.compile(r"\s*+(?!(?:none|null|json)\s*+\Z)([A-Za-z_][\w.\-]*+)\s*+\Z", re.IGNORECASE)
_LONGEST = 1_000_000


class Call(NamedTuple):
    """A call that was made; `arguments` is None where they cannot be read."""

    name: str
    arguments: Mapping[str, Any] | None


class Calls(NamedTuple):
    """The calls in a text; `unparsed` says that one was tried and none can be read."""

    calls: tuple[Call, ...]
    unparsed: bool = False


def calls_in(text: str) -> Calls:
    """Return the calls that a text holds, in their order. Linear time; never raises."""
    text = text[:_LONGEST]
    bodies = tuple(_tagged(text))
    if bodies:
        found = tuple(call for body in bodies for call in _calls_of_body(body))
        return Calls(found, unparsed=not found)
    for ways in (_marked, _fenced, _written, _headed, _acted, _pythonic):
        if found := tuple(ways(text)):
            return Calls(found)
    return Calls((), unparsed=_ATTEMPT.search(text) is not None)


def native_calls(tool_calls: Sequence[Mapping[str, Any]]) -> Calls:
    """Return calls as the chat APIs give them, with arguments as JSON text."""
    found = tuple(call for one in tool_calls for call in calls_of(one, bare=True))
    return Calls(found, unparsed=len(found) < len(tool_calls))


def calls_of(value: Any, *, bare: bool) -> tuple[Call, ...]:
    """Return the calls that a value stands for: one, or a list of them.

    With `bare` an object that has a name and no arguments is a call without arguments.
    """
    if isinstance(value, (list, tuple)):
        return tuple(call for item in value for call in calls_of(item, bare=bare))
    if not isinstance(value, Mapping):
        return ()
    for key in _WRAPPERS:
        if isinstance(value.get(key), (list, Mapping)):
            return calls_of(value[key], bare=True)
    inner = value.get("function")
    if isinstance(inner, Mapping):
        return calls_of(inner, bare=True)
    name = inner if isinstance(inner, str) else _first_text(value)
    call = None if name is None else _call(name, value, bare=bare)
    return () if call is None else (call,)


def _first_text(value: Mapping[str, Any]) -> str | None:
    names = (value[key] for key in _NAMES if key in value)
    return next((name for name in names if isinstance(name, str) and name.strip()), None)


def _call(name: str, value: Mapping[str, Any], *, bare: bool) -> Call | None:
    key = next((key for key in _ARGUMENTS if key in value), None)
    if key is None:
        return Call(name.strip(), {}) if bare else None
    if key == "parameters" and "description" in value:
        return None  # the definition of a tool, repeated
    return Call(name.strip(), _arguments(value[key]))


def _arguments(given: Any) -> Mapping[str, Any] | None:
    if isinstance(given, str) and given.strip():
        given = next((found.value for found in values_in(given)), given)
    if given is None or given == "" or (isinstance(given, str) and not given.strip()):
        return {}
    return dict(given) if isinstance(given, Mapping) else None


# --- where calls stand -----------------------------------------------------------------------


def _tagged(text: str) -> Iterator[str]:
    """Yield what follows each opening tag, up to the next tag of any kind."""
    tags = list(_TAG.finditer(text))
    ends = [*(tag.start() for tag in tags[1:]), len(text)]
    for tag, end in zip(tags, ends, strict=False):
        closing = tag["close"] or tag["shut"] or tag["end"]
        body = text[tag.end() : end]
        if not closing and body.strip():
            # Llama 3 calls the tools that come with it as methods.
            yield _METHOD.sub(r"\1(", body, count=1) if tag["python"] else body


def _calls_of_body(body: str) -> tuple[Call, ...]:
    bracket = _BRACKET.search(body)
    element = first_element(body)
    if element is not None and (bracket is None or element < bracket.start()):
        return tuple(_marked(body))
    if head := headed(body):
        return (Call(*head),)
    found = tuple(call for value in values_in(body) for call in calls_of(value.value, bare=True))
    alone = _ALONE.match(body)
    return found or tuple(_pythonic(body)) or ((Call(alone[1], {}),) if alone else ())


def _marked(text: str) -> Iterator[Call]:
    return (Call(*made) for made in elements(text))


def _headed(text: str) -> Iterator[Call]:
    made = headed_alone(text)
    if made:
        yield Call(*made)


def _fenced(text: str) -> Iterator[Call]:
    for block in text.split("```")[1::2]:
        yield from _written(block)


def _written(text: str) -> Iterator[Call]:
    found = list(values_in(text))
    alone = len(found) == 1 and not _LABEL.sub("", text[: found[0].start]).strip()
    for one in found:
        bare = alone and isinstance(one.value, Mapping) and one.value.keys() <= _BARE
        yield from calls_of(one.value, bare=bare and not text[one.end :].strip())


def _acted(text: str) -> Iterator[Call]:
    reader = Reader(text)
    for action in _ACTION.finditer(text):
        try:
            value, _ = reader.value(action.end())
        except (Unreadable, Spent):
            value = _LINE_REST.match(text, action.end())[0]  # type: ignore[index]
        yield Call(action[1], _arguments(value))


def _pythonic(text: str) -> Iterator[Call]:
    """Yield the calls of lines that are nothing but calls."""
    reader = Reader(text)
    after = 0
    for line in _LINE.finditer(text):
        if line.end() < after:
            continue
        try:
            made, after = _calls_at(reader, line.end())
        except Unreadable:
            continue
        except Spent:
            return
        if _REST.match(text, after):
            yield from made


def _calls_at(reader: Reader, at: int) -> tuple[list[Call], int]:
    made: list[Call] = []
    while found := _CALL.match(reader.text, at):
        arguments, end = _keywords(reader, found.end())
        made.append(Call(found[1], arguments))
        at = reader.space(end)
        if reader.text[at : at + 1] != ",":
            return made, end
        at = reader.space(at + 1)
    raise Unreadable


def _keywords(reader: Reader, at: int) -> tuple[dict[str, Any] | None, int]:
    """Read up to the closing bracket; positional arguments have no names to compare by."""
    named: dict[str, Any] = {}
    readable = True
    at = reader.space(at)
    while reader.text[at : at + 1] != ")":
        key = _KEY.match(reader.text, at)
        value, at = reader.value(key.end() if key else at, 1)
        readable &= key is not None
        if key:
            named[key[1]] = value
        at = reader.comma(at, ")")
    return named if readable else None, at + 1


def same_names(calls: Sequence[Call], others: Sequence[Call]) -> bool:
    """Whether the same tools are called equally often."""
    return sorted(call.name for call in calls) == sorted(call.name for call in others)
