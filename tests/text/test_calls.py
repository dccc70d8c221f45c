"""Calls are read in every form in which models write them; what cannot be read is said so."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpe.text.calls import Call, Calls, calls_in, calls_of, native_calls
from xpe.text.lenient import values_in

WEATHER = Call("get_weather", {"city": "北京", "days": 3})
JSON = '{"name": "get_weather", "arguments": {"city": "北京", "days": 3}}'


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"<tool_call>\n{JSON}\n</tool_call>",
        f"好的，我来查询。\n<tool_call>{JSON}</tool_call>\n请稍候。",
        f"<tool_call>\n{JSON}",
        f"<functioncall> {JSON}",
        f"[TOOL_CALLS] [{JSON}]",
        f"<|python_tag|>{JSON}",
        f"```json\n{JSON}\n```",
        f"I will look it up:\n```\n{JSON}\n```\nDone.",
        f"The call is {JSON}, which I make now.",
        f"[{JSON}]",
        "{'name': 'get_weather', 'arguments': {'city': '北京', 'days': 3}}",
        '{"name": "get_weather", "arguments": {"city": "北京", "days": 3,},}',
        "{name: get_weather, arguments: {city: 北京, days: 3}}",
        "{“name”：“get_weather”，“arguments”：{“city”：“北京”，“days”：3}}",
        '{"name": "get_weather", "arguments": "{\\"city\\": \\"北京\\", \\"days\\": 3}"}',
        '{"name": "get_weather", "parameters": {"city": "北京", "days": 3}}',
        '{"function": "get_weather", "args": {"city": "北京", "days": 3}}',
        '{"tool": "get_weather", "tool_input": {"city": "北京", "days": 3}}',
        (
            '{"type": "function", "function": {"name": "get_weather", '
            '"arguments": {"city": "北京", "days": 3}}}'
        ),
        f'{{"tool_calls": [{JSON}]}}',
        'Action: get_weather\nAction Input: {"city": "北京", "days": 3}',
        'get_weather(city="北京", days=3)',
        "[get_weather(city='北京', days=3)]",
        "result = get_weather(city='北京', days=3,)",
        "```python\nget_weather(\n    city='北京',\n    days=3,\n)\n```",
        "<tool_call>get_weather(city='北京', days=3)</tool_call>",
    ],
)
def test_one_call_in_every_form(text: str) -> None:
    """The form does not change what is read."""
    assert calls_in(text) == Calls((WEATHER,))


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {}}]',
        (
            '<tool_call>{"name": "a", "arguments": {"x": 1}}</tool_call>\n'
            '<tool_call>{"name": "b"}</tool_call>'
        ),
        '{"name": "a", "arguments": {"x": 1}}\n{"name": "b", "arguments": {}}',
        "[a(x=1), b()]",
        "a(x=1)\nb()",
    ],
)
def test_several_calls_keep_their_order(text: str) -> None:
    """Lists, repeated tags and lines of calls are parallel calls."""
    assert calls_in(text).calls == (Call("a", {"x": 1}), Call("b", {}))


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "get_weather", "arguments": {"city": </tool_call>',
        '{"name": "get_weather", "arguments": {"city": "北',
        "<tool_call>get the weather</tool_call>",
        '"name": "get_weather"',
    ],
)
def test_a_broken_call_is_unparsed(text: str) -> None:
    """An attempt that cannot be read is told apart from no call."""
    assert calls_in(text) == Calls((), unparsed=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "北京今天晴，25 度。",
        "I cannot (or will not) do that.",
        "The list [1, 2, 3] and the set {a, b}.",
        'The result is {"temperature": 25, "city": "北京"}.',
        "See foo(bar) for more.",
    ],
)
def test_plain_text_holds_no_call(text: str) -> None:
    """Brackets and data in an answer are no calls."""
    assert calls_in(text) == Calls(())


def test_the_definition_of_a_tool_is_no_call() -> None:
    """A model that repeats a tool's schema has not called it."""
    schema = {"name": "f", "description": "d", "parameters": {"type": "object"}}

    assert calls_in(json.dumps(schema)).calls == ()


def test_arguments_that_cannot_be_read_leave_the_name() -> None:
    """Positional and broken arguments are None, not empty."""
    assert calls_in("f(3)").calls == (Call("f", None),)
    assert native_calls([{"function": {"name": "f", "arguments": "{oops"}}]).calls == (
        Call("f", None),
    )


def test_native_calls() -> None:
    """Arguments come as JSON text; no arguments are none."""
    given = [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": [1, "二"]}'}},
        {"id": "2", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]

    assert native_calls(given) == Calls((Call("f", {"x": [1, "二"]}), Call("g", {})))


def test_numbers_that_json_cannot_hold_stay_text() -> None:
    """A sample file takes no infinity."""
    (call,) = calls_in('{"name": "f", "arguments": {"x": 1e999, "y": NaN, "z": 1.5e3}}').calls

    assert call.arguments == {"x": "1e999", "y": "NaN", "z": 1500.0}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, width=32),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)
FINITE = JSON_VALUES.map(lambda value: json.loads(json.dumps(value).replace("Infinity", "0")))


@given(st.dictionaries(st.text(), FINITE, max_size=4), st.sampled_from(["", "text ", "。"]))
def test_json_is_read_as_json_reads_it(arguments: dict, before: str) -> None:
    """Whatever the json module writes is read back equal, with or without escapes."""
    for ascii_only in (True, False):
        text = json.dumps({"name": "f", "arguments": arguments}, ensure_ascii=ascii_only)
        assert calls_in(before + text).calls == (Call("f", arguments),)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(lambda k: k != "name"),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(alphabet="aé中'\"\\ \n{}[](),"),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=6,
        ),
        max_size=4,
    )
)
def test_python_literals_are_read_as_python_reads_them(arguments: dict) -> None:
    """`repr` of an argument comes back, in dicts and in calls."""
    call = ", ".join(f"{key}={value!r}" for key, value in arguments.items())

    assert calls_in(repr({"name": "f", "arguments": arguments})).calls == (Call("f", arguments),)
    assert calls_in(f"f({call})").calls == (Call("f", arguments),)


PIECES = st.lists(
    st.sampled_from(
        ["{", "}", "[", "]", "(", ")", '"', "'", "“", "\\", ":", ",", "=", "\n", " ", "f(", "a=",
         "<tool_call>", "</tool_call>", "```", '"name"', '"arguments"', "1e9", "Action:", "中", "-"]
    ),
    max_size=60,
).map("".join)  # fmt: skip


@settings(max_examples=500)
@given(PIECES | st.text())
def test_nothing_raises(text: str) -> None:
    """Whatever a model writes gives calls, or none."""
    found = calls_in(text)

    assert not (found.calls and found.unparsed)
    assert calls_of(text, bare=True) == ()


@pytest.mark.parametrize(
    "piece",
    ["{", "[", "(", '{"', "{'", '{"a":', "[[{", "<tool_call>", "```", "f(", "f(a=", "a.", "[ ",
     '{"name":"f","arguments":{"x":', "\\", '"', "a\n", "\n", " ", "Action: a\nAction Input:",
     "-", "“", "{a:", "f(x=1),", "[1,"],
)  # fmt: skip
def test_time_grows_with_length_alone(piece: str) -> None:
    """100,000 characters of the worst kind take seconds at most, not hours."""
    text = piece * (100_000 // len(piece))
    started = time.thread_time()
    calls_in(text)

    assert time.thread_time() - started < 10


def test_values_stand_where_they_stand() -> None:
    """The places are those of the outermost values."""
    text = 'a {"x": [1]} b [2] c'

    assert [(text[f.start : f.end], f.value) for f in values_in(text)] == [
        ('{"x": [1]}', {"x": [1]}),
        ("[2]", [2]),
    ]
