"""Definitions of tools are found where they stand, and nothing else is taken for one."""

from __future__ import annotations

import json

import pytest

from xpe.text.tools import tools_in

EMPTY = {"type": "object", "properties": {}}
PLAIN = {"name": "f", "description": "does f", "parameters": EMPTY}


@pytest.mark.parametrize(
    "value",
    [
        [PLAIN],
        {"type": "function", "function": PLAIN},
        {"result": {"tools": [{**PLAIN, "score": 0.9}]}},
        [{"name": "f", "description": "does f"}],
        [{"name": "f", "description": "does f", "input_schema": EMPTY}],
        [{"name": "f", "description": "does f", "parameters": {"type": "dict", "properties": {}}}],
    ],
)
def test_every_shape_of_a_definition(value: object) -> None:
    """As an object and as JSON text, they come out in one form."""
    assert tools_in(value) == (PLAIN,)
    assert tools_in(json.dumps(value, ensure_ascii=False)) == (PLAIN,)
    assert tools_in(f"找到：{value!r}") == (PLAIN,)


def test_the_first_of_a_name_stays() -> None:
    """A name stands for one tool."""
    assert tools_in([PLAIN, {**PLAIN, "description": "again"}, {**PLAIN, "name": "g"}]) == (
        PLAIN,
        {**PLAIN, "name": "g"},
    )


@pytest.mark.parametrize(
    "value",
    [
        '{"result": {"收入": "1,285,893.00"}}',
        [{"name": "apple", "description": "fresh", "price": 3}],
        [{"name": "张三"}],
        [{"name": "John Doe", "description": "a person"}],
        "plain text",
        "",
        "[" * 100_000,
        None,
    ],
)
def test_data_is_no_definition(value: object) -> None:
    """Products, people and results have names too."""
    assert tools_in(value) == ()
