"""Records of conversations are read as documented, strictly, and as they are found in the wild."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tool_players import EXAMPLE, REVENUE, SEARCH

from xpe.data.documents import Documents
from xpe.errors import DataError, FieldTypeError, MissingFieldError
from xpe.tasks.conversations import Conversation, Pair, read
from xpe.text.calls import Call


def reading(doc: Any, **settings: Any) -> Conversation:
    return read(Documents([doc], "talks.json", "", "").record(0), **settings)


def spoken(*messages: tuple[str, Any], **more: Any) -> Conversation:
    made = [{"from": who, "value": value} for who, value in messages]
    return reading({"conversations": made, "system": "s", **more})


def test_the_documented_example_gives_the_documented_pairs() -> None:
    """Pair 1 calls the retrieval tool, pair 2 the tool that was found, pair 3 answers."""
    made = reading(EXAMPLE)

    assert made.pairs == (Pair(1, 1), Pair(2, 3, first=1), Pair(3, 5))
    assert made.turns[1].calls == (Call(SEARCH["name"], SEARCH["arguments"]),)
    assert made.turns[3].calls == (Call(REVENUE["name"], REVENUE["arguments"]),)
    assert made.turns[5].text == "交通收入占50.6%，门票收入占47.1%..."
    assert [tool["name"] for tool in made.tools_before(1)] == ["retrieval_tool"]
    assert [tool["name"] for tool in made.tools_before(3)] == [
        "retrieval_tool",
        "analyze_revenue_by_type",
    ]


@pytest.mark.parametrize(
    ("change", "error", "builtin", "said"),
    [
        ({"conversations": ...}, MissingFieldError, KeyError, "'conversations'.*array"),
        ({"system": ...}, MissingFieldError, KeyError, "'system'.*default_system"),
        ({"conversations": "x"}, FieldTypeError, TypeError, "conversations must be an array.*str"),
        ({"system": 3}, FieldTypeError, TypeError, "system must be a string.*int"),
        ({"tools": 3}, FieldTypeError, TypeError, "tools must be.*int"),
        ({"tools": "{oops"}, DataError, ValueError, "tools is not JSON"),
        ({"conversations": ["x"]}, FieldTypeError, TypeError, "message 1: expected an object"),
        ({"conversations": [{"value": "x"}]}, MissingFieldError, KeyError, "message 1.*'from'"),
        ({"conversations": [{"from": "human"}]}, MissingFieldError, KeyError, "1.*'value'"),
        (
            {"conversations": [{"from": "human", "value": ["x"]}]},
            FieldTypeError,
            TypeError,
            "message 1: value must be a string, got list",
        ),
        (
            {"conversations": [{"from": "user", "value": "x"}]},
            DataError,
            ValueError,
            "'user', expected one of human, function_call, observation, gpt",
        ),
        (
            {"conversations": [{"from": 7, "value": "x"}]},
            FieldTypeError,
            TypeError,
            "from must be one of human",
        ),
    ],
)
def test_a_wrong_record_is_named(
    change: dict[str, Any], error: type, builtin: type, said: str
) -> None:
    """The documented builtin errors, with file, record, what was got and what was expected."""
    doc = {key: value for key, value in {**EXAMPLE, **change}.items() if value is not ...}

    with pytest.raises(error, match=f"(?s)talks.json, record 1.*{said}") as caught:
        reading(doc)
    assert isinstance(caught.value, builtin)


def test_tools_are_optional_and_a_system_prompt_can_be_given() -> None:
    """Without `tools` there are none; `default_system` stands in for a missing prompt only."""
    bare = {"conversations": EXAMPLE["conversations"]}

    assert reading(bare, default_system="d").tools == ()
    assert reading(bare, default_system="d").system == "d"
    assert reading(EXAMPLE, default_system="d").system == EXAMPLE["system"]


CALL = {"name": "f", "arguments": {"x": 1}}
OTHER = {"name": "g", "arguments": {}}


@pytest.mark.parametrize(
    "value",
    [
        json.dumps(CALL),
        CALL,
        [CALL],
        json.dumps([CALL]),
        f"<think>\nI need f.\n</think>\n{json.dumps(CALL)}",
        f"<think>x</think><tool_call>\n{json.dumps(CALL)}\n</tool_call>",
        json.dumps({"name": "f", "arguments": '{"x": 1}'}),
        json.dumps({"f": {"x": 1}}),
    ],
)
def test_calls_in_the_shapes_of_the_wild(value: Any) -> None:
    """Objects, lists, reasoning, tags, arguments as text."""
    made = spoken(("human", "q"), ("function_call", value))

    assert made.turns[1].calls == (Call("f", {"x": 1}),)
    assert made.pairs == (Pair(1, 1),)


def test_parallel_and_consecutive_calls_are_one_turn() -> None:
    """A list of calls, and calls that follow each other, are made at once."""
    both = (Call("f", {"x": 1}), Call("g", {}))
    listed = spoken(("human", "q"), ("function_call", [CALL, OTHER]))
    following = spoken(
        ("human", "q"),
        ("function_call", json.dumps(CALL)),
        ("function_call", json.dumps(OTHER)),
        ("observation", "1"),
        ("observation", "2"),
        ("gpt", "a"),
    )

    assert listed.turns[1].calls == following.turns[1].calls == both
    assert following.pairs == (Pair(1, 1), Pair(3, 4))


def test_a_call_in_an_answer_is_a_call() -> None:
    """Some files give the model's calls as its text."""
    made = spoken(("human", "q"), ("gpt", f"<tool_call>{json.dumps(CALL)}</tool_call>"))

    assert made.pairs == (Pair(1, 1),)


def test_an_unreadable_call_is_kept_apart() -> None:
    """The content of calls is not checked as the file is read; such a pair has no gold."""
    made = spoken(("human", "q"), ("function_call", "call f please"), ("observation", "1"))

    assert made.turns[1].calls is None
    assert spoken(("human", "q"), ("function_call", "[]")).turns[1].calls == ()


def test_a_result_without_a_call_is_counted() -> None:
    """It makes a pair 3 all the same."""
    made = spoken(("human", "q"), ("gpt", "a"), ("observation", "1"), ("gpt", "b"))

    assert made.results_without_calls == 1
    assert made.pairs == (Pair(3, 3),)


def test_a_pair_2_belongs_to_the_pair_1_before_its_result() -> None:
    """A third call in a row follows a pair 2, and a result of nobody follows none."""
    made = spoken(
        ("human", "q"),
        ("function_call", CALL),
        ("observation", "1"),
        ("function_call", OTHER),
        ("observation", "2"),
        ("function_call", OTHER),
    )

    assert made.pairs == (Pair(1, 1), Pair(2, 3, first=1), Pair(2, 5))
    assert spoken(("observation", "1"), ("function_call", CALL)).pairs == (Pair(2, 1),)


def test_messages_of_chat_apis() -> None:
    """`role` and `content`, `tool_calls` with arguments as text, the system's message."""
    made = reading(
        {
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "q"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"function": {"name": "f", "arguments": '{"x": 1}'}}],
                },
                {"role": "tool", "content": "1"},
                {"role": "assistant", "content": "<think>hm</think>a"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "description": "d"}}],
        }
    )

    assert made.system == "be brief"
    assert [turn.role for turn in made.turns] == ["user", "calls", "result", "answer"]
    assert made.turns[1].calls == (Call("f", {"x": 1}),)
    assert made.turns[3].text == "a"
    assert [tool["name"] for tool in made.tools] == ["f"]
    assert made.pairs == (Pair(1, 1), Pair(3, 3))
