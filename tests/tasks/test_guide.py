from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import xpe

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
POOL = {
    "question": "Which gas burns?",
    "options": ["hydrogen", "helium", "neon"],
    "explanation": "It is hydrogen.",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which someone follows the guide."""
    tasks = tmp_path / "conf" / "task"
    tasks.mkdir(parents=True)
    for language, block in BLOCKS:
        if language == "yaml" and block.startswith("# @package"):
            (tasks / f"{block.partition('task.')[2].split()[0]}.yaml").write_text(block)
    science = "".join(block for language, block in BLOCKS if language == "json")
    (tmp_path / "science.jsonl").write_text(science)
    (tmp_path / "science_dev.jsonl").write_text(json.dumps(POOL))
    (tmp_path / "sums.csv").write_text("question,answer\n1+1?,2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_ones_own_questions_need_few_lines(folder: Path) -> None:
    """A file of questions and at most 20 lines of YAML are a task."""
    text = (folder / "conf" / "task" / "science.yaml").read_text()
    assert len(text.splitlines()) <= 20
    task = xpe.compose(["task=science"]).task["science"]
    task.check()
    first = task.samples()[0]
    (request,) = task.requests(first)
    assert request.context == "Question: Which gas do plants take in?\nAnswer:"
    assert request.continuations == (" oxygen", " carbon dioxide", " helium")
    assert first.reference["answer"]["value"] == "B"


def test_a_written_answer(folder: Path) -> None:
    """The second task of the guide asks a chat model."""
    task = xpe.compose(["task=sums"]).task["sums"]
    task.check()
    (request,) = task.requests(task.samples()[0])
    assert request.prompt == ({"role": "user", "content": "1+1? Answer with the number only."},)
    assert task.samples()[0].reference == {"answer": {"type": "number", "value": "2"}}


def test_examples_from_a_pool(folder: Path) -> None:
    """The settings of the guide give the explanation of the pool's only example."""
    (shots,) = [block for _, block in BLOCKS if block.startswith("fewshot:")]
    with (folder / "conf" / "task" / "science.yaml").open("a") as file:
        file.write(shots)
    task = xpe.compose(["task=science", "num_fewshot=1"]).task["science"]
    task.check()
    (request,) = task.requests(task.samples()[0])
    assert request.context.startswith("Question: Which gas burns?\nAnswer: It is hydrogen.\n\n")
