"""A planted key is in nothing that a run leaves: files, tracker, terminal, exceptions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fake_server import Call, FakeServer, Said, chat, last_words

KEY = "sk-secret-planted-0123456789abcdefghijkl"
TOLD = {"error": {"message": f"Incorrect API key provided: {KEY}. Header: Bearer {KEY}"}}


def fine(call: Call) -> Said:
    return Said(chat("答案是 42"))


def sometimes(call: Call) -> Said:
    return Said(TOLD, status=500) if "6" in last_words(call) else fine(call)


def refused(call: Call) -> Said:
    return Said(TOLD, status=401)


def judge_refused(call: Call) -> Said:
    return refused(call) if "response_format" in call.body else fine(call)


@pytest.mark.parametrize(
    ("script", "code"), [(fine, 0), (sometimes, 3), (refused, 1), (judge_refused, 1)]
)
def test_a_planted_key_is_nowhere_after_a_run(tmp_path: Path, script, code: int) -> None:
    """The run succeeds, is partial or fails, as its judge may; MLflow's store is searched too."""
    judged = ["evaluator=judge", "judge=gemini"] if script is judge_refused else []
    for who in ["model", *(["judge"] if judged else [])]:
        judged += [f"{who}.base_url=null", f"{who}.base_url_env=XPE_TEST_URL"]
    with FakeServer(script) as server:
        env = os.environ | {
            "GEMINI_API_KEY": KEY,
            "XPE_TEST_URL": server.url,
            "XPE_RUNS": str(tmp_path / "runs"),
            "XPE_CACHE_DIR": str(tmp_path / "cache"),
            "OPENAI_LOG": "debug",
        }
        overrides = [
            *("model=gemini", "model.backoff=0.001", "task=arithmetic_zh", "limit=12"),
            *("stats.bootstrap_iters=0", *judged),
        ]
        job = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "xpe.cli", *overrides],
            env=env, cwd=tmp_path, capture_output=True, timeout=240, check=False,
        )  # fmt: skip
    assert job.returncode == code, job.stderr
    assert server.posts
    assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {KEY}"}
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(path.name == "evaluation.log" for path in written)
    assert any(path.name == "mlflow.db" for path in written)
    written[Path("stdout")], written[Path("stderr")] = job.stdout, job.stderr
    assert not [path for path, held in written.items() if KEY.encode() in held]
    assert not [path for path, held in written.items() if KEY[:20].encode() in held]
