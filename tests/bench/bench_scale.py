"""Time and memory a sample from 100 to 20,000 samples: replayed answers, all sinks on.

`python bench_scale.py [SIZES …]` prints a Markdown table, and the two figures: how much more a
sample takes in the largest run than in the smallest, and how memory grows from one to the other.
Each size runs in a process of its own, which has run a few samples before the clock starts; what
a run of so few takes then is taken off. Times are medians of three runs.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FEW, RUNS = 20, 3
TASK = """\
# @package task.scale
kind: generation
data: {path: "questions.jsonl"}
doc_to_text: "{{ question }}"
doc_to_target: answer
answer_type: number
evaluators: {accuracy: {}}
"""


def write(folder: Path, size: int) -> None:
    """Write questions, recorded answers of about 1 KB, and the task."""
    (folder / "conf" / "task").mkdir(parents=True)
    (folder / "conf" / "task" / "scale.yaml").write_text(TASK)
    working = "We add the numbers one by one and keep the sum. " * 20
    with (
        (folder / "questions.jsonl").open("w") as questions,
        (folder / "said.jsonl").open("w") as said,
    ):
        for i in range(size):
            question = {"question": f"What is {i} plus {i}?", "answer": 2 * i}
            questions.write(json.dumps(question) + "\n")
            answer = {"id": i, "prediction": f"{working}The answer is {2 * i + i % 3 // 2}."}
            said.write(json.dumps(answer) + "\n")


def run_here(folder: Path) -> float:
    """Run the task of a folder; return seconds."""
    from xpe.config import compose
    from xpe.launch import run

    os.chdir(folder)
    started = time.perf_counter()
    run(
        compose(
            ["task=scale", "model=replay", "model.path=said.jsonl", "model.by=id", "fresh=true"]
        )
    )
    return time.perf_counter() - started


def peak() -> int:
    """Return the peak of this process's memory in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def child(folder: Path, size: int) -> None:
    """Print the seconds of a sample, and peak memory before and after."""
    write(folder / "few", FEW)
    write(folder / "all", size)
    run_here(folder / "few")
    fixed = statistics.median(run_here(folder / "few") for _ in range(RUNS))
    before = peak()
    seconds = run_here(folder / "all")
    grown = peak() - before
    seconds = statistics.median([seconds, *(run_here(folder / "all") for _ in range(RUNS - 1))])
    each = (seconds - fixed) / (size - FEW)
    print(json.dumps({"seconds": seconds, "each": each, "grown": grown}))


def measured(size: int) -> dict[str, float]:
    """Run one size in a folder and a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, "--child", name, str(size)],
            env=os.environ | {"XPE_RUNS": str(Path(name) / "runs")},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(sizes: list[int]) -> None:
    """Measure and print."""
    found = {}
    print(
        "| samples | seconds | ms a sample | memory beyond that of a small run |\n|---|---|---|---|"
    )
    for size in sizes:
        one = found[size] = measured(size)
        each, grown = 1000 * one["each"], one["grown"] / 1e6
        print(f"| {size:,} | {one['seconds']:.1f} | {each:.2f} | {grown:.1f} MB |", flush=True)
    small, large = min(found), max(found)
    if small < large:
        slower = found[large]["each"] / found[small]["each"]
        slope = (found[large]["grown"] - found[small]["grown"]) / (large - small) / 1000
        print(f"\ntime a sample, {large:,} against {small:,} samples: {slower:.2f} (flat: about 1)")
        print(f"memory from {small:,} to {large:,} samples: {slope:.1f} KB a sample (at most 10)")


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main([int(word) for word in sys.argv[1:]] or [100, 1000, 5000, 20000])
