"""Time and memory a sample from 100 to 20,000 samples: replayed answers, all sinks on.

`python bench_scale.py [SIZES …]` prints a Markdown table. Each size runs in a process of its own;
what starting up costs is measured by a run of one sample and taken off.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def child() -> None:
    """Run the task in this folder; print seconds and peak memory in bytes."""
    from xpe.config import compose
    from xpe.launch import run

    started = time.perf_counter()
    words = ["task=scale", "model=replay", "model.path=said.jsonl", "model.by=id"]
    run(compose(words))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": time.perf_counter() - started, "peak": peak}))


def measured(size: int) -> tuple[float, int]:
    """Run one size in a folder and a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), size)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--child"],
            cwd=name, env=os.environ | {"XPE_RUNS": str(Path(name) / "runs")},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    return found["seconds"], found["peak"]


def main(sizes: list[int]) -> None:
    seconds_0, peak_0 = measured(1)
    print("| samples | seconds | ms a sample | memory a sample |\n|---|---|---|---|")
    for size in sizes:
        seconds, peak = measured(size)
        each = 1000 * (seconds - seconds_0) / size
        print(f"| {size:,} | {seconds:.1f} | {each:.2f} | {(peak - peak_0) / size / 1024:.1f} KB |")


if __name__ == "__main__":
    if "--child" in sys.argv:
        child()
    else:
        main([int(word) for word in sys.argv[1:]] or [100, 1000, 5000, 20000])
