"""The examples of docs/lm_eval.md: the task file, its data, and the commands that run it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from xpe.cli import COMMANDS, main
from xpe.config import compose
from xpe.report import read_results

GUIDE = Path(__file__).resolve().parent.parent.parent / "docs" / "lm_eval.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(GUIDE.read_text("utf-8")) if found == kind]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_capital.yaml").write_text(blocks("yaml")[0], "utf-8")
    (tmp_path / "capitals.jsonl").write_text(blocks("json")[0], "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")


@pytest.mark.parametrize("line", blocks("sh")[0].splitlines())
def test_commands(line: str) -> None:
    """Each composes, finds the documents and asks for them."""
    words = [*shlex.split(line)[1:], "task.lm_eval.include_defaults=false", "tracking=none"]
    (task,) = compose(words).leaves
    task.check()
    assert len(task.samples()) == (2 if "limit=2" in line else 3)


@pytest.mark.model
def test_shards() -> None:
    """Two shards run, and are merged into a run of all documents."""
    for line in blocks("sh")[1].splitlines():
        words = shlex.split(line)[1:]
        assert main([*words, "tracking=none"] if "shard=" in line else words) == 0
    assert read_results(Path("whole"))["n-samples"]["my_capital"]["effective"] == 3


def test_other_commands() -> None:
    """The commands about files exist."""
    for line in blocks("sh")[2].splitlines():
        assert shlex.split(line, comments=True)[1] in COMMANDS
