"""The task `tool_call`: what it asks, with tools beside the prompt or inside it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tool_players import EXAMPLE, REVENUE, SEARCH, GoldPlayer, always, play

from xpe.errors import DataError
from xpe.evaluators.tool_call import ToolCallEvaluator
from xpe.tasks.tool_call import ToolCall
from xpe.tasks.tool_prompt import with_tools

NAMES = ["retrieval_tool", "analyze_revenue_by_type"]


@pytest.fixture
def task_of(tmp_path: Path):
    """Write records to a file and return the task on it."""

    def make(*records: Any, **settings: Any) -> ToolCall:
        path = tmp_path / "talks.json"
        path.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
        return ToolCall(name="talks", data=str(path), **settings)

    return make


def asked_by(task: ToolCall) -> list[Any]:
    return list(next(task.dialogue(task.samples()[0])))


def test_pairs_are_asked_with_all_that_came_before(task_of) -> None:
    """The three documented pairs, in one turn, each with the right messages before it."""
    one, two, three = asked_by(task_of(EXAMPLE))

    assert [m["role"] for m in one.prompt] == ["system", "user"]
    assert one.prompt[1]["content"] == EXAMPLE["conversations"][0]["value"]
    assert [m["role"] for m in two.prompt] == ["system", "user", "assistant", "user"]
    assert json.loads(two.prompt[2]["content"].split("\n")[1]) == SEARCH
    assert EXAMPLE["conversations"][2]["value"] in two.prompt[3]["content"]
    assert len(three.prompt) == 6
    assert json.loads(three.prompt[4]["content"].split("\n")[1]) == REVENUE
    assert (one.max_tokens, one.stop, one.tools) == (512, (), ())


def test_tools_stand_in_the_last_empty_tags(task_of) -> None:
    """The first pair of tags in the documented prompt is a mention; pair 2 has two tools."""
    one, two, _ = asked_by(task_of(EXAMPLE))
    first, second = (ask.prompt[0]["content"] for ask in (one, two))

    assert first.startswith("# 工具\n\n在 <tools></tools> XML 标签")
    lines = first.partition("签名：\n")[2].split("\n")
    assert (lines[0], lines[-1]) == ("<tools>", "</tools>")
    assert json.loads(lines[1])["function"]["name"] == NAMES[0]
    assert [json.loads(line)["function"]["name"] for line in second.split("\n")[-3:-1]] == NAMES


def test_native_tools_and_messages(task_of) -> None:
    """The server gets the tools; calls and results are messages with ids that match."""
    one, two, three = asked_by(task_of(EXAMPLE, tool_style="native"))

    assert [tool["name"] for tool in one.tools] == NAMES[:1]
    assert [tool["name"] for tool in two.tools] == NAMES
    assert one.prompt[0]["content"] == EXAMPLE["system"]
    assert [m["role"] for m in three.prompt[2:]] == ["assistant", "tool", "assistant", "tool"]
    (call,) = three.prompt[2]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == SEARCH["arguments"]
    assert three.prompt[3]["tool_call_id"] == call["id"]
    assert three.prompt[4]["tool_calls"][0]["id"] != call["id"]


def talk(*messages: tuple[str, str]) -> dict[str, Any]:
    return {"conversations": [{"from": w, "value": v} for w, v in messages], "system": "s"}


def test_native_messages_answer_every_call_once(task_of) -> None:
    """Servers refuse a call without a result, and a result without a call."""
    calls = json.dumps([{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}])
    once = json.dumps({"name": "f", "arguments": {}})
    task = task_of(
        talk(
            *(("human", "q"), ("function_call", calls), ("observation", "1"), ("gpt", "a")),
            *(("observation", "2"), ("gpt", "b"), ("human", "r"), ("function_call", once)),
            *(("human", "s"), ("function_call", once), ("observation", "3"), ("observation", "4")),
            ("gpt", "c"),
        ),
        tool_style="native",
    )
    last = asked_by(task)[-1].prompt
    ids = [call["id"] for m in last for call in m.get("tool_calls", ())]

    assert [m["tool_call_id"] for m in last if m["role"] == "tool"] == ids
    assert len(set(ids)) == 4
    assert [m["content"] for m in last if m["role"] == "tool"] == ["1", "1", "", "3\n4"]
    assert "<tool_response>\n2\n</tool_response>" in [m["content"] for m in last]


@pytest.mark.parametrize(
    ("system", "spoken", "expected"),
    [
        ("", "你好", "# 工具"),
        ("Be kind.", "hello", "Be kind.\n\n# Tools"),
        ("<tools>\n  </tools> end", "hello", "<tools>\n{"),
    ],
)
def test_a_block_is_added_where_there_are_no_tags(system: str, spoken: str, expected: str) -> None:
    """In the language of the conversation, with the form of a call."""
    tool = {"name": "f", "description": "d", "parameters": {}}
    made = with_tools(system, [tool], spoken)

    assert made.startswith(expected)
    assert '"name": "f"' in made
    assert with_tools(system, [], spoken) == system


def test_tools_that_stand_in_the_prompt_are_not_repeated() -> None:
    """Only those that the prompt does not name are added."""
    tools = [{"name": name, "description": "", "parameters": {}} for name in ("f", "g")]
    system = '<tools>{"name": "f"}</tools>'

    assert with_tools(system, tools[:1], "") == system
    assert with_tools(system, tools, "").count('"name": "f"') == 1
    assert '"name": "g"' in with_tools(system, tools, "")


def test_skipped_records_are_counted_and_said(task_of, caplog) -> None:
    """`on_error=skip` leaves records out; without it the run stops at the first."""
    broken = {"conversations": [{"from": "nobody", "value": "x"}], "system": "s"}
    with caplog.at_level(logging.WARNING):
        task = task_of(EXAMPLE, broken, EXAMPLE, on_error="skip")
        assert [sample.doc_id for sample in task.samples()] == [0, 2]
    assert task.n_original == 3
    assert "1 records are left out" in caplog.text
    assert "record 2, message 1" in caplog.text
    with pytest.raises(DataError, match="record 2, message 1"):
        task_of(EXAMPLE, broken).samples()
    with pytest.raises(DataError, match="no record can be read"):
        task_of(broken, on_error="skip").samples()


def test_a_file_without_pairs_is_refused(task_of) -> None:
    """There would be nothing to ask."""
    with pytest.raises(DataError, match="no pair in 1 records"):
        task_of(talk(("human", "q"), ("gpt", "a"))).check()


def test_limit_and_ids(task_of) -> None:
    """They choose records by their place in the file."""
    assert [s.doc_id for s in task_of(*[EXAMPLE] * 4, limit=2).samples()] == [0, 1]
    assert [s.doc_id for s in task_of(*[EXAMPLE] * 4, sample_ids=(3,)).samples()] == [3]


def test_shipped_conversations_replay_to_full_marks() -> None:
    """44 records, 30 of them with all three pairs; the embedded search finds every tool."""
    from xpe.models.bm25 import Bm25

    search = Bm25(data="shipped:tool_call.json")
    task = ToolCall(name="t", data="shipped:tool_call.json", recall=True)
    task.check()
    kinds = [{pair["kind"] for pair in s.reference["pairs"]} for s in task.samples()]
    found, _ = play(
        task, ToolCallEvaluator(retrieves=True), model=GoldPlayer(task), retrieval=search
    )
    values = {name: estimate.value for name, estimate in found.items()}

    assert len(kinds) == 44
    assert sum(kind == {1, 2, 3} for kind in kinds) == 30
    assert len(search.catalogue) == 67
    for name, value in values.items():
        if name.endswith((".accuracy", ".precision@1", "recall_rate")):
            assert value == 1.0, name
    assert values["recall_metrics.total_pairs"] == values["recall_metrics.recall@5_1"] == 32
    assert values["recall_metrics.recall@5_0"] == 0
    assert (values["pair1.total"], values["pair2.total"], values["pair3.total"]) == (46, 34, 46)
    assert values["pair2_consider_recall.total"] == 32
    assert values["overall.total"] == values["total_pairs"] == 126
    assert values["total_conversations"] == 44


@pytest.mark.shared
def test_public_conversations_replay_to_full_marks(shared_data: Path, caplog) -> None:
    """300 records without a system prompt: 216 calls; two results follow none, which is said."""
    path = shared_data / "data" / "toolcall_zh" / "glaive_toolcall_zh_demo.json"
    with caplog.at_level(logging.WARNING):
        task = ToolCall(name="zh", data=str(path), default_system="你是助手。", recall=True)
        task.check()
    odd = [i for i, made in task.conversations.items() if made.results_without_calls]
    found, _ = play(
        task, ToolCallEvaluator(retrieves=True), model=GoldPlayer(task), retrieval=always()
    )
    values = {name: estimate.value for name, estimate in found.items()}

    assert odd == [197, 293]
    assert "2 of 300 records have a result without a call before it" in caplog.text
    assert ": 197, 293" in caplog.text
    assert values["total_conversations"] == 300
    assert (values["pair1.total"], values["pair2.total"], values["pair3.total"]) == (216, 0, 218)
    assert values["pair1.accuracy"] == values["pair1.precision@1"] == 1.0
    assert values["overall.accuracy"] == 1.0
    assert values["pair2.accuracy"] is None
    assert values["recall_metrics.total_pairs"] == 0
    assert found["recall_metrics.recall_rate"].why == "no samples"


@pytest.mark.shared
def test_public_conversations_need_a_system_prompt(shared_data: Path) -> None:
    """Strictly read, their first record is wrong, and the error says what to do."""
    path = shared_data / "data" / "toolcall_zh" / "glaive_toolcall_zh_demo.json"

    with pytest.raises(KeyError, match=r"record 1.*no field 'system'.*default_system"):
        ToolCall(name="zh", data=str(path)).check()
