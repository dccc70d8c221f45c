"""Chat templates get the arguments of calls as objects, which they write as JSON once."""

from __future__ import annotations

from xpe.models.prompts import with_objects


def calling(arguments: object) -> dict:
    function = {"name": "f", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": function}]}


def test_arguments_become_objects() -> None:
    """Text that is JSON does; objects and other text stay, and so do other messages."""
    assert with_objects(calling('{"x": "一"}')) == calling({"x": "一"})
    assert with_objects(calling({"x": 1})) == calling({"x": 1})
    assert with_objects(calling("x=1")) == calling("x=1")
    assert with_objects({"role": "user", "content": "{}"}) == {"role": "user", "content": "{}"}
