"""A run that is killed again and again, as a server in a process of its own counts it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SYSTEM = "你是一个会使用工具的助手。"
AT_ONCE = 4
UNDER_WAY = 2 * AT_ONCE  # of the model and of the judge
KILLS = 10


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

    def finish(self) -> None:
        job = self.start()
        said, _ = job.communicate(timeout=120)
        assert job.returncode == 0, said

    def kill_at(self, moment: int, dice: random.Random) -> None:
        """Start it and kill it after the server saw `moment` different questions."""
        job = self.start()
        moment = max(moment, len(set(self.asked())) + 1)
        until = time.monotonic() + 60
        while len(set(self.asked())) < moment and job.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(dice.uniform(0, 0.02))
        job.kill()
        said, _ = job.communicate(timeout=30)
        assert job.returncode == -9, said

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
    line = [sys.executable, "-W", "ignore", str(HERE / "tool_script.py")]
    with subprocess.Popen(
        [*line, str(log), str(data), SYSTEM],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        yield Runner(home, data, server.stdout.readline().strip(), log)
        server.stdin.close()


@pytest.mark.shared
def test_ten_kills_lose_nothing_and_repeat_only_what_was_in_flight(
    tmp_path: Path, shared_data: Path
) -> None:
    """Every question is asked once, but for those under way at a kill; the bytes are the same."""
    (data,) = (shared_data / "data" / "toolcall_zh").glob("*.json")
    with served(tmp_path / "calm", data) as calm:
        calm.finish()
    whole = calm.asked()
    dice = random.Random(7)
    moments = sorted(dice.sample(range(1, int(0.95 * len(whole))), KILLS))
    with served(tmp_path / "killed", data) as killed:
        lives: list[list[str]] = []
        for moment in moments:
            killed.kill_at(moment, dice)
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
