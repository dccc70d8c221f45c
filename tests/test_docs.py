"""Every example in the documents works as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from xpe.cli import COMMANDS, main
from xpe.config import compose

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PACKAGE = re.compile(r"# @package task\.(\w+)")
DATA_PATH = re.compile(r"data: \{path: (\w+\.jsonl)\}")


def blocks(document: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(document.read_text("utf-8")) if kind == language]


def commands() -> list:
    lines = [
        (document.name, line[2:])
        for document in DOCUMENTS
        for text in blocks(document, "console")
        for line in text.splitlines()
        if line.startswith("$ ")
    ]
    return [pytest.param(line, id=f"{name}: {line[:60]}") for name, line in lines]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", commands())
def test_commands(line: str) -> None:
    """Sessions exist; xpe's commands exist, and their settings compose."""
    words = shlex.split(line, comments=True)
    for session in re.findall(r"nox -s (\w+)", line):
        assert f"def {session}(session" in (ROOT / "noxfile.py").read_text()
    if words[0] != "xpe":
        return
    rest = [word for word in words[1:] if word != "-m"]
    if rest and "=" not in rest[0]:
        assert rest[0] in COMMANDS
        if rest[0] in {"ls", "validate", "info"}:
            assert main(rest) == 0
        return
    # Of a sweep, the first cell.
    compose([word if "[" in word else word.partition(",")[0] for word in rest])


def tasks() -> list:
    found = []
    for document in DOCUMENTS:
        data = blocks(document, "json")
        for text in blocks(document, "yaml"):
            name = PACKAGE.match(text)
            if name:
                found.append(pytest.param(name[1], text, data, id=f"{document.name}: {name[1]}"))
    return found


@pytest.mark.parametrize(("name", "text", "data"), tasks())
def test_task_configs(name: str, text: str, data: list[str], here: Path) -> None:
    """A task in a document composes in 20 lines; with its data beside it, it validates."""
    (here / "conf" / "task").mkdir(parents=True)
    (here / "conf" / "task" / f"{name}.yaml").write_text(text, "utf-8")
    path = DATA_PATH.search(text)

    assert len(text.splitlines()) <= 20
    assert name in compose([f"task={name}"]).task
    if path:
        (here / path[1]).write_text(data[0], "utf-8")
        assert main(["validate", f"task={name}"]) == 0


def programs() -> list:
    return [
        pytest.param(text, id=f"{document.name}: {text.splitlines()[0][:40]}")
        for document in DOCUMENTS
        for text in blocks(document, "python")
    ]


@pytest.mark.parametrize("text", programs())
def test_programs(text: str) -> None:
    """Python in a document runs."""
    exec(compile(text, "document", "exec"), {"__name__": "__main__"})
