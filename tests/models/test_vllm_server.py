"""`model=openai` against a real `vllm serve` on this machine, beside the same weights in torch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xpe.config import compose
from xpe.launch import launch
from xpe.models.openai import OpenAi
from xpe.models.smollm2 import SmolLM2
from xpe.types import Failure, Generate, Generated, LogLikelihood, Rolling, Scored

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

PATIENCE = 300.0
"""Seconds until the server has to be ready."""
WHO = ("model", "judge")


@pytest.fixture(scope="module")
def url(smol: SmolLM2, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that has the small model under the name `small`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("serve") / "log"
    line = [
        # `vllm serve` looks for a distribution named vllm, which the CPU build is not.
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", smol.source.path,
        "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager",
        "--served-model-name", "small", "--max-model-len", "4096", "--block-size", "32",
        "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
    ]  # fmt: skip
    env = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"} | os.environ
    with log.open("wb") as said:
        server = subprocess.Popen(line, stdout=said, stderr=said, env=env)
        try:
            _wait(f"http://127.0.0.1:{port}/health", server, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the server is not ready: {log.read_text(errors='replace')[-3000:]}")


@pytest.fixture
def chat(url: str) -> Iterator[OpenAi]:
    model = OpenAi(model="small", base_url=url)
    yield model
    model.close()


@pytest.fixture
def completions(url: str, smol: SmolLM2) -> Iterator[OpenAi]:
    start = str(smol.prompts.tokenizer.bos_token)
    model = OpenAi(model="small", base_url=url, api="completions", prefix=start)
    yield model
    model.close()


def test_completions_equal_transformers(completions: OpenAi, smol: SmolLM2, ask: Any) -> None:
    """Greedy texts, their ends and token counts are those of the same weights in torch."""
    requests = [
        Generate("Once upon a time", max_tokens=20),
        Generate("The capital of France is", max_tokens=12, stop=(".",)),
    ]
    for ours, theirs in zip(ask(completions, *requests), ask(smol, *requests), strict=True):
        assert isinstance(ours, Generated)
        assert (ours.text, ours.finish) == (theirs.text, theirs.finish)
        assert ours.prompt_tokens == theirs.prompt_tokens


def test_chat_equals_transformers(chat: OpenAi, smol: SmolLM2, ask: Any) -> None:
    """The server's chat template gives the prompt that ours gives, and so the same answer."""
    request = Generate(({"role": "user", "content": "Say hello."},), max_tokens=16)
    (ours,), (theirs,) = ask(chat, request), ask(smol, request)
    assert isinstance(ours, Generated)
    assert (ours.text, ours.prompt_tokens) == (theirs.text, theirs.prompt_tokens)


def test_log_likelihoods_equal_transformers(completions: OpenAi, smol: SmolLM2, ask: Any) -> None:
    """Choices of one and of several tokens and a whole text: within 1e-3 of torch."""
    requests = [
        LogLikelihood("The capital of France is", (" Paris", " Berlin", " the city of Rome")),
        LogLikelihood("问：法国的首都是哪里？\n答：", ("巴黎", "柏林")),
        Rolling("Paris is the capital of France, and Berlin is that of Germany."),
    ]
    for ours, theirs in zip(ask(completions, *requests), ask(smol, *requests), strict=True):
        assert isinstance(ours, Scored), ours
        assert ours.log_likelihoods == pytest.approx(theirs.log_likelihoods, abs=1e-3)
        assert ours.greedy == theirs.greedy


def test_a_sampled_answer_is_its_seeds(chat: OpenAi, ask: Any) -> None:
    """The seed of a request reaches the server."""
    prompt = ({"role": "user", "content": "Tell me a story."},)
    drawn = [Generate(prompt, 12, temperature=1.0, seed=seed) for seed in (3, 4, 3)]
    a, b, again = ask(chat, *drawn)
    assert a.text == again.text
    assert a.text != b.text


def test_what_does_not_fit(completions: OpenAi, ask: Any) -> None:
    """A prompt beyond the server's limit fails by itself, with a word that says why."""
    long, short = ask(
        completions, Generate("word " * 6000, max_tokens=4), Generate("One two", max_tokens=4)
    )
    assert isinstance(long, Failure)
    assert long.kind == "context"
    assert isinstance(short, Generated)


def run_of_tools(url: str, folder: Path, *overrides: str) -> tuple[int, list[Any], Any]:
    """Run shipped conversations, judged by the same server: exit code, exchanges, results."""
    typed = ["experiment=tool_call", "limit=3", "tracking=none", "stats.bootstrap_iters=0"]
    for who in WHO:
        typed += [f"{who}=openai", f"{who}.model=small", f"{who}.base_url={url}"]
        typed += [f"{who}.api_key_env=null", f"{who}.concurrency=4"]
    typed += ["task.tool_call.evaluators={tool_call: {max_tokens: 64}}", *overrides]
    code = launch(compose(typed), folder, typed)
    text = (folder / "samples" / "tool_call.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    asked = [pair for x in lines for pair in zip(x["requests"], x["replies"], strict=True)]
    return code, asked, json.loads((folder / "results.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("style", ["native", "prompt"])
def test_a_run_with_tools_and_a_judge(url: str, style: str, tmp_path: Path) -> None:
    """Every pair is answered, and every answer is judged, by one and the same server."""
    code, asked, found = run_of_tools(
        url,
        tmp_path,
        f"task.tool_call.tool_style={style}",
        "task.tool_call.generation_kwargs={max_gen_toks: 12}",
    )
    metrics = found["results"]["tool_call"]
    by = {who: [one for one in asked if one[0].get("to", "model") == who] for who in WHO}

    assert {reply["type"] for _, reply in asked} == {"generated"}
    assert len(by["model"]) == metrics["overall.total"]["value"] == 9
    assert {bool(request.get("tools")) for request, _ in by["model"]} == {style == "native"}
    assert len(by["judge"]) == metrics["pair3.total"]["value"] == 3
    assert metrics["pair3.answer_score"]["n_failed"] == code == 0
    assert 0 <= metrics["pair3.answer_score"]["value"] <= 1


def test_native_calls_of_a_real_server_are_read(url: str, tmp_path: Path) -> None:
    """Held to one tool, the model calls it, where the call fits into its tokens."""
    chosen = "{type: function, function: {name: retrieval_tool}}"
    _, asked, _ = run_of_tools(
        url,
        tmp_path,
        "limit=1",
        "task.tool_call.tool_style=native",
        "task.tool_call.generation_kwargs={max_gen_toks: 128}",
        f"model.extra_body={{tool_choice: {chosen}}}",
    )
    made = [call["function"]["name"] for _, reply in asked for call in reply.get("tool_calls", ())]
    assert made
    assert set(made) == {"retrieval_tool"}
