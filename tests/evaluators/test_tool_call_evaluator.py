"""The documented metrics of tool calls, from end to end with models that are played by hand."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tool_players import (
    EXAMPLE,
    SEARCH,
    Critic,
    GoldPlayer,
    Library,
    always,
    calling,
    plain_calls,
    play,
    ratings,
)

from xpe.evaluators.tool_call import ToolCallEvaluator
from xpe.records import answer_of, record
from xpe.tasks.tool_call import ToolCall
from xpe.types import Asked, Failure, Generated, Reply, Retrieve, Retrieved

DOCUMENTED = [
    "total_conversations",
    "total_pairs",
    "pair1.total",
    "pair1.accuracy",
    "pair1.precision@1",
    "pair2.total",
    "pair2.accuracy",
    "pair2.precision@1",
    "pair2_consider_recall.total",
    "pair2_consider_recall.accuracy",
    "pair2_consider_recall.precision@1",
    "pair3.total",
    "pair3.answer_score",
    "recall_metrics.total_pairs",
    "recall_metrics.recall@5_1",
    "recall_metrics.recall@5_0",
    "recall_metrics.recall_rate",
    "overall.total",
    "overall.accuracy",
    "overall.precision@1",
    "overall.answer_score",
]
RATES = [
    name
    for name in DOCUMENTED
    if name.endswith(("accuracy", "precision@1", "answer_score", "recall_rate"))
]
TOOL = "analyze_revenue_by_type"


@pytest.fixture
def task_of(tmp_path: Path):
    def make(*records: Any, **settings: Any) -> ToolCall:
        path = tmp_path / "talks.json"
        path.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
        return ToolCall(name="talks", data=str(path), recall=True, **settings)

    return make


def direct() -> dict[str, Any]:
    call = {"name": "f", "arguments": {"x": 1}}
    said = [("human", "q"), ("function_call", json.dumps(call)), ("observation", "1"), ("gpt", "a")]
    return {"conversations": [{"from": w, "value": v} for w, v in said], "system": "s"}


JUDGED = ToolCallEvaluator(judges=(True,), retrieves=True)


@pytest.mark.parametrize("style", ["prompt", "native"])
def test_a_model_that_answers_right_has_full_marks(task_of, style: str) -> None:
    """1.0 in every documented rate, whether calls come natively or as text."""
    task = task_of(EXAMPLE, EXAMPLE, direct(), tool_style=style)
    found, seen = play(
        task,
        JUDGED,
        model=GoldPlayer(task, native=style == "native"),
        retrieval=always("x", TOOL),
        judge=Critic(lambda _: ratings(10, 10, 10, 10)),
    )

    assert set(DOCUMENTED) <= set(found)
    assert {name: found[name].value for name in RATES} == dict.fromkeys(RATES, 1.0)
    assert all(found[name].ci == (1.0, 1.0) for name in RATES if found[name].count > 1)
    assert not any(estimate.partial for estimate in found.values())
    assert found["pair1.total"].value == 3.0
    assert found["pair1.total"].ci is None
    assert found["pair1.total"].higher_is_better is None
    assert len(seen.answers) == 3


def test_calls_as_xml_have_full_marks(task_of) -> None:
    """Qwen3-Coder's form; the retrieval service gets numbers as numbers, whatever the form."""

    def as_xml(pair: Any, _: Asked) -> Reply | None:
        if pair["kind"] == 3:
            return None
        (call,) = pair["calls"]
        inner = "".join(
            f"<parameter={key}>\n{value}\n</parameter>\n"
            for key, value in call["arguments"].items()
        )
        return Generated(
            f"<tool_call>\n<function={call['name']}>\n{inner}</function>\n</tool_call>"
        )

    task, library = task_of(EXAMPLE, direct()), always(TOOL)
    model = GoldPlayer(task, change=as_xml)
    found, _ = play(task, ToolCallEvaluator(retrieves=True), model=model, retrieval=library)

    assert found["overall.accuracy"].value == 1.0
    assert found["recall_metrics.recall_rate"].value == 1.0
    assert library.asked[0].request.arguments == SEARCH["arguments"]


def test_a_model_that_swaps_names_has_no_precision(task_of) -> None:
    """Neither name nor arguments count, and nothing is retrieved."""

    def swapped(pair: Any, _: Asked) -> Reply | None:
        if pair["kind"] == 3:
            return None
        return calling([{**call, "name": f"not_{call['name']}"} for call in pair["calls"]])

    task = task_of(EXAMPLE, direct())
    library = always(TOOL)
    model = GoldPlayer(task, change=swapped)
    found, _ = play(task, ToolCallEvaluator(retrieves=True), model=model, retrieval=library)

    for name in ("pair1", "pair2", "overall"):
        assert found[f"{name}.accuracy"].value == 0.0
        assert found[f"{name}.precision@1"].value == 0.0
    assert found["recall_metrics.total_pairs"].value == 0.0
    assert found["recall_metrics.recall_rate"].value is None
    assert found["pair2_consider_recall.accuracy"].value is None
    assert library.asked == []


def mixture(pair: Any, asked: Asked) -> Reply | None:
    """Conversations 0, 1, 3 are the documented one, 2 calls f(x=1)."""
    match asked.origin.doc_id, pair["kind"]:
        case 0, 1:
            call = copy.deepcopy(pair["calls"][0])
            call["arguments"]["query"] = "收入"
            return calling([call])
        case 0, 2:
            call = copy.deepcopy(pair["calls"][0])
            call["arguments"]["end_date"] = "2025-08-30"
            return calling([call])
        case 1, 2:
            return calling([{"name": "g", "arguments": {}}])
        case 1, 3:
            return Failure("server", "500")
        case 2, 1:
            return Generated('<tool_call>{"name": "f", </tool_call>')
        case 3, 1:
            return Failure("timeout", "no answer")
    return None


def found_by(request: Retrieve) -> Reply:
    return Retrieved((TOOL,) if request.query == "收入" else ("a", "b", "c", "d", "e", TOOL))


def mixed_judge(asked: Asked) -> Reply | str:
    return {0: ratings(8, 6, 10, 8), 2: ratings(10, 10, 10, 10)}.get(
        asked.origin.doc_id, "I like it"
    )


def test_a_mixture_by_hand(task_of) -> None:
    """Every documented number, worked out on paper; failures leave no denominator in silence."""
    task = task_of(EXAMPLE, EXAMPLE, direct(), EXAMPLE)
    library = Library(found_by)
    found, seen = play(
        task,
        JUDGED,
        model=GoldPlayer(task, change=mixture),
        retrieval=library,
        judge=Critic(mixed_judge),
    )
    expected = {
        "total_conversations": 4,
        "total_pairs": 11,
        "pair1.total": 4,
        "pair1.accuracy": (0.875 + 1 + 0) / 3,
        "pair1.precision@1": 2 / 3,
        "pair2.total": 3,
        "pair2.accuracy": (0.75 + 0 + 1) / 3,
        "pair2.precision@1": 2 / 3,
        "pair2_consider_recall.total": 1,
        "pair2_consider_recall.accuracy": 0.75,
        "pair2_consider_recall.precision@1": 1.0,
        "pair3.total": 4,
        "pair3.answer_score": (0.8 + 1.0) / 2,
        "pair3.content_accuracy": 0.9,
        "pair3.completeness": 0.8,
        "recall_metrics.total_pairs": 2,
        "recall_metrics.recall@5_1": 1,
        "recall_metrics.recall@5_0": 1,
        "recall_metrics.recall_rate": 0.5,
        "overall.total": 11,
        "overall.accuracy": (0.875 + 1 + 0 + 0.75 + 0 + 1) / 6,
        "overall.precision@1": 4 / 6,
        "overall.answer_score": 0.9,
    }
    assert {name: found[name].value for name in expected} == pytest.approx(expected)
    failed = {"pair1.accuracy": 1, "pair2.accuracy": 0, "pair3.answer_score": 2}
    assert {name: found[name].n_failed for name in failed} == failed
    assert found["overall.accuracy"].n_failed == 1
    assert found["pair1.accuracy"].partial
    assert not found["pair2.accuracy"].partial
    assert found["pair1.accuracy"].n_unparsed == 1
    assert [one.request.arguments["top_k"] for one in library.asked] == [5, 5]
    assert [one.request.query for one in library.asked] == ["收入", "收入分析"]
    told = {a.sample.doc_id: JUDGED.measure(a)["pairs"] for a in seen.answers}
    assert told[3][0] == {"kind": 1, "failed": "timeout"}
    assert [pair.get("recall") for pair in told[0]] == [1, None, None]


def test_the_sample_file_is_enough_to_score_again(task_of) -> None:
    """Requests, replies and reference come back from JSON, and so do all columns."""
    task = task_of(EXAMPLE, EXAMPLE, direct(), EXAMPLE)
    models = {"model": GoldPlayer(task, change=mixture), "retrieval": Library(found_by)}
    _, seen = play(task, JUDGED, judge=Critic(mixed_judge), **models)
    for answer in seen.answers:
        line = json.loads(json.dumps(record(answer, {})))
        assert JUDGED.measure(answer_of(line, "talks")) == JUDGED.measure(answer)


@pytest.mark.parametrize("query", [None, "", "  ", 7, ["x"]])
def test_recall_needs_a_valid_query(task_of, query: Any) -> None:
    """The right tool with nothing to look for asks nobody."""

    def change(pair: Any, _: Asked) -> Reply | None:
        if pair["kind"] != 1:
            return None
        return calling([{"name": "retrieval_tool", "arguments": {"query": query}}])

    task, library = task_of(EXAMPLE), always(TOOL)
    model = GoldPlayer(task, change=change)
    found, _ = play(task, ToolCallEvaluator(retrieves=True), model=model, retrieval=library)

    assert library.asked == []
    assert found["pair1.precision@1"].value == 1.0
    assert found["recall_metrics.total_pairs"].value == 0.0


def test_a_retrieval_that_fails_is_counted(task_of) -> None:
    """It is neither 0 nor gone, and the numbers of calls are whole."""
    task = task_of(EXAMPLE, EXAMPLE)
    broken = Library(lambda _: Failure("server", "500"))
    evaluator = ToolCallEvaluator(retrieves=True)
    found, _ = play(task, evaluator, model=GoldPlayer(task), retrieval=broken)

    assert found["recall_metrics.recall_rate"].value is None
    assert found["recall_metrics.recall_rate"].n_failed == 2
    assert found["recall_metrics.recall_rate"].partial
    assert not found["pair1.accuracy"].partial


def test_without_judge_and_retrieval_their_metrics_say_why(task_of) -> None:
    """The numbers are absent with a note; the rest is there."""
    task = task_of(EXAMPLE, direct())
    silent = ToolCall(**{**{f: getattr(task, f) for f in ("name", "data")}, "recall": False})
    found, _ = play(silent, ToolCallEvaluator(), model=GoldPlayer(silent))

    assert found["pair3.answer_score"].value is None
    assert found["pair3.answer_score"].why == "no judge"
    assert found["overall.answer_score"].why == "no judge"
    assert found["recall_metrics.recall_rate"].why == "no retrieval"
    assert found["pair2_consider_recall.accuracy"].why == "no retrieval"
    assert found["overall.accuracy"].value == 1.0
    assert not any(estimate.partial for estimate in found.values())


def test_an_unreadable_gold_is_invalid(task_of) -> None:
    """The content of calls is not checked when the file is read; such a pair is not scored."""
    broken = direct()
    broken["conversations"][1]["value"] = "call f"
    task = task_of(direct(), broken)
    found, _ = play(task, ToolCallEvaluator(), model=GoldPlayer(task))

    assert found["pair1.accuracy"].value == 1.0
    assert found["pair1.total"].value == 2.0
    assert found["pair1.accuracy"].n_invalid == 1
    assert found["pair1.accuracy"].partial


def test_a_cut_reply_is_marked(task_of) -> None:
    """It is scored as it stands."""
    task = task_of(direct())
    model = GoldPlayer(task, change=lambda *_: Generated("{", finish="length"))
    found, _ = play(task, ToolCallEvaluator(), model=model)

    assert found["pair1.accuracy"].n_truncated == 1
    assert found["pair1.accuracy"].value == 0.0


def test_an_answer_that_is_a_call_goes_to_the_judge(task_of) -> None:
    """It is not empty; what it is worth is the judge's to say. An empty one is 0 unasked."""
    task, critic = task_of(direct()), Critic(lambda _: ratings(1, 1, 1, 1))
    model = GoldPlayer(
        task, change=lambda *_: calling([{"name": "f", "arguments": {}}], native=True)
    )
    play(task, ToolCallEvaluator(judges=(False,)), model=model, judge=critic)
    (asked,) = critic.asked
    assert '"name": "f"' in asked.request.prompt[1]["content"]

    model = GoldPlayer(task, change=lambda *_: Generated(" \n"))
    critic = Critic(lambda _: ratings(9, 9, 9, 9))
    found, _ = play(task, ToolCallEvaluator(judges=(False,)), model=model, judge=critic)
    assert critic.asked == []
    assert found["pair3.answer_score"].value == 0.0
    assert found["pair3.answer_score"].n_unparsed == 1


def test_calls_are_clustered_by_conversation(task_of) -> None:
    """Two pairs of one conversation are one unit: one conversation gives no error bar."""
    task = task_of(EXAMPLE)
    found, _ = play(task, ToolCallEvaluator(), model=GoldPlayer(task), retrieval=always(TOOL))

    assert found["overall.accuracy"].why == "n=1"
    assert found["overall.accuracy"].ci is None


@pytest.mark.shared
@pytest.mark.parametrize("name", ["BFCL_v4_simple_python", "BFCL_v4_parallel_multiple"])
def test_bfcl_files_replay_to_full_marks(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Through the whole task; two records only without optional arguments that no tool defines."""
    folder = shared_data / "data" / "bfcl_v4"
    asked, right = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (folder / f"{name}.json", folder / "possible_answer" / f"{name}.json")
    )
    records = [
        {
            "conversations": [
                {"from": "human", "value": one["question"][0][0]["content"]},
                {"from": "function_call", "value": answer["ground_truth"]},
            ],
            "system": "",
            "tools": one["function"],
        }
        for one, answer in zip(asked, right, strict=True)
    ]
    path = tmp_path / "bfcl.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    task = ToolCall(name="bfcl", data=str(path))
    model = GoldPlayer(task, change=lambda pair, _: calling(plain_calls(pair["calls"])))
    found, seen = play(task, ToolCallEvaluator(argument_match="bfcl"), model=model)
    rows = {
        a.sample.doc_id: ToolCallEvaluator(argument_match="bfcl").measure(a) for a in seen.answers
    }
    wrong = {asked[doc_id]["id"] for doc_id, row in rows.items() if row["pair1_score"] < 1}

    assert found["pair1.total"].value == len(records)
    assert found["pair1.precision@1"].value == 1.0
    assert wrong <= {"parallel_multiple_12", "parallel_multiple_26"}
    needed = GoldPlayer(
        task, change=lambda pair, _: calling(plain_calls(pair["calls"], optional=False))
    )
    found, _ = play(task, ToolCallEvaluator(argument_match="bfcl"), model=needed)
    assert found["pair1.accuracy"].value == 1.0
