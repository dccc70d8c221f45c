"""Write tool_call.json from the tools and talks beside this script.

Usage: python tool_call.py [FOLDER]    (default: the folder above this script)
"""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from tool_call_talks import CHAINED, DIRECT, SEARCHED, TALK
from tool_call_tools import EN, RETRIEVAL, ZH, catalogue

SHOWN = 5
SYSTEM = {
    "zh": "# 工具\n\n你可以调用一个或多个函数来协助处理用户查询。合适的函数不在列表中时，先用 "
    "retrieval_tool 检索。\n\n在 <tools></tools> XML 标签中提供了可用的函数签名：\n<tools>\n"
    "</tools>\n\n"
    "每次函数调用都在 <tool_call></tool_call> 标签中返回包含函数名和参数的 JSON 对象：\n"
    '<tool_call>\n{"name": <函数名>, "arguments": <参数对象>}\n</tool_call>',
    "en": "# Tools\n\nYou may call one or more functions to help with the user's query. Where the "
    "right one is not listed, search with retrieval_tool first.\n\nFunction signatures stand "
    "within <tools></tools> XML tags:\n<tools>\n</tools>\n\nFor each call return a JSON object "
    "with name and arguments within <tool_call></tool_call> tags:\n<tool_call>\n"
    '{"name": <name>, "arguments": <object>}\n</tool_call>',
}
TOOLS = {"zh": catalogue(ZH), "en": catalogue(EN)}


def text(value: Any) -> str:
    """Return a value as JSON, as the messages hold it."""
    return json.dumps(value, ensure_ascii=False)


def said(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    """Return messages from pairs of speaker and text."""
    return [{"from": speaker, "value": value} for speaker, value in pairs]


def call(name: str, arguments: Any) -> dict[str, Any]:
    """Return a call as the messages hold it."""
    return {"name": name, "arguments": arguments}


def searched(step: Any, language: str, place: int) -> list[dict[str, str]]:
    """Return the messages of a step whose tool is found first; it stands at a changing place."""
    question, query, tool, arguments, result, answer = step
    names = list(TOOLS[language])
    at = names.index(tool)
    near = [names[(at + k) % len(names)] for k in range(1, SHOWN)]
    near.insert(place % SHOWN, tool)
    search = {"query": query, "source_filter": "toollist", "user_id": 136451106, "top_k": SHOWN}
    return said(
        ("human", question),
        ("function_call", text(call("retrieval_tool", search))),
        ("observation", text([TOOLS[language][name] for name in near])),
        ("function_call", text(call(tool, arguments))),
        ("observation", text({"result": result})),
        ("gpt", answer),
    )


def direct(step: Any) -> list[dict[str, str]]:
    """Return the messages of a step whose calls are made at once."""
    question, _, calls, results, answer = step
    made = [call(*one) for one in calls]
    shown = made[0] if len(made) == 1 else made
    observed = [("observation", text({"result": result})) for result in results]
    return said(("human", question), ("function_call", text(shown)), *observed, ("gpt", answer))


def chained(step: Any) -> list[dict[str, str]]:
    """Return the messages of a step with one call after the other."""
    question, _, steps, answer = step
    middle = chain.from_iterable(
        (("function_call", text(call(name, arguments))), ("observation", text({"result": result})))
        for name, arguments, result in steps
    )
    return said(("human", question), *middle, ("gpt", answer))


def record(messages: list[dict[str, str]], language: str, names: Any = None) -> dict[str, Any]:
    """Return a record; without names, the retrieval tool is the only one on offer."""
    retrieval = list(catalogue(RETRIEVAL[language]).values())
    tools = retrieval if names is None else [TOOLS[language][name] for name in names]
    return {"conversations": messages, "system": SYSTEM[language], "tools": text(tools)}


def records(language: str) -> list[dict[str, Any]]:
    """Return the records of a language: one step each, then some of two steps."""
    steps = [searched(step, language, n) for n, step in enumerate(SEARCHED[language])]
    single = steps[:-4]
    double = [steps[-4] + steps[-3], steps[-2] + steps[-1]]
    talks = [said(("human", question), ("gpt", answer)) for question, answer in TALK[language]]
    return [
        *(record(messages, language) for messages in (*single, *double)),
        *(record(direct(step), language, step[1]) for step in DIRECT[language]),
        *(record(chained(step), language, step[1]) for step in CHAINED[language]),
        *(record(messages, language) for messages in talks),
    ]


def main() -> None:
    """Write the file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    both = [one for pair in zip(records("zh"), records("en"), strict=True) for one in pair]
    lines = ",\n".join(text(one) for one in both)
    (folder / "tool_call.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
