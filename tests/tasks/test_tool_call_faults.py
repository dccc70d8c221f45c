"""Whole runs against a server that breaks 5 % of the questions in each of eight ways."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from xpe.config import compose
from xpe.launch import launch
from xpe.tasks.tool_call import ToolCall

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "models")]
from fake_server import Call, FakeServer, Said, chat
from tool_script import Script, content_of

COPIES = 3
TIMEOUT = 2.5
SILENCE = 60
HALF = json.dumps(chat("half an answer")).encode()[:90]
BROKEN = [
    ("rate_limit", Said({"error": "slow"}, status=429, headers={"Retry-After": "0.1"})),
    ("server", Said({"error": {"message": "oops"}}, status=500)),
    ("server", Said(status=503, raw=b"<html>busy</html>")),
    ("connection", Said(reset=True)),
    ("malformed", Said(raw=HALF)),
    ("timeout", Said(chat("late"), delay=SILENCE)),
    ("empty", Said(chat(""))),
    ("length", Said(chat("and so", finish="length"))),
]
"""5 % of each: the kind of the failure, and what the server does."""


@dataclass
class Breaker:
    """Breaks questions by their content: half of them for good, half of them twice."""

    fates: dict[str, str] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def __call__(self, call: Call) -> Said | None:
        content = content_of(call)
        number = int(content, 16) // 1000
        self.asked[content] += 1
        if number % 20 >= len(BROKEN):
            return None
        kind, said = BROKEN[number % 20]
        lasting = number // 20 % 2 == 0 or kind == "length"
        if lasting:
            self.fates[content] = kind
        return said if lasting or call.nth < 2 else None


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The shipped conversations, several times, no two of them the same."""
    shipped = ToolCall(name="t", data="shipped:tool_call.json").documents
    records = []
    for copy in range(COPIES):
        for n in range(len(shipped)):
            record = json.loads(json.dumps(dict(shipped[n])))
            record["conversations"][0]["value"] = f"[{copy}] " + record["conversations"][0]["value"]
            records.append(record)
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: Path):
    """Run the conversations against a server; gives exit code and folder."""
    monkeypatch.setenv("XPE_CACHE_DIR", str(tmp_path / "cache"))

    def go(name: str, broken: Any):
        task = ToolCall(name="tool_call", data=str(data))
        with FakeServer(Script([task], broken, wrong=7)) as server:
            monkeypatch.setenv("XPE_TEST_URL", server.url)
            typed = [
                *("experiment=tool_call", "tracking=none", "stats.bootstrap_iters=0"),
                *(f"task.tool_call.data={data}", "model=openai", "model.model=m"),
                *("judge=openai", "judge.model=j"),
            ]
            for who in ("model", "judge"):
                typed += [f"{who}.base_url_env=XPE_TEST_URL", f"{who}.api_key_env=null"]
                typed += [f"{who}.timeout={TIMEOUT}", f"{who}.backoff=0.01"]
            folder = tmp_path / name
            folder.mkdir()
            return launch(compose(typed), folder, typed), folder

    return go


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """The sample file, line by line."""
    text = (folder / "samples" / "tool_call.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def hits(line: dict[str, Any], kind: int) -> int:
    """How many pairs of this kind the model failed."""
    pairs = line["reference"]["pairs"]
    return sum(
        pair["kind"] == kind and reply["type"] == "failure"
        for pair, reply in zip(pairs, line["replies"], strict=False)
    )


def test_faults_of_every_kind_cost_only_what_they_hit(run) -> None:
    """The run completes, names every failure, and scores all else as if nothing had been."""
    breaker = Breaker()
    calm_code, calm = run("calm", lambda call: None)
    code, folder = run("broken", breaker)
    failed: Counter[str] = Counter()
    cut = 0
    unhurt = 0
    for line, before in zip(lines_of(folder), lines_of(calm), strict=True):
        kinds = [one["kind"] for one in line["replies"] if one["type"] == "failure"]
        lengths = [one.get("finish") for one in line["replies"]].count("length")
        failed.update(kinds)
        cut += lengths
        if not kinds and not lengths:
            unhurt += 1
            assert line == before
    fates = Counter(breaker.fates.values())
    log = (folder / "evaluation.log").read_text(encoding="utf-8")

    assert (calm_code, code) == (0, 3)
    assert set(fates) == {kind for kind, _ in BROKEN}
    assert cut == fates.pop("length")
    assert failed == fates
    assert {kind: log.count(f" failed: {kind}: ") for kind in fates} == fates
    assert unhurt > len(lines_of(folder)) / 4
    assert max(breaker.asked.values()) == 4
    assert all(
        breaker.asked[content] == (1 if kind == "length" else 4)
        for content, kind in breaker.fates.items()
    )
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    usages = [found["environment"]["usage"], found["environment"]["judge"]["usage"]]
    assert sum((Counter(usage["failures"]) for usage in usages), Counter()) == fates
    metrics = found["results"]["tool_call"]
    for kind in (1, 2):
        hit = sum(hits(line, kind) for line in lines_of(folder))
        assert metrics[f"pair{kind}.accuracy"]["n_failed"] == hit > 0
