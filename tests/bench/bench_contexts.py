"""Building the prompts of 1,000 documents with 5 examples each, beside lm-evaluation-harness.

The documents are loaded and the task is built outside of the clock, on both sides. The prompts
are compared first. Prints one line: medians of 5 alternating runs, and their ratio.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xpe.data.source import Source
from xpe.tasks.multiple_choice import MultipleChoice

N_DOCS, SHOTS, RUNS = 1000, 5, 5
TEXT = (
    "Question: {{ q }}\n"
    "{% for c in choices %}{{ 'ABCD'[loop.index0] }}. {{ c }}\n{% endfor %}Answer:"
)


def documents(first: int, size: int) -> str:
    rows = (
        {
            "q": f"Which of these is number {i}?",
            "choices": [str(i + k) for k in range(4)],
            "gold": i % 4,
        }
        for i in range(first, first + size)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def ours(folder: Path) -> tuple[Callable[[], None], Callable[[], list[tuple[int, str, str]]]]:
    made: list[MultipleChoice] = []

    def ready() -> None:
        task = MultipleChoice(
            name="t",
            data=Source(path=str(folder / "{split}.jsonl"), split="test"),
            fewshot={"split": "train"},  # type: ignore[arg-type]
            doc_to_text=TEXT,
            doc_to_choice="{{ ['A', 'B', 'C', 'D'] }}",
            doc_to_target="{{ gold }}",
            num_fewshot=SHOTS,
            compat="lm_eval",
        )
        _ = task.documents, task.pool
        made[:] = [task]

    def build() -> list[tuple[int, str, str]]:
        return [
            (sample.doc_id, str(request.context), continuation)
            for sample in made[0].samples()
            for request in made[0].requests(sample)
            for continuation in request.continuations
        ]

    return ready, build


def theirs(folder: Path) -> tuple[Callable[[], None], Callable[[], list[tuple[int, str, str]]]]:
    from lm_eval.api.task import ConfigurableTask

    made: list[Any] = []

    def ready() -> None:
        files = {split: str(folder / f"{split}.jsonl") for split in ("test", "train")}
        task = ConfigurableTask(
            config={
                "task": "t",
                "output_type": "multiple_choice",
                "dataset_path": "json",
                "dataset_kwargs": {"data_files": files},
                "test_split": "test",
                "fewshot_split": "train",
                "doc_to_text": TEXT,
                "doc_to_choice": "{{ ['A', 'B', 'C', 'D'] }}",
                "doc_to_target": "{{ gold }}",
            }
        )
        task.set_config(key="num_fewshot", value=SHOTS)
        task.set_fewshot_seed(1234)
        made[:] = [task]

    def build() -> list[tuple[int, str, str]]:
        made[0].build_all_requests()
        return [(request.doc_id, *request.args) for request in made[0].instances]

    return ready, build


def seconds(side: tuple[Callable[[], None], Callable[[], Any]]) -> tuple[float, Any]:
    ready, build = side
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stderr(nothing):
        ready()
        start = time.perf_counter()
        built = build()
        return time.perf_counter() - start, built


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for split, first, size in (("test", 0, N_DOCS), ("train", 100_000, 500)):
            (folder / f"{split}.jsonl").write_text(documents(first, size), encoding="utf-8")
        sides = ours(folder), theirs(folder)
        if seconds(sides[0])[1] != seconds(sides[1])[1]:
            sys.exit("the requests differ")
        times = [(seconds(sides[0])[0], seconds(sides[1])[0]) for _ in range(RUNS)]
    mine, other = (statistics.median(side) for side in zip(*times, strict=True))
    print(
        f"contexts, {N_DOCS} documents, {SHOTS} examples: xpe {mine:.3f} s, "
        f"lm-eval {other:.3f} s, {other / mine:.0f} times as fast (requests equal)"
    )


if __name__ == "__main__":
    main()
