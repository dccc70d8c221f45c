"""A run that is killed again and again, as a server in a process of its own counts it."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SYSTEM = "你是一个会使用工具的助手。"
AT_ONCE = 4
UNDER_WAY = 2 * AT_ONCE  # of the model and of the judge
KILLS = 10
PATIENCE = 300.0
"""Seconds for a run, on a busy machine too."""


@dataclass
class Runner:
    """Runs the handed conversations against one scripted server."""

    home: Path
    data: Path
    url: str
    log: Path

    def start(self) -> subprocess.Popen[str]:
        overrides = [
            *("task=tool_call", f"task.tool_call.data={self.data}"),
            *(f"task.tool_call.default_system={SYSTEM}", "model=openai", "model.model=m"),
            *("judge=openai", "judge.model=j", "tracking=none", "stats.bootstrap_iters=100"),
        ]
        for who in ("model", "judge"):
            overrides += [f"{who}.base_url_env=XPE_TEST_URL", f"{who}.api_key_env=null"]
            overrides += [f"{who}.concurrency={AT_ONCE}"]
        env = os.environ | {"XPE_RUNS": str(self.home), "XPE_TEST_URL": self.url}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "xpe.cli", *overrides],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def slow_after(self, number: float, seconds: float) -> None:
        """Have the server take its time for all questions beyond so many."""
        told = self.log.with_name(self.log.name + ".slow")
        told.with_suffix(".new").write_text(f"{number} {seconds}")
        told.with_suffix(".new").replace(told)

    def finish(self) -> None:
        self.slow_after(math.inf, 0)
        job = self.start()
        said, _ = job.communicate(timeout=PATIENCE)
        assert job.returncode == 0, said

    def stopped_at(
        self, moment: int, dice: random.Random, by: signal.Signals, seconds: float
    ) -> tuple[int, str]:
        """Start it and stop it after the server saw `moment` different questions.

        Soon after, an answer takes `seconds`, so that a stop that comes late finds no finished
        run. Returns the exit code and what was written to the terminal.
        """
        moment = max(moment, len(set(self.asked())) + 1)
        self.slow_after(moment + UNDER_WAY, seconds)
        job = self.start()
        until = time.monotonic() + PATIENCE
        while len(set(self.asked())) < moment and job.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(dice.uniform(0, 0.02))
        job.send_signal(by)
        said, _ = job.communicate(timeout=PATIENCE)
        return job.returncode, said

    def asked(self) -> list[str]:
        """Digests of what the server was asked so far, in its order."""
        return self.log.read_text().splitlines()

    def written(self) -> tuple[str, bytes]:
        """Results and sample file, of the only run folder."""
        (folder,) = [one for one in self.home.iterdir() if (one / "config.yaml").exists()]
        found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        return json.dumps(found["results"]), (folder / "samples" / "tool_call.jsonl").read_bytes()


@contextmanager
def served(home: Path, data: Path) -> Iterator[Runner]:
    """A server in a process of its own, and who runs against it."""
    home.mkdir()
    log = home.with_suffix(".log")
    log.touch()
    runner = Runner(home, data, "", log)
    runner.slow_after(math.inf, 0)
    line = [sys.executable, "-W", "ignore", str(HERE / "tool_script.py")]
    with subprocess.Popen(
        [*line, str(log), str(data), SYSTEM],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        yield replace(runner, url=server.stdout.readline().strip())
        server.stdin.close()


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Runner:
    """A run that nobody disturbed."""
    (data,) = (shared_data / "data" / "toolcall_zh").glob("*.json")
    with served(tmp_path_factory.mktemp("kills") / "calm", data) as runner:
        runner.finish()
    return runner


@pytest.mark.shared
def test_ten_kills_lose_nothing_and_repeat_only_what_was_in_flight(
    tmp_path: Path, calm: Runner
) -> None:
    """Every question is asked once, but for those under way at a kill; the bytes are the same."""
    whole = calm.asked()
    dice = random.Random(7)
    moments = sorted(dice.sample(range(1, len(whole) - 3 * UNDER_WAY), KILLS))
    with served(tmp_path / "killed", calm.data) as killed:
        lives: list[list[str]] = []
        for moment in moments:
            code, said = killed.stopped_at(moment, dice, signal.SIGKILL, 3600)
            assert code == -signal.SIGKILL, said
            lives.append(killed.asked()[sum(map(len, lives)) :])
        killed.finish()
        lives.append(killed.asked()[sum(map(len, lives)) :])

    assert len(whole) == len(set(whole))
    assert killed.written() == calm.written()
    assert {one for life in lives for one in life} == set(whole)
    assert all(len(life) == len(set(life)) for life in lives)
    in_flight = {one for life in lives for one in life[-2 * UNDER_WAY :]}
    counts = Counter(one for life in lives for one in life)
    again = {one for one, times in counts.items() if times > 1}
    assert again <= in_flight
    assert sum(counts.values()) - len(counts) <= KILLS * UNDER_WAY


@pytest.mark.shared
def test_an_interrupt_loses_nothing_and_repeats_nothing(tmp_path: Path, calm: Runner) -> None:
    """What is under way at Ctrl-C is answered and stored; each question is asked exactly once."""
    dice = random.Random(8)
    with served(tmp_path / "interrupted", calm.data) as runner:
        for moment in (20, 120, 250):
            code, said = runner.stopped_at(moment, dice, signal.SIGINT, 0.5)
            assert code == 130, said
            assert "stopping once what is under way is stored" in said
            assert len(set(runner.asked())) < len(calm.asked())
        runner.finish()
        assert runner.written() == calm.written()
        assert sorted(runner.asked()) == sorted(calm.asked())
