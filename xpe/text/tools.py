"""Definitions of tools, where they stand in data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from xpe.text.lenient import values_in

_NAME = re.compile(r"[^\s(){}\[\],;:：，。]{1,128}")
_SAID_OF_TOOLS = frozenset(
    {
        "name",
        "description",
        "type",
        "id",
        "tool_id",
        "strict",
        "returns",
        "category",
        "source",
        "score",
        "similarity",
        "distance",
        "rank",
    }
)
_SCHEMAS = ("parameters", "inputSchema", "input_schema")
_DEPTH = 8


def tools_in(value: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the definitions of tools in a value or a JSON text, each name once, in their order.

    A definition has a name and a schema of parameters, or a name, a description and nothing that
    is not said of tools: a product with a name and a price is none.
    """
    if isinstance(value, str):
        value = _values(value)
    found: dict[str, Mapping[str, Any]] = {}
    for tool in _walk(value, _DEPTH):
        found.setdefault(tool["name"], tool)
    return tuple(found.values())


def _values(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return [found.value for found in values_in(text)]


def _walk(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, (list, tuple)) and depth:
        for item in value:
            yield from _walk(item, depth - 1)
    if not isinstance(value, Mapping) or not depth:
        return
    tool = value.get("function") if isinstance(value.get("function"), Mapping) else value
    if _is_tool(tool):
        yield _plain(tool)
    else:
        for item in value.values():
            yield from _walk(item, depth - 1)


def _is_tool(value: Any) -> bool:
    name = value.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return False
    if any(isinstance(value.get(key), Mapping) for key in _SCHEMAS):
        return True
    return isinstance(value.get("description"), str) and value.keys() <= _SAID_OF_TOOLS


def _plain(tool: Any) -> Mapping[str, Any]:
    """Return name, description and parameters, as the chat APIs name and want them."""
    schema: Mapping[str, Any] = next(
        (tool[key] for key in _SCHEMAS if isinstance(tool.get(key), Mapping)), {}
    )
    parameters = {"type": "object", "properties": {}, **schema}
    if parameters["type"] == "dict":
        parameters["type"] = "object"
    description = tool.get("description")
    return {
        "name": tool["name"],
        "description": description if isinstance(description, str) else "",
        "parameters": parameters,
    }
