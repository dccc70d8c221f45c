"""Calls that are written with marks of a model's own around them, instead of as one JSON object.

Two families are read. *Elements* name the tool and each argument in tags: `<function=f>` with
`<parameter=x>` (Qwen3-Coder), `<invoke name="f">` with `<parameter name="x">` (DeepSeek V3.2,
MiniMax), `f` before `<arg_key>` and `<arg_value>` (GLM-4.5). *Heads* put the name before the
JSON of the arguments: `f[ARGS]{…}` (Mistral), `f<｜tool▁sep｜>{…}` (DeepSeek),
`functions.f:0<|…|>{…}` (Kimi). Linear time: no pattern gives back what it took.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from xpe.text.lenient import Reader, Spent, Unreadable, Untyped, values_in

Made: TypeAlias = tuple[str, Mapping[str, Any] | None]
"""The name of a tool and its arguments; None where they cannot be read."""

_PREFIX = r"(?:[\w｜]{1,16}[:｜])?"
_NAMED = r"""(?:=|\s++name\s*+=)\s*+["']?([^\s"'<>]++)["']?+([^<>]*+)>"""
_OPEN = re.compile(rf"<{_PREFIX}(?:function|invoke){_NAMED}")
_CLOSE = re.compile(rf"</{_PREFIX}(?:function|invoke)>")
_PARAMETER = re.compile(rf"<{_PREFIX}parameter{_NAMED}")
_CLOSE_PARAMETER = re.compile(rf"</{_PREFIX}parameter>")
_KEYED = re.compile(r"(?<![\w.\-])([A-Za-z_][\w.\-]*+)\s*+(?=<arg_key>)")
_PAIR = re.compile(
    r"<arg_key>([^<>]++)</arg_key>\s*+<arg_value>((?:[^<]++|<(?!/?arg_|/tool_call>))*+)"
)
_TYPED = re.compile(r"""\bstring\s*+=\s*+["']?(true|false)""")

_BAR = "[|｜]"
_MARK = rf"<{_BAR}[^<>|｜]{{1,40}}+{_BAR}>"
_WORDS = r"\[CALL_ID\][\w\-]*+|\[ARGS\]|commentary\b|json\b|```(?:json)?+"
_HEAD = re.compile(
    rf"\s*+(?:function{_MARK})?(?:functions\.)?(?!json\b)([^\W\d][\w.\-]*+)(?::\d++)?"
    rf"(?:\s*+(?:{_MARK}|{_WORDS}))*+\s*+(?=\{{)"
)
_END = re.compile(rf"\s*+(?:(?:{_MARK}|</s>)\s*+)*+\Z")


def elements(text: str) -> Iterator[Made]:
    """Yield the calls whose names and arguments stand in tags."""
    opened = list(_OPEN.finditer(text))
    for one, end in zip(opened, _starts(opened, text), strict=True):
        yield one[1], _parameters(_before(_CLOSE, text[one.end() : end]))
    keyed = list(_KEYED.finditer(text)) if not opened else []
    for one, end in zip(keyed, _starts(keyed, text), strict=True):
        pairs = _PAIR.findall(text[one.end() : end])
        yield one[1], {key.strip(): Untyped(value.strip()) for key, value in pairs} or None


def first_element(text: str) -> int | None:
    """Return where the first call of `elements` begins."""
    found = _OPEN.search(text) or _KEYED.search(text)
    return found.start() if found else None


def headed(text: str) -> Made | None:
    """Return the call whose name stands before the JSON of its arguments, at the beginning."""
    head = _HEAD.match(text)
    value = head and _object(text, head.end())
    return (head[1], value[0]) if head and value else None


def headed_alone(text: str) -> Made | None:
    """Return the call of `headed` where nothing else is written, and the name can be no word."""
    head = _HEAD.match(text)
    value = head and "_" in head[1] and _object(text, head.end())
    return (head[1], value[0]) if head and value and _END.match(text, value[1]) else None


def _starts(found: list[re.Match[str]], text: str) -> list[int]:
    """Return where each of some matches ends to be the last: at the next one."""
    return [*(one.start() for one in found[1:]), len(text)][: len(found)]


def _before(mark: re.Pattern[str], text: str) -> str:
    found = mark.search(text)
    return text[: found.start()] if found else text


def _parameters(body: str) -> Mapping[str, Any] | None:
    """Return the arguments between the tags of a call: elements, or one JSON object."""
    opened = list(_PARAMETER.finditer(body))
    if opened:
        return {
            one[1]: _typed(_before(_CLOSE_PARAMETER, body[one.end() : end]).strip(), one[2])
            for one, end in zip(opened, _starts(opened, body), strict=True)
        }
    if not body.strip():
        return {}
    found = next((one.value for one in values_in(body)), None)
    return found if isinstance(found, Mapping) else None


def _typed(text: str, attributes: str) -> Any:
    """Return the value of a parameter: of the type that its tag states, or of none."""
    stated = _TYPED.search(attributes)
    if stated is None:
        return Untyped(text)
    return text if stated[1] == "true" else Untyped(text).read()


def _object(text: str, at: int) -> tuple[Mapping[str, Any], int] | None:
    try:
        value, end = Reader(text).value(at)
    except (Unreadable, Spent):
        return None
    return value, end
