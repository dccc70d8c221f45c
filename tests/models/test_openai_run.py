"""Whole runs with the model kind `openai` against a scripted server."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from xpe.config import compose
from xpe.errors import ConfigError
from xpe.launch import launch

sys.path.insert(0, str(Path(__file__).parent))
from fake_server import FakeServer, Said, chat, last_words

KEY = "sk-planted-0123456789abcdef"


def run(url, folder, *overrides):
    folder.mkdir()
    typed = [
        *("model=openai", "model.model=m", "model.api_key_env=XPE_TEST_KEY", "model.backoff=0.001"),
        *("model.base_url_env=XPE_TEST_URL", "tracking=none", "stats.bootstrap_iters=0"),
        *overrides,
    ]
    return launch(compose(typed), folder, typed)


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Folders of this test's own, the key, and a way to name the address."""
    monkeypatch.setenv("XPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XPE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XPE_TEST_KEY", KEY)
    return lambda url: monkeypatch.setenv("XPE_TEST_URL", url)


def test_a_run_reports_failures_and_usage_and_holds_no_key(places, tmp_path, capfd, caplog):
    """Some samples fail for good; the rest is scored, the run is partial, the key is nowhere."""
    caplog.set_level(logging.DEBUG)
    broken = Said({"error": {"message": f"out of order, {KEY}"}}, status=500)

    def script(call):
        return broken if "6" in last_words(call) else Said(chat("答案是 42"))

    with FakeServer(script) as server:
        places(server.url)
        code = run(server.url, tmp_path / "run", "task=arithmetic_zh", "limit=12", "num_fewshot=0")
    found = json.loads((tmp_path / "run" / "results.json").read_text())
    usage = found["environment"]["usage"]
    failed = usage["failures"]["server"]
    assert code == 3
    assert 0 < failed < 12
    assert found["results"]["arithmetic_zh"]["math_accuracy"]["n_failed"] == failed
    assert usage["retries"] == 3 * failed
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"out of order" in written
    assert f"({3 * failed} retries" in (tmp_path / "run" / "evaluation.log").read_text()
    said = capfd.readouterr()
    assert not [text for text in (said.out, said.err, caplog.text) if KEY in text]
    assert KEY.encode() not in written


def test_a_task_of_log_likelihoods_is_refused_before_the_run(places, tmp_path):
    """The server is asked nothing but the small questions of the check."""
    with FakeServer(lambda call: Said(chat("hi"))) as server:
        places(server.url)
        with pytest.raises(ConfigError, match="gives no log likelihoods"):
            run(server.url, tmp_path / "run", "task=capitals_en", "limit=5")
    assert {last_words(call) for call in server.posts} == {
        " dog",
        "The quick brown fox jumps over the lazy",
    }
