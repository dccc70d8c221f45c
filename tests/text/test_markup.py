"""Calls in the marks that models put around them are read, with what their arguments spell."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpe.text.calls import Call, Calls, calls_in
from xpe.text.lenient import Untyped, plain

ARGUMENTS = {"city": "北京", "days": 3}
JSON = '{"city": "北京", "days": 3}'
INVOKED = (
    '{p}invoke name="get_weather">\n<{p}parameter name="city">北京</{p}parameter>\n'
    '<{p}parameter name="days">3</{p}parameter>\n</{p}invoke>'
)
FORMS = {
    "Qwen3-Coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\n北京\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    ),
    "Qwen3-Coder, no outer tag": (
        "I will look.\n<function=get_weather>\n<parameter=city>北京</parameter>\n"
        "<parameter=days>3</parameter>\n</function>"
    ),
    "Qwen3-Coder, nothing closed": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\n北京\n<parameter=days>\n3\n"
    ),
    "Seed-OSS": (
        "<seed:tool_call><function=get_weather><parameter=city>北京</parameter>"
        "<parameter=days>3</parameter></function></seed:tool_call>"
    ),
    "Llama 3.1": f"<function=get_weather>{JSON}</function>",
    "Llama 3, JSON": (
        '<|python_tag|>{"type": "function", "name": "get_weather", '
        f'"parameters": {JSON}}}<|eom_id|>'
    ),
    "Llama 3, method": '<|python_tag|>get_weather.call(city="北京", days=3)<|eom_id|>',
    "Mistral": f'[TOOL_CALLS] [{{"name": "get_weather", "arguments": {JSON}, "id": "9Ae3"}}]</s>',
    "Mistral v11": f"[TOOL_CALLS]get_weather{JSON}</s>",
    "Mistral v13": f"[TOOL_CALLS]get_weather[CALL_ID]9Ae3bDc2F[ARGS]{JSON}</s>",
    "DeepSeek V3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        f"```json\n{JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
    ),
    "DeepSeek V3.1": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{JSON}"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "DeepSeek V3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">北京</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    ),
    "Kimi K2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        f"<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "GLM-4.5": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>北京</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"
    ),
    "GLM-4.5, no outer tag": (
        "\nget_weather<arg_key>city</arg_key><arg_value>北京</arg_value>"
        "<arg_key>days</arg_key><arg_value>3</arg_value>"
    ),
    "GLM-4": f"get_weather\n{JSON}",
    "MiniMax": f"<minimax:tool_call>\n<{INVOKED.format(p='')}\n</minimax:tool_call>",
    "Step-3": (
        "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
        f"<{INVOKED.format(p='steptml:')}<｜tool_call_end｜><｜tool_calls_end｜>"
    ),
    "gpt-oss": (
        f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{JSON}<|call|>"
    ),
    "gpt-oss without marks": f"commentary to=functions.get_weather json{JSON}",
    "LFM2": '<|tool_call_start|>[get_weather(city="北京", days=3)]<|tool_call_end|>',
    "Phi-4": f'<|tool_call|>[{{"name": "get_weather", "arguments": {JSON}}}]<|/tool_call|>',
    "Qwen 2": f"✿FUNCTION✿: get_weather\n✿ARGS✿: {JSON}\n✿RESULT✿",
}


@pytest.mark.parametrize("form", FORMS)
def test_one_call_in_every_form(form: str) -> None:
    """As the chat templates of these models write it, or their tokenizers leave it."""
    (call,) = calls_in(FORMS[form]).calls

    assert call.name == "get_weather"
    assert {key: plain(value) for key, value in (call.arguments or {}).items()} == ARGUMENTS


TWO = {
    "Qwen3-Coder": (
        "<tool_call><function=f><parameter=x>1</parameter></function></tool_call>\n"
        "<tool_call>\n<function=g>\n</function>\n</tool_call>"
    ),
    "one tag": (
        "<tool_call><function=f><parameter=x>1</parameter></function><function=g></tool_call>"
    ),
    "Mistral": '[TOOL_CALLS]f[ARGS]{"x": "1"}[TOOL_CALLS]g[ARGS]{}</s>',
    "DeepSeek": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": "1"}<｜tool▁call▁end｜>\n'
        "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "Kimi": (
        "<|tool_calls_section_begin|>"
        '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"x": "1"}<|tool_call_end|>'
        "<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
    ),
    "GLM": (
        "<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>1</arg_value>\n</tool_call>"
        "<tool_call>g\n</tool_call>"
    ),
}


@pytest.mark.parametrize("form", TWO)
def test_parallel_calls_keep_their_order(form: str) -> None:
    """One with an argument, one without."""
    assert calls_in(TWO[form]) == Calls((Call("f", {"x": "1"}), Call("g", {})))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("2.50", 2.5),
        ("true", True),
        ("False", False),
        ("None", None),
        ('[1, "二"]', [1, "二"]),
        ("{'a': {'b': 1}}", {"a": {"b": 1}}),
        ("北京", "北京"),
        ("3 days", "3 days"),
        ("[1, 2] and more", "[1, 2] and more"),
        ("a < b && c > d", "a < b && c > d"),
        ("", ""),
        ("- 3", "- 3"),
    ],
)
def test_a_value_without_type_may_be_what_it_spells(text: str, value: Any) -> None:
    """JSON or Python, and nothing beside it; all else is text. It stays equal to its text."""
    (call,) = calls_in(f"<function=f>\n<parameter=x>\n{text}\n</parameter>\n</function>").calls

    assert call.arguments == {"x": text}
    assert plain((call.arguments or {})["x"]) == value
    assert type(plain(Untyped(text))) is type(value)


def test_a_value_with_a_stated_type_has_it() -> None:
    """DeepSeek says of each parameter whether it is text."""
    (call,) = calls_in(
        '<｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="true">3</｜DSML｜parameter>'
        '<｜DSML｜parameter name="b" string="false">3</｜DSML｜parameter></｜DSML｜invoke>'
    ).calls

    assert call.arguments == {"a": "3", "b": 3}
    assert type((call.arguments or {})["a"]) is str


@pytest.mark.parametrize(
    "text",
    [
        '[TOOL_CALLS]f[ARGS]{"x": ',
        '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": <｜tool▁call▁end｜>',
        "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>oops<|tool_call_end|>",
        "<arg_key>city</arg_key><arg_value>北京</arg_value>",
    ],
)
def test_a_broken_call_is_unparsed(text: str) -> None:
    """An attempt that cannot be read is told apart from no call."""
    assert calls_in(text) == Calls((), unparsed=True)


def test_arguments_that_cannot_be_read_leave_the_name() -> None:
    """What stands between the tags is neither parameters nor an object."""
    assert calls_in("<function=f>three days</function>").calls == (Call("f", None),)


@pytest.mark.parametrize(
    "text",
    [
        'Result\n{"x": 1}',
        "The element <parameter=x> belongs to a function.",
        "See [ARGS] and <|channel|> in the manual.",
        "x_1\n{1, 2} are sets.",
    ],
)
def test_plain_text_holds_no_call(text: str) -> None:
    """A word before an object, and marks alone, are no calls."""
    assert calls_in(text) == Calls(())


def test_marks_inside_an_argument_are_text() -> None:
    """The form that begins first is the one that is read."""
    inner = {"code": "<function=g><parameter=x>1</parameter></function>"}
    text = json.dumps({"name": "f", "arguments": inner})

    assert calls_in(f"<tool_call>{text}</tool_call>").calls == (Call("f", inner),)
    (call,) = calls_in(
        '<tool_call><function=f><parameter=x>{"name": "g", "arguments": {}}</parameter></function>'
    ).calls
    assert call.name == "f"


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,10}", fullmatch=True).filter(
    lambda name: name.lower() not in ("json", "none", "null", "function")
)
TEXTS = st.text(alphabet="aé中 \n\"'{}[](),:=3.-&", max_size=20)
VALUES = st.one_of(TEXTS, st.integers(), st.booleans(), st.none(), st.lists(st.integers()))
GIVEN = st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, max_size=4)


def spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def qwen(name: str, arguments: dict[str, Any]) -> str:
    inner = "".join(
        f"<parameter={key}>\n{spelled(value)}\n</parameter>\n" for key, value in arguments.items()
    )
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def glm(name: str, arguments: dict[str, Any]) -> str:
    inner = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{spelled(value)}</arg_value>\n"
        for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{inner}</tool_call>"


@pytest.mark.parametrize("write", [qwen, glm])
@given(NAMES, GIVEN)
def test_elements_come_back_as_they_were_written(
    write: Any, name: str, arguments: dict[str, Any]
) -> None:
    """The name, and of each argument its text or the value that it was."""
    (call,) = calls_in(write(name, arguments)).calls
    found = call.arguments or {}

    assert call.name == name
    assert list(found) == list(arguments)
    for key, value in arguments.items():
        assert found[key] == spelled(value).strip()
        assert isinstance(value, str) or plain(found[key]) == value


@given(NAMES, GIVEN)
def test_heads_come_back_as_they_were_written(name: str, arguments: dict[str, Any]) -> None:
    """With the arguments as the json module writes them."""
    text = json.dumps(arguments, ensure_ascii=False)
    heads = [
        f"[TOOL_CALLS]{name}[ARGS]{text}",
        f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{text}<｜tool▁call▁end｜>",
        f"<|tool_call_begin|>functions.{name}:3<|tool_call_argument_begin|>{text}<|tool_call_end|>",
    ]
    for written in heads:
        assert calls_in(written).calls == (Call(name, arguments),)


PIECES = st.lists(
    st.sampled_from(
        ["<tool_call>", "</tool_call>",
         "<function=f>", "<function=", "</function>", "<parameter=x>",
         "</parameter>", "<invoke name='f'>", '<parameter name="x" string="false">', "</invoke>",
         "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "f", "functions.f:0", "{", "}",
         '"x":', "1", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "<|python_tag|>", ".call(", ")",
         "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
         "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "to=functions.",
         "<|message|>", "</s>", "```json", "\n", " "]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@settings(max_examples=500)
@given(PIECES)
def test_nothing_raises(text: str) -> None:
    """Whatever a model writes gives calls, or none; each name is text that is not empty."""
    found = calls_in(text)

    assert not (found.calls and found.unparsed)
    assert all(call.name for call in found.calls)


BAIT = [
    "<function=f>", "<function=", "<function=f><parameter=x>", "<parameter=x>", "<invoke ",
    "<invoke name=", "<f:", "<｜", "<arg_key>", "<arg_key>a</arg_key>", "f <arg_key>", "f<arg_key>",
    "<arg_key>a</arg_key><arg_value>", "[TOOL_CALLS]f", "[TOOL_CALLS]f[ARGS]", "[ARGS]",
    "[CALL_ID]a", "<｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>",
    "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{",
    "<|tool_call_begin|>functions.f:0", "to=functions.", "to=functions.f ", "<|python_tag|>f.call(",
    "<tool_call>f", "<tool_call>f\n{", "a_b", "a_b ", "a_b\n{", "f<|x|>", "<|x|>", "</s>", "json",
    "```json", "commentary ", "<function=f>{", "<function=f>{'a':", '"', "=", "<function name",
]  # fmt: skip


@pytest.mark.parametrize("bait", BAIT)
def test_time_grows_with_length_alone(bait: str) -> None:
    """A megabyte of the worst kind takes seconds, not hours; less of it behind each opening."""
    openings = {
        "": 1_000_000,
        "<tool_call>": 200_000,
        "<function=f>": 200_000,
        "f<arg_key>": 200_000,
    }
    for opening, size in openings.items():
        text = opening + bait * (size // len(bait))
        started = time.thread_time()
        calls_in(text)
        assert time.thread_time() - started < 60, opening
