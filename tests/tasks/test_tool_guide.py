"""The guide to tool calls: its commands compose, its record is read as it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from xpe.config import compose
from xpe.evaluators.tool_call import ToolCallEvaluator
from xpe.tasks.tool_call import ToolCall

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "tool_calls.md").read_text("utf-8")
COMMANDS = re.findall(r"^\$ xpe (.*)$", GUIDE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_composes(command: str) -> None:
    """Every name and value in it exists."""
    config = compose(shlex.split(command))

    assert config.judge is not None or "limit=5" in command


def test_the_record_has_three_pairs(tmp_path: Path) -> None:
    """One of each kind."""
    (block,) = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([json.loads(block)]), encoding="utf-8")
    (sample,) = ToolCall(name="t", data=str(path)).samples()

    assert [pair["kind"] for pair in sample.reference["pairs"]] == [1, 2, 3]


def test_every_metric_that_is_named_exists() -> None:
    """Those in the table, and those of several judges."""
    rows = re.findall(r"^\| (`.*?) \|", GUIDE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w.@]+)`", row) if "…" not in name}
    metrics = {m.name for m in ToolCallEvaluator(judges=(True, True), swap=True).metrics}

    assert {name for name in named if "." in name} <= metrics
    assert {"position_kappa", "judge_kappa"} <= metrics
