"""What keeps the vLLM engine from starting, found before any sample is made; and LoRA."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from xpe.cli import main
from xpe.errors import WeightsError
from xpe.models.hf import Hf
from xpe.models.smollm2 import SmolLM2
from xpe.models.vllm import Vllm
from xpe.types import LogLikelihood, Rolling

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def refused(
    smol: SmolLM2,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Any:
    """Runs the command line, which has to end with code 2, one message and no sample made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)

    def run(*words: str, path: Path = Path(smol.source.path)) -> str:
        model = ["model=vllm", f"model.path={path}", "task=capitals_en", "limit=2"]
        assert main([*model, "tracking=none", *words]) == 2
        written = capfd.readouterr()
        said = [line for line in written.err.splitlines() if line.startswith("xpe: ")]
        assert len(said) == 1, written.err
        assert "Traceback" not in written.out + written.err
        for log in (tmp_path / "runs").glob("*/evaluation.log"):
            assert "capitals_en: 2 samples" not in log.read_text("utf-8")
        return said[0]

    return run


def test_a_folder_without_weights(refused: Any, smol: SmolLM2, tmp_path: Path) -> None:
    """It is named, with what was looked for; the data, which is not there either, comes later."""
    folder = tmp_path / "empty"
    shutil.copytree(smol.source.path, folder, ignore=shutil.ignore_patterns("*.safetensors*"))
    nowhere = "task.capitals_en.data.path=nowhere.jsonl"
    said = refused(nowhere, path=folder)
    assert f"{folder}: no weights in it; looked for *.safetensors" in said
    assert "no such folder" in refused(nowhere, path=tmp_path / "no" / "where")


def test_an_unknown_argument_of_the_engine(refused: Any) -> None:
    """It gets the nearest known name, before the data is looked at."""
    said = refused("model.engine.tensor_paralel_size=2", "task.capitals_en.data.path=nowhere.jsonl")
    assert "'tensor_paralel_size'" in said
    assert "'tensor_parallel_size'" in said


def test_too_little_memory(refused: Any) -> None:
    """A KV cache that does not hold one input: the engine's reason, and what to set."""
    said = refused("model.engine.kv_cache_memory_bytes=67108864")
    for word in ("too little memory", "KV cache", "model.max_length", "VLLM_CPU_KVCACHE_SPACE"):
        assert word in said


def test_a_value_that_the_engine_refuses(refused: Any) -> None:
    """A known argument with an impossible value: the engine's reason."""
    said = refused("model.engine.quantization=no_such", "model.max_length=256")
    assert "the engine refuses its settings" in said
    assert "no_such" in said


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
