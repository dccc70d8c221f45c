"""What the model kind `openai` posts for a generation, and how it reads the answer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from xpe.errors import ConfigError
from xpe.models._api_text import Dialect, generated, generation_body
from xpe.text.reasoning import MARKERS
from xpe.types import Generate, Generated

sys.path.insert(0, str(Path(__file__).parent))
from fake_server import chat

CHAT = Dialect("m", "chat", markers=MARKERS)
TEXT = Dialect("m", "completions", markers=MARKERS)
WEATHER = {"name": "weather", "parameters": {"type": "object", "properties": {}}}


def read(payload, request=None, dialect=CHAT):
    return generated(payload, request or Generate("q"), dialect)


def test_a_greedy_chat_request_holds_no_more_than_it_needs():
    """Plain text is what the user says."""
    assert generation_body(Generate("q", max_tokens=9), CHAT) == {
        "model": "m",
        "messages": [{"role": "user", "content": "q"}],
        "temperature": 0.0,
        "max_tokens": 9,
    }


def test_sampling_is_mapped_and_seeds_fit_into_31_bits():
    """All of a sampled request's settings arrive under the API's names."""
    request = Generate(
        ({"role": "system", "content": "s"}, {"role": "user", "content": "q"}),
        max_tokens=9,
        stop=("a", "b", "c", "d", "e"),
        temperature=0.7,
        top_p=0.9,
        top_k=40,
        seed=2**62 + 5,
        extra={"response_format": {"type": "json_object"}},
    )
    body = generation_body(request, CHAT)
    assert body["messages"][0] == {"role": "system", "content": "s"}
    assert {**body, "messages": 0, "model": 0} == {
        "model": 0,
        "messages": 0,
        "max_tokens": 9,
        "stop": ["a", "b", "c", "d", "e"],
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 40,
        "seed": 5,
        "response_format": {"type": "json_object"},
    }


def test_a_dialect_renames_adds_and_omits():
    """Newer OpenAI models take another name for the limit and no temperature."""
    dialect = Dialect(
        "m",
        "chat",
        omit=frozenset({"temperature"}),
        max_tokens_field="max_completion_tokens",
        max_stops=1,
        extra={"chat_template_kwargs": {"enable_thinking": False}},
    )
    body = generation_body(Generate("q", max_tokens=5, stop=("a", "b")), dialect)
    assert body["max_completion_tokens"] == 5
    assert body["stop"] == ["a"]
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert not {"temperature", "max_tokens"} & set(body)


def test_tools_go_natively_in_the_form_of_the_api():
    """A bare function is wrapped, a wrapped one is left."""
    wrapped = {"type": "function", "function": WEATHER}
    body = generation_body(Generate("q", tools=(WEATHER, wrapped)), CHAT)
    assert body["tools"] == [wrapped, wrapped]


def test_the_assistants_last_message_is_continued():
    """A prefilled answer is not answered with a new turn."""
    prompt = ({"role": "user", "content": "q"}, {"role": "assistant", "content": "The"})
    body = generation_body(Generate(prompt), CHAT)
    assert body["continue_final_message"] is True
    assert body["add_generation_prompt"] is False


def test_completions_take_text_and_refuse_messages_and_tools():
    """What the API cannot carry is a clear error, not a failure of every sample."""
    assert generation_body(Generate("q"), TEXT)["prompt"] == "q"
    with pytest.raises(ConfigError, match="api=chat"):
        generation_body(Generate(({"role": "user", "content": "q"},)), TEXT)
    with pytest.raises(ConfigError, match="api=chat"):
        generation_body(Generate("q", tools=(WEATHER,)), TEXT)


def test_stops_that_the_server_left_are_cut_here():
    """The first occurrence of any of them ends the answer."""
    payload = chat("one\n\ntwo END three")
    payload["choices"][0]["finish_reason"] = "length"
    got = read(payload, Generate("q", stop=("END", "\n\n")))
    assert (got.text, got.finish) == ("one", "stop")


def test_reasoning_is_taken_out_of_the_text_and_of_its_own_field():
    """Both ways in which servers give it."""
    inside = read(chat("<think>hm</think>\nB"))
    apart = read(chat("B", reasoning_content="hm"))
    newer = read(chat("B", reasoning="hm"))
    assert inside == apart == newer == Generated("B", reasoning="hm", tokens=3, prompt_tokens=7)


def test_a_budget_spent_on_thinking_is_a_truncated_answer():
    """Empty text with finish `length`, whether the thinking stands apart or in the text."""
    apart = read(chat(None, finish="length", reasoning_content="hm"))
    inside = read(chat("<think>hm", finish="length"))
    want = Generated("", finish="length", reasoning="hm", tokens=3, prompt_tokens=7)
    assert apart == inside == want


CALL = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


@pytest.mark.parametrize("finish", ["tool_calls", "stop", None])
def test_tool_calls_are_an_answer_without_text(finish):
    """Some servers say `stop` beside a call."""
    got = read(chat(None, finish=finish, tool_calls=[CALL]))
    assert (got.text, got.finish, got.tool_calls) == ("", "tool_calls", (CALL,))


def test_the_older_form_of_a_call_is_read():
    """`function_call` holds one call without an id."""
    got = read(chat(None, finish="function_call", function_call=CALL["function"]))
    assert got.tool_calls == ({"type": "function", "function": CALL["function"]},)


def test_content_in_parts_is_joined():
    """Parts without text count as nothing."""
    parts = [{"type": "text", "text": "a"}, {"type": "x"}, {"type": "text", "text": "b"}]
    assert read(chat(parts)).text == "ab"


def test_completions_are_read():
    """The text of the first choice, and no usage where the server gives none."""
    payload = {"choices": [{"index": 0, "text": " B", "finish_reason": "stop"}]}
    assert read(payload, dialect=TEXT) == Generated(" B")
