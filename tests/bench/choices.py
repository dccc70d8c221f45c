"""Five-shot choices for the benchmarks: their files, and the requests that each side builds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xpe.data.source import Source
from xpe.tasks.multiple_choice import MultipleChoice

SHIPPED = Path(__file__).parents[2] / "xpe" / "data" / "shipped"
TEXT = (
    "{{ question }}\n{% for choice in choices %}{{ 'ABCDEFGH'[loop.index0] }}. {{ choice }}\n"
    "{% endfor %}答案："
)
CHOICES = {
    "letters": "{{ 'ABCDEFGH'[:choices | length] | list }}",
    "names": "choices",
    "capitals": "{{ 'ABCDEFGH'[:choices | length] | list }}",
}
"""The continuations of each kind; capitals have four, the others five."""
SHOTS = 5


@dataclass
class Question:
    """A context with its choices."""

    context: str
    choices: tuple[str, ...]


def write(folder: Path) -> None:
    """Lay out the questions, and the examples before each of them."""
    lines = (SHIPPED / "tcm_choice.jsonl").read_text(encoding="utf-8").splitlines()
    five = [line for line in lines if len(json.loads(line)["choices"]) == 5]
    rows = (SHIPPED / "capitals_en.jsonl").read_text(encoding="utf-8").splitlines()
    capitals = [
        json.dumps({"question": f"What is the capital of {row['country']}?", **row})
        for row in map(json.loads, rows)
    ]
    tests = {"letters": five, "names": five, "capitals": capitals[SHOTS:]}
    examples = (SHIPPED / "tcm_choice_fewshot.jsonl").read_text(encoding="utf-8").splitlines()
    trains = {"letters": examples, "names": examples, "capitals": capitals[:SHOTS]}
    for split, kinds in (("test", tests), ("train", trains)):
        for kind, docs in kinds.items():
            text = "\n".join(docs) + "\n"
            (folder / f"{kind}.{split}.jsonl").write_text(text, encoding="utf-8")


def questions(folder: Path, kind: str, size: int) -> list[Question]:
    """Build the contexts of a task by xpe."""
    task = MultipleChoice(
        name=kind,
        data=Source(path=str(folder / f"{kind}.{{split}}.jsonl"), split="test"),
        fewshot={"split": "train", "sampler": "first_n"},  # type: ignore[arg-type]
        doc_to_text=TEXT,
        doc_to_choice=CHOICES[kind],
        doc_to_target="answer",
        target_delimiter="",
        num_fewshot=SHOTS,
        limit=size,
        compat="lm_eval",
    )
    return [
        Question(str(request.context), request.continuations)
        for sample in task.samples()
        for request in task.requests(sample)
    ]


def instances(folder: Path, kind: str, size: int) -> list[Any]:
    """Build the requests of the same task by lm-eval."""
    from lm_eval.api.task import ConfigurableTask

    files = {split: str(folder / f"{kind}.{split}.jsonl") for split in ("test", "train")}
    task = ConfigurableTask(
        config={
            "task": kind,
            "output_type": "multiple_choice",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": files},
            "test_split": "test",
            "fewshot_split": "train",
            "fewshot_config": {"sampler": "first_n"},
            "doc_to_text": TEXT,
            "doc_to_choice": CHOICES[kind],
            "doc_to_target": "answer",
            "target_delimiter": "",
        }
    )
    task.set_config(key="num_fewshot", value=SHOTS)
    task.set_fewshot_seed(1234)
    task.build_all_requests(limit=size)
    built: list[Any] = task.instances
    return built


def picks(asked: list[Question], values: list[float]) -> list[int]:
    """Return the likeliest choice of each question."""
    found, at = [], 0
    for one in asked:
        part = values[at : at + len(one.choices)]
        found.append(part.index(max(part)))
        at += len(one.choices)
    return found
