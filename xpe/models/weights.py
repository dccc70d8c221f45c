"""Folders of weights: what must be there, and a digest that tells two of them apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xpe.errors import WeightsError

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
_EDGE = 1 << 20


def check_folder(folder: Path, tokenizer: Path | None = None) -> None:
    """Find out cheaply that a folder cannot be loaded.

    Raises
    ------
    WeightsError
        Names the folder and what was looked for in it.
    """
    if not folder.is_dir():
        raise WeightsError(f"model folder {folder}: there is no such folder")
    _read_config(folder)
    files = weight_files(folder)
    if not files:
        raise WeightsError(
            f"model folder {folder}: no weights in it; looked for {' and '.join(_WEIGHTS)}"
        )
    for file in _listed(folder):
        if not file.is_file():
            raise WeightsError(f"model folder {folder}: its index names {file.name}, missing")
    for file in files:
        _check_file(file)
    where = tokenizer or folder
    if where.is_dir() and not any((where / name).is_file() for name in _TOKENIZERS):
        raise WeightsError(
            f"model folder {where}: no tokenizer in it; looked for {', '.join(_TOKENIZERS)}"
        )


def weight_files(folder: Path) -> list[Path]:
    """Return the files of weights, in the order of their names; safetensors go first."""
    for pattern in _WEIGHTS:
        if files := sorted(folder.glob(pattern)):
            return files
    return []


def folder_digest(folder: Path) -> str:
    """Return a SHA-256 over config.json and each weights file's name, size and both ends.

    Only the first and last MiB of a file are read, so that tens of GB take no time. A change in
    the middle of a file that keeps its size and its header escapes it.
    """
    seen = hashlib.sha256()
    for name in ("config.json", "adapter_config.json"):
        if (folder / name).is_file():
            seen.update((folder / name).read_bytes())
    for file in weight_files(folder):
        size = file.stat().st_size
        seen.update(f"\0{file.name}\0{size}\0".encode())
        with file.open("rb") as data:
            seen.update(data.read(_EDGE))
            data.seek(max(0, size - _EDGE))
            seen.update(data.read(_EDGE))
    return seen.hexdigest()


def _read_config(folder: Path) -> Any:
    path = folder / "config.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        found = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
        raise WeightsError(
            f"model folder {folder}: no config.json in it (found: {found})"
        ) from None
    except (OSError, ValueError) as error:
        raise WeightsError(f"model folder {folder}: config.json is unreadable: {error}") from error


def _listed(folder: Path) -> Iterator[Path]:
    for index in sorted(folder.glob("*.index.json")):
        try:
            names: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        except (OSError, ValueError, KeyError) as error:
            raise WeightsError(f"model folder {folder}: {index.name} is broken: {error}") from error
        yield from (folder / name for name in sorted(set(names.values())))


def _check_file(file: Path) -> None:
    """Compare the header of a safetensors file with its size: a cut download shows here."""
    if file.suffix != ".safetensors":
        return
    try:
        with file.open("rb") as data:
            length = int.from_bytes(data.read(8), "little")
            header = json.loads(data.read(min(length, 1 << 28)))
        end = max(t["data_offsets"][1] for n, t in header.items() if n != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"{file}: not a readable safetensors file: {error!r:.200}") from error
    if file.stat().st_size != 8 + length + end:
        raise WeightsError(
            f"{file}: {file.stat().st_size} bytes, but its header describes {8 + length + end}; "
            "the file is cut short or damaged, fetch it again"
        )
