"""Whole runs with the vLLM engine: its death, sweeps, and too little memory."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from xpe.errors import ConfigError, WeightsError
from xpe.models.hf import Hf
from xpe.models.smollm2 import SmolLM2
from xpe.models.vllm import Vllm
from xpe.types import LogLikelihood, Rolling

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
    """A run of xpe in a process of its own, and the engines that it was seen to have."""

    home: Path
    process: subprocess.Popen[str]
    engines: set[int] = field(default_factory=set)

    def wait(self, until: Callable[[], bool] = lambda: False) -> None:
        """Watch until the run or `until` is over."""
        import psutil

        while self.process.poll() is None and not until():
            try:
                for child in psutil.Process(self.process.pid).children():
                    if "EngineCore" in " ".join([child.name(), *child.cmdline()]):
                        self.engines.add(child.pid)
            except psutil.NoSuchProcess:
                pass
            time.sleep(0.1)

    def end(self) -> tuple[int, str, str]:
        self.wait()
        return (self.process.returncode, *self.process.communicate())


@pytest.fixture
def start(tmp_path: Path, smol: SmolLM2) -> Iterator[Callable[..., Job]]:
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(MAIN))
    jobs: list[Job] = []

    def run(*words: str) -> Job:
        model = ["model=vllm", f"model.path={smol.source.path}", "model.max_length=1024"]
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


def test_a_sweep_loads_the_engine_once(start: Callable[..., Job], tmp_path: Path) -> None:
    """Four jobs over few-shot counts have one engine process, which is gone at the end."""
    job = start("-m", "num_fewshot=0,1,2,3", "task=capitals_en", "limit=4")
    code, _, err = job.end()
    assert code == 0, err
    assert len(list((tmp_path / "runs").glob("**/results.json"))) == 4
    assert len(job.engines) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in job.engines)


def test_the_result_names_the_engine(start: Callable[..., Job], tmp_path: Path) -> None:
    """The result file has the engine's version, how log likelihoods were read, and settings."""
    code, _, err = start("task=capitals_en", "limit=2").end()
    assert code == 0, err
    (file,) = (tmp_path / "runs").glob("*/results.json")
    found: dict[str, Any] = json.loads(file.read_text())
    assert found["models"]["model"]["backend"] == "vllm"
    assert found["models"]["model"]["vllm"]
    assert found["environment"]["log_likelihoods"] == "cached prompt"
    assert found["environment"]["batch_invariant"] is True


def test_a_lora_adapter(smol: SmolLM2, tmp_path: Path, ask: Any) -> None:
    """An adapter scores as the weights that it is merged into, and is part of the identity."""
    merged, adapter = made_adapter(smol, tmp_path)
    choices = LogLikelihood("The capital of France is", (" Paris", " the city of Rome"))
    text = Rolling("Paris is the capital of France.")
    (plain,) = ask(smol, choices)
    wanted, wanted_text = ask(Hf(path=str(merged)), choices, text)
    assert abs(plain.log_likelihoods[0] - wanted.log_likelihoods[0]) > 0.01
    model = Vllm(path=smol.source.path, max_length=256, lora=str(adapter))
    try:
        model.check()
        found, found_text = ask(model, choices, text)
    finally:
        model.close()
    assert found.log_likelihoods == pytest.approx(wanted.log_likelihoods, abs=1e-3)
    assert found_text.log_likelihoods == pytest.approx(wanted_text.log_likelihoods, abs=1e-3)
    assert "adapter" in model.identity
    with pytest.raises(WeightsError, match=r"adapter_config\.json"):
        Vllm(path=smol.source.path, max_length=256, lora=str(merged)).load()


def made_adapter(smol: SmolLM2, folder: Path) -> tuple[Path, Path]:
    """Write a random adapter of rank 4 on two projections, and the weights with it merged in."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(smol.source.path)
    draws = torch.Generator().manual_seed(0)
    tensors = {}
    for i, layer in enumerate(model.model.layers):
        for name in ("q_proj", "v_proj"):
            weight = getattr(layer.self_attn, name).weight.data
            a = torch.randn(4, weight.shape[1], generator=draws) * 0.1
            b = torch.randn(weight.shape[0], 4, generator=draws) * 0.1
            key = f"base_model.model.model.layers.{i}.self_attn.{name}"
            tensors[f"{key}.lora_A.weight"], tensors[f"{key}.lora_B.weight"] = a, b
            weight += 2.0 * (b @ a)
    adapter, merged = folder / "adapter", folder / "merged"
    adapter.mkdir()
    settings = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none"}
    settings |= {"target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
    (adapter / "adapter_config.json").write_text(json.dumps(settings))
    save_file(tensors, str(adapter / "adapter_model.safetensors"))
    model.save_pretrained(str(merged))
    AutoTokenizer.from_pretrained(smol.source.path).save_pretrained(str(merged))
    return merged, adapter


def test_too_little_memory(
    smol: SmolLM2, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A KV cache that does not hold one input: one message with what to set, no traceback."""
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    model = Vllm(path=smol.source.path, engine={"kv_cache_memory_bytes": 64 << 20})
    with pytest.raises(ConfigError, match=r"too little memory.*KV cache.*max_length"):
        model.load()
    written = capfd.readouterr()
    assert "Traceback" not in written.out + written.err


def test_a_setting_that_the_engine_refuses(
    smol: SmolLM2, capfd: pytest.CaptureFixture[str]
) -> None:
    """A known argument with an impossible value: a ConfigError with the engine's reason."""
    model = Vllm(path=smol.source.path, max_length=256, engine={"quantization": "no_such"})
    with pytest.raises(ConfigError, match="no_such"):
        model.load()
    written = capfd.readouterr()
    assert "Traceback" not in written.out + written.err
