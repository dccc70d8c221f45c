"""What a model reads before it predicts a turn: messages, with tools beside or inside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypeAlias

from xpe.tasks.conversations import Conversation, Turn
from xpe.text.calls import Call
from xpe.text.tokenisers import language_of
from xpe.types import Message

Style: TypeAlias = Literal["native", "prompt"]

_EMPTY = re.compile(r"<tools>\s*</tools>")
_FULL = re.compile(r"<tools>(.+?)</tools>", re.DOTALL)
_BLOCKS = {
    "zh": (
        "# 工具\n\n你可以调用一个或多个函数来协助处理用户查询。可用的函数签名如下，每行一个：\n"
        "<tools>\n{tools}\n</tools>\n\n"
        "每次调用都在 <tool_call></tool_call> 标签中写出函数名和参数的 JSON 对象：\n"
        '<tool_call>\n{{"name": <函数名>, "arguments": <参数对象>}}\n</tool_call>'
    ),
    "en": (
        "# Tools\n\nYou may call one or more functions to help with the user's query. These are "
        "their signatures, one a line:\n<tools>\n{tools}\n</tools>\n\n"
        "For each call write a JSON object with the function's name and arguments inside "
        "<tool_call></tool_call> tags:\n"
        '<tool_call>\n{{"name": <name>, "arguments": <object>}}\n</tool_call>'
    ),
}


def messages_before(conversation: Conversation, at: int, style: Style) -> tuple[Message, ...]:
    """Return the messages up to turn `at`; with `prompt`, the tools stand in the first."""
    before = conversation.turns[:at]
    system = conversation.system
    if style == "prompt":
        spoken = system + "".join(turn.text for turn in before if turn.role == "user")
        system = with_tools(system, conversation.tools_before(at), spoken)
    first: list[Message] = [{"role": "system", "content": system}] if system else []
    rest = _native(before) if style == "native" else _in_text(before)
    return (*first, *rest)


def with_tools(system: str, tools: Sequence[Mapping[str, Any]], spoken: str) -> str:
    """Return a system text with the tools inside its last empty `<tools></tools>`, else after it.

    Tools that it names inside `<tools>` itself are not repeated. `spoken` decides the language of
    what is added.
    """
    places = list(_EMPTY.finditer(system))
    named = "".join(_FULL.findall(system)) if not places else ""
    missing = [tool for tool in tools if json.dumps(tool["name"], ensure_ascii=False) not in named]
    if not missing:
        return system
    lines = "\n".join(_json({"type": "function", "function": tool}) for tool in missing)
    if places:
        last = places[-1]
        return f"{system[: last.start()]}<tools>\n{lines}\n</tools>{system[last.end() :]}"
    block = _BLOCKS[language_of(spoken)].format(tools=lines)
    return f"{system}\n\n{block}" if system else block


def _in_text(turns: Sequence[Turn]) -> Iterator[Message]:
    for role, run in groupby(turns, key=lambda turn: turn.role):
        group = list(run)
        if role == "result":
            yield _shown(group)
        for turn in group if role != "result" else ():
            yield {"role": "user" if role == "user" else "assistant", "content": _written(turn)}


def _written(turn: Turn) -> str:
    if not turn.calls:
        return turn.text
    parts = ({"name": call.name, "arguments": call.arguments} for call in turn.calls)
    return "\n".join(f"<tool_call>\n{_json(part)}\n</tool_call>" for part in parts)


def _shown(results: Sequence[Turn]) -> Message:
    texts = (f"<tool_response>\n{turn.text}\n</tool_response>" for turn in results)
    return {"role": "user", "content": "\n".join(texts)}


def _native(turns: Sequence[Turn]) -> Iterator[Message]:
    """Yield messages in which each call has exactly one result, as servers demand."""
    open_ids: list[str] = []
    made = 0
    for role, run in groupby(turns, key=lambda turn: turn.role):
        group = list(run)
        if role == "result" and open_ids:
            yield from _answered(open_ids, group)
            open_ids = []
            continue
        yield from _answered(open_ids, ())
        open_ids = []
        if role == "result":
            yield _shown(group)
        for turn in group if role != "result" else ():
            if turn.calls:
                open_ids = [f"call_{made + n}" for n in range(len(turn.calls))]
                made += len(open_ids)
                yield _calling(turn.calls, open_ids)
            else:
                yield {"role": "user" if role == "user" else "assistant", "content": turn.text}
    yield from _answered(open_ids, ())


def _calling(calls: Sequence[Call], ids: Sequence[str]) -> Message:
    made = [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": _json(call.arguments)},
        }
        for call, call_id in zip(calls, ids, strict=True)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


def _answered(ids: Sequence[str], results: Sequence[Turn]) -> Iterator[Message]:
    """Yield one message a call; the last holds what is left, one result for all goes to each."""
    texts = [turn.text for turn in results] or [""]
    for place, call_id in enumerate(ids):
        last = place == len(ids) - 1
        mine = texts[place:] if last and place < len(texts) else texts[place : place + 1]
        content = "\n".join(mine or texts[-1:])
        yield {"role": "tool", "tool_call_id": call_id, "content": content}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
