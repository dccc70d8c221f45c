"""Loads transformers models and tokenizers, and finds out what a loaded model can do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from xpe.errors import ConfigError, MissingExtraError, WeightsError
from xpe.models.memory import is_out_of_memory
from xpe.models.weights import check_folder, folder_digest

log = logging.getLogger(__name__)

Loaded = TypeVar("Loaded")

_ABSENT = 1 << 30


def transformers_for(what: str) -> Any:
    """Import torch and transformers, or name the extra that brings them."""
    for package in ("torch", "transformers"):
        try:
            __import__(package)
        except ImportError as error:
            raise MissingExtraError.of(what, package, "hf") from error
    import transformers

    # xpe has a progress bar of its own, and a log of a run is no place for others.
    transformers.utils.logging.disable_progress_bar()
    return transformers


def translated(path: str, load: Callable[[], Loaded]) -> Loaded:
    """Call a loader; what it raises becomes an error of ours that names `path`."""
    try:
        return load()
    except ImportError as error:
        raise MissingExtraError(
            f"loading {path} needs a package that is missing: {error}"
        ) from error
    except Exception as error:
        if is_out_of_memory(error):
            raise WeightsError(f"{path}: does not fit into memory: {error}") from error
        nowhere = "" if Path(path).expanduser().is_dir() else " (it is no local folder either)"
        raise WeightsError(f"{path}: cannot be loaded{nowhere}: {error}") from error


def resolved_device(device: str) -> str:
    """Return the device that `auto` means here."""
    import torch

    if device != "auto":
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise ConfigError(f"model.device={device}, but torch sees no CUDA device here")
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def resolved_dtype(dtype: str, config: Any, device: str) -> str:
    """Return the dtype that `auto` means: the checkpoint's, but float32 on a CPU."""
    if dtype != "auto":
        return dtype
    if device == "cpu":
        return "float32"
    return str(getattr(config, "dtype", None) or "float32").removeprefix("torch.")


def longest_input(config: Any, tokenizer: Any) -> int:
    """Return the most tokens that the model takes, as its config says; 2048 if nothing does."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    for name in ("max_position_embeddings", "n_positions", "n_ctx", "seq_length"):
        if isinstance(length := getattr(text, name, None), int) and length > 0:
            return length
    named: int = getattr(tokenizer, "model_max_length", _ABSENT)
    return named if named < _ABSENT else 2048


def is_plain(config: Any, length: int) -> bool:
    """Tell whether every layer attends to all that came before, within `length` tokens."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    kinds = set(getattr(text, "layer_types", None) or ())
    window = getattr(text, "sliding_window", None)
    if kinds <= {"full_attention", "sliding_attention"} and window and length <= window:
        return True
    if kinds:
        return kinds == {"full_attention"}
    return not window or getattr(text, "use_sliding_window", True) is False


def ending_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end a text, by the generation config and the tokenizer."""
    named = getattr(model.generation_config, "eos_token_id", None)
    ids = [*(named if isinstance(named, (list, tuple)) else [named]), tokenizer.eos_token_id]
    return frozenset(int(i) for i in ids if i is not None)


def decoder(tokenizer: Any, kept: Collection[str]) -> Callable[[Sequence[int]], str]:
    """Return a function from tokens to text without special tokens, but with those of `kept`."""
    names = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    dropped = {i for i, name in names if name not in kept}

    def decode(tokens: Sequence[int]) -> str:
        text: str = tokenizer.decode(
            [token for token in tokens if token not in dropped],
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        return text

    return decode


@dataclass(frozen=True)
class Source:
    """Where weights and tokenizer come from: local folders, or names on the Hub."""

    path: str
    tokenizer_path: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    adapter: str | None = None

    @property
    def folder(self) -> Path | None:
        """The local folder, None for a name on the Hub."""
        path = Path(self.path).expanduser()
        looks_local = self.path.startswith(("/", ".", "~")) or self.path.count("/") > 1
        return path if path.exists() or looks_local else None

    def check(self) -> None:
        """Check the local folders; see `weights.check_folder`."""
        if self.folder is not None:
            other = self.tokenizer_path
            check_folder(self.folder, Path(other).expanduser() if other else None)

    def identity(self, config: Any) -> dict[str, Any]:
        """Return what tells these weights from others: a digest, or name and commit."""
        found: dict[str, Any] = {}
        if self.folder is not None:
            found["weights"] = folder_digest(self.folder)
        else:
            found["weights"] = self.path
            found["revision"] = getattr(config, "_commit_hash", None) or self.revision
        if self.adapter:
            adapter = Path(self.adapter).expanduser()
            found["adapter"] = folder_digest(adapter) if adapter.is_dir() else self.adapter
        return found

    def config(self) -> Any:
        """Load the model's config."""
        transformers = transformers_for(f"the model {self.path}")
        return self._loaded(transformers.AutoConfig, self.path)

    def tokenizer(self) -> Any:
        """Load the tokenizer."""
        transformers = transformers_for(f"the model {self.path}")
        return self._loaded(transformers.AutoTokenizer, self.tokenizer_path or self.path)

    def model(self, dtype: str, device: str, device_map: Any) -> Any:
        """Load the weights, in eval mode, onto the device."""
        import torch

        transformers = transformers_for(f"the model {self.path}")
        options = {"dtype": getattr(torch, dtype)}
        if device_map is not None:
            options["device_map"] = device_map
        model = self._loaded(transformers.AutoModelForCausalLM, self.path, **options)
        if self.adapter:
            model = _merged(model, self.adapter)
        if device_map is None:
            model = translated(self.path, lambda: model.to(device))
        return model.eval()

    def _loaded(self, loader: Any, path: str, **options: Any) -> Any:
        return translated(
            path,
            lambda: loader.from_pretrained(
                str(Path(path).expanduser()) if path.startswith("~") else path,
                revision=self.revision,
                trust_remote_code=self.trust_remote_code,
                **options,
            ),
        )


def _merged(model: Any, adapter: str) -> Any:
    try:
        from peft import PeftModel  # type: ignore[import-not-found]
    except ImportError as error:
        raise MissingExtraError(
            "model.adapter needs the package 'peft', which is not installed. "
            "Install it with: python3 -m pip install peft"
        ) from error
    return translated(adapter, lambda: PeftModel.from_pretrained(model, adapter).merge_and_unload())
