"""Whole runs of conversations with tools: a scripted server is model and judge at once."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from xpe.config import compose
from xpe.launch import launch
from xpe.live import LiveMetrics
from xpe.rescore import rescore
from xpe.tasks.tool_call import ToolCall

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "models")]
from fake_server import FakeServer
from tool_script import OUT_OF_ORDER, Script


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run the shipped conversations against a script; gives exit code, folder and calls."""
    monkeypatch.setenv("XPE_CACHE_DIR", str(tmp_path / "cache"))

    def run(name: str, *overrides: str, style: str = "prompt", broken: Any = lambda call: None):
        task = ToolCall(name="tool_call", data="shipped:tool_call.json", tool_style=style)
        with FakeServer(Script([task], broken)) as server:
            monkeypatch.setenv("XPE_TEST_URL", server.url)
            typed = [
                *("experiment=tool_call", "tracking=none", "stats.bootstrap_iters=200"),
                *("model=openai", "model.model=m", "model.api_key_env=null"),
                *("judge=openai", "judge.model=j", "judge.api_key_env=null"),
                *("model.base_url_env=XPE_TEST_URL", "judge.base_url_env=XPE_TEST_URL"),
                *("model.backoff=0.001", "judge.backoff=0.001"),
                *(f"task.tool_call.tool_style={style}", *overrides),
            ]
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            return launch(compose(typed), folder, typed), folder, server.posts

    return run


@pytest.mark.parametrize("style", ["prompt", "native"])
def test_a_whole_run_gives_the_documented_metrics(go, style: str) -> None:
    """126 pairs, 46 verdicts, 32 retrievals; scoring the files again gives the same bytes."""
    code, folder, posts = go("run", style=style)
    found = json.loads((folder / "results.json").read_text())
    metrics = found["results"]["tool_call"]
    live = json.loads((folder / "realtime_metrics.json").read_text())["tasks"]["tool_call"]

    assert code == 0
    assert Counter(call.body["model"] for call in posts) == {"m": 126, "j": 46}
    assert metrics["overall.accuracy"]["value"] == 1.0
    assert metrics["overall.precision@1"]["ci"] == [1.0, 1.0]
    assert metrics["recall_metrics.recall_rate"]["value"] == 1.0
    assert metrics["pair2_consider_recall.accuracy"]["value"] == 1.0
    assert metrics["pair3.answer_score"]["value"] == pytest.approx(0.9)
    assert metrics["overall.total"]["value"] == 126
    assert live["answered"] == 44
    assert live["metrics"]["overall.answer_score"]["value"] == pytest.approx(0.9)
    assert not list(folder.glob("*.sqlite*"))
    again = rescore(folder).tasks["tool_call"].estimates
    assert {name: one.value for name, one in again.items()} == {
        name: one["value"] for name, one in metrics.items()
    }


def test_failures_are_named_and_leave_the_rest_alone(go) -> None:
    """The judge and the model fail now and then; each is counted where it belongs and logged."""

    def broken(call: Any) -> Any:
        text = json.dumps(call.body["messages"], ensure_ascii=False)
        if "NVDA" in text and call.body["model"] == "j":
            return OUT_OF_ORDER
        return "shakshuka" in text and len(call.body["messages"]) == 4 and OUT_OF_ORDER

    code, folder, posts = go("run", broken=broken)
    metrics = json.loads((folder / "results.json").read_text())["results"]["tool_call"]
    log = (folder / "evaluation.log").read_text()

    assert code == 3
    assert metrics["pair3.answer_score"]["n_failed"] == 1
    assert metrics["pair3.answer_score"]["value"] == pytest.approx(0.9)
    assert metrics["pair2.accuracy"]["n_failed"] == 1
    assert metrics["pair2.accuracy"]["value"] == 1.0
    assert metrics["pair1.accuracy"]["n_failed"] == 0
    assert not metrics["pair1.accuracy"]["partial"]
    assert len(posts) == 126 + 46 + 2 * 3
    assert log.count("to judge failed: server") == 1
    assert log.count("to model failed: server") == 1


def test_a_file_of_ones_own(go, tmp_path: Path) -> None:
    """`task.tool_call.data=FILE` is what is evaluated, and what is searched."""
    shipped = ToolCall(name="t", data="shipped:tool_call.json")
    records = [dict(shipped.documents[n]) for n in (0, 1)]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    _, folder, posts = go("run", f"task.tool_call.data={path}")
    found = json.loads((folder / "results.json").read_text())

    assert found["results"]["tool_call"]["total_conversations"]["value"] == 2
    assert found["environment"]["retrieval"]["tools"] == 11
    assert len(posts) == 8


def test_remapped_data_are_what_is_asked_and_searched(tmp_path: Path) -> None:
    """`data.remap` names the local file of a task and of the search among its tools."""
    shipped = ToolCall(name="t", data="shipped:tool_call.json")
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([dict(shipped.documents[0])]), encoding="utf-8")
    typed = ["experiment=tool_call", "task.tool_call.data=some/where", "tracking=none"]
    config = compose([*typed, f"data.remap={{some/where: {path}}}"])

    assert [sample.doc_id for sample in config.task["tool_call"].samples()] == [0]
    assert len(config.retrieval.catalogue) < 20
    assert compose(typed).fingerprint == config.fingerprint


def test_an_interrupted_run_goes_on_where_it_stopped(go, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls, retrievals and verdicts are stored alike; the numbers are those of a whole run."""
    _, undisturbed, all_posts = go("whole", "output=${oc.env:XPE_RUNS}/whole")
    answered = LiveMetrics.answered
    seen = 0

    def interrupted(self: Any, *what: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 20:
            raise KeyboardInterrupt
        answered(self, *what)

    with monkeypatch.context() as patch:
        patch.setattr(LiveMetrics, "answered", interrupted)
        with pytest.raises(KeyboardInterrupt):
            go("halves", "output=${oc.env:XPE_RUNS}/halves")
    _, _, posts = go("halves", "output=${oc.env:XPE_RUNS}/halves")
    runs = undisturbed.parent / "runs"
    whole, halves = (
        json.loads((runs / n / "results.json").read_text()) for n in ("whole", "halves")
    )

    assert json.dumps(whole["results"]) == json.dumps(halves["results"])
    assert 0 < len(posts) < len(all_posts) - 20
