"""Whole runs with the vLLM engine: its death in mid-run, and sweeps."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from xpe.models.smollm2 import SmolLM2

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

MAIN = """
    import sys
    from xpe.cli import main

    # The engine's processes import this file again.
    if __name__ == "__main__":
        sys.exit(main())
"""


@dataclass
class Job:
    """A run of xpe in a process of its own, and what was seen of it and its children.

    `engines` has, by the pid of each engine, the most bytes that all processes of the run held
    while it was alive, in the order of their start; `at_once` the most engines at one time;
    `below` all processes that the run started, and those that these did.
    """

    home: Path
    process: subprocess.Popen[str]
    engines: dict[int, int] = field(default_factory=dict)
    at_once: int = 0
    below: set[int] = field(default_factory=set)

    def wait(self, until: Callable[[], bool] = lambda: False) -> None:
        """Watch until the run or `until` is over."""
        import psutil

        while self.process.poll() is None and not until():
            with suppress(psutil.NoSuchProcess):
                self._look(psutil.Process(self.process.pid))
            time.sleep(0.1)

    def _look(self, parent: Any) -> None:
        names = {one.pid: " ".join([one.name(), *one.cmdline()]) for one in parent.children()}
        alive = [pid for pid, name in names.items() if "EngineCore" in name]
        below = parent.children(recursive=True)
        self.below |= {one.pid for one in below}
        held = sum(one.memory_info().rss for one in [parent, *below])
        self.at_once = max(self.at_once, len(alive))
        for pid in alive:
            self.engines[pid] = max(self.engines.get(pid, 0), held)

    def end(self) -> tuple[int, str, str]:
        self.wait()
        return (self.process.returncode, *self.process.communicate())


@pytest.fixture
def start(tmp_path: Path, smol: SmolLM2) -> Iterator[Callable[..., Job]]:
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(MAIN))
    jobs: list[Job] = []

    def run(*words: str) -> Job:
        model = ["model=vllm", f"model.path={smol.source.path}"]
        if not any(word.startswith("model.max_length") for word in words):
            model.append("model.max_length=1024")
        line = [sys.executable, "-W", "ignore", str(script), *words, *model]
        process = subprocess.Popen(
            [*line, "tracking=none", "stats.bootstrap_iters=0"],
            env=os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1"}, cwd=tmp_path,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        jobs.append(Job(tmp_path, process))
        return jobs[-1]

    yield run
    for job in jobs:
        job.process.kill()
        job.process.wait()


def stored(home: Path) -> dict[str, str]:
    """What the checkpoint of the only run holds, by key."""
    found = list((home / "runs").glob("*/evaluation_checkpoint.sqlite"))
    if not found:
        return {}
    with sqlite3.connect(f"file:{found[0]}?mode=ro", uri=True) as db:
        try:
            return dict(db.execute("SELECT key, reply FROM replies"))
        except sqlite3.OperationalError:
            return {}


def test_an_engine_killed_in_mid_run(start: Callable[..., Job], tmp_path: Path) -> None:
    """Exit code 1 and one clear message; what was answered is kept, the next run goes on."""
    words = [
        "task=arithmetic_zh", "limit=12", "gen_kwargs={max_gen_toks: 24}",
        "model.engine={max_num_seqs: 2}", "store.keep=true",
    ]  # fmt: skip
    first = start(*words)
    first.wait(lambda: len(stored(tmp_path)) >= 3)
    (pid,) = first.engines
    os.kill(pid, 9)
    code, _, err = first.end()
    kept = stored(tmp_path)
    assert not alive(first.below)
    assert code == 1
    assert "the engine died" in err
    assert "Traceback" not in err
    assert 3 <= len(kept) < 12

    second = start(*words)
    code, _, err = second.end()
    assert code == 0, err
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.name[0] != ".")
    lines = (folder / "samples" / "arithmetic_zh.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 12
    everything = stored(tmp_path)
    assert len(everything) == 12
    assert kept.items() <= everything.items()


def alive(pids: set[int]) -> set[int]:
    """Which processes are there yet, after a while for those that end when their parent is gone."""
    until = time.monotonic() + 20
    while (left := {pid for pid in pids if Path(f"/proc/{pid}").exists()}) and (
        time.monotonic() < until
    ):
        time.sleep(0.2)
    return left


def loads(folder: Path) -> list[float]:
    """Seconds that each job below a folder spent in loading its model."""
    logs = sorted(folder.glob("**/evaluation.log"))
    found = [
        re.findall(r"the model is loaded: ([0-9.]+) s", log.read_text("utf-8")) for log in logs
    ]
    return [float(seconds) for one in found for seconds in one]


def test_a_sweep_loads_each_engine_once(start: Callable[..., Job], tmp_path: Path) -> None:
    """Four jobs over few-shot counts load once, in 1.1 times one load; twice with two models.

    The first engine is gone, its memory with it, before the second starts.
    """
    words = ["model.max_length=512,1024", "num_fewshot=0,1,2,3", "task=capitals_en", "limit=2"]
    job = start("-m", *words)
    code, _, err = job.end()
    assert code == 0, err
    files = list((tmp_path / "runs").glob("**/results.json"))
    assert len(files) == 8
    spent = sorted(loads(tmp_path / "runs"))
    assert len(spent) == 8
    assert sum(spent) <= 1.1 * sum(spent[-2:])
    assert len(job.engines) == 2
    assert job.at_once == 1
    first, second = job.engines.values()
    assert second < 1.1 * first
    assert not alive(job.below)
    says_what_moves_replies(json.loads(files[0].read_text()))


def says_what_moves_replies(found: dict[str, Any]) -> None:
    """The result file has the engine's version, how log likelihoods were read, and settings."""
    assert found["models"]["model"]["backend"] == "vllm"
    assert found["models"]["model"]["vllm"]
    assert found["environment"]["log_likelihoods"] == "cached prompt"
    assert found["environment"]["batch_invariant"] is True
