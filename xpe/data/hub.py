"""Data sets of the Hugging Face Hub, `save_to_disk` folders and folders of data files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Any

from xpe.data.code import Function
from xpe.data.documents import Documents
from xpe.errors import ConfigError, DataError, DataFileError, unknown

_SAVED = ("dataset_dict.json", "state.json")
_PREFERRED = ("test", "validation")
_BUILDERS = {"jsonl": "json", "json": "json", "csv": "csv", "tsv": "csv", "parquet": "parquet",
             "arrow": "arrow", "txt": "text"}  # fmt: skip
"""Builders of `datasets` by the ending of a file."""

_FAULTS = (OSError, ValueError, RuntimeError, LookupError, TypeError)
"""What `load_dataset` raises for data that it cannot read, besides exceptions of its own."""


def is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` wrote this folder."""
    return any((folder / name).is_file() for name in _SAVED)


def read_saved(folder: Path, split: str | None) -> Documents:
    """Map a `save_to_disk` folder into memory.

    Raises
    ------
    DataFileError
        If the folder cannot be read.
    """
    import datasets

    try:
        found = datasets.load_from_disk(str(folder))
    except (OSError, ValueError) as error:
        raise DataFileError(f"{folder}: not a readable save_to_disk folder ({error})") from error
    return _documents(found, split, label=folder.name, place=str(folder.resolve()), revision="")


def read(
    path: str, name: str | None, split: str | None, revision: str | None, kwargs: Mapping[str, Any]
) -> Documents:
    """Load a data set by Hub id, folder or loader name, memory-mapped from the local cache.

    Raises
    ------
    DataFileError
        If it cannot be found or fetched; says how to use a local copy.
    """
    import datasets

    try:
        found = datasets.load_dataset(path, name, revision=revision, **kwargs)
    except (*_FAULTS, datasets.exceptions.DatasetsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if error.__cause__ is not None:
            reason += f" ({shorten(str(error.__cause__), 300)})"
        raise DataFileError(
            f"cannot load the data set {path!r} (name {name!r}): {reason}. "
            f"To use a local copy: 'data.remap={{{path}: FILE_OR_FOLDER}}'"
        ) from error
    label = path if name is None else f"{path}:{name}"
    return _documents(found, split, label=label, place=label, revision=revision or "")


def read_file(file: Path) -> Documents:
    """Read one file with the builder of `datasets` for its ending.

    Raises
    ------
    DataFileError
        If there is no builder, or it cannot read the file.
    """
    import datasets

    ending = file.suffix.removeprefix(".")
    if ending not in _BUILDERS:
        raise DataFileError(f"{file}: no reader for .{ending}; known: {', '.join(_BUILDERS)}")
    more = {"sep": "\t"} if ending == "tsv" else {}
    try:
        found = datasets.load_dataset(_BUILDERS[ending], data_files={"rows": str(file)}, **more)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise DataFileError(f"{file}: cannot be read as .{ending} ({error})") from error
    made = _documents(found, "rows", label=file.name, place=str(file.resolve()), revision="")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return replace(made, label=file.name, digest=digest, identity=str(file.resolve()))


def made(make: Function, kwargs: Mapping[str, Any], split: str | None) -> Documents:
    """Call a function that gives a data set by split.

    Raises
    ------
    DataError
        If it fails or gives no such thing.
    """
    try:
        found = make(**kwargs)
    except ConfigError:
        raise
    except Exception as error:
        raise DataError(f"{make.place} fails: {type(error).__name__}: {error}") from error
    if not isinstance(found, Mapping):
        raise DataError(f"{make.place} gives {type(found).__name__}, expected data by split")
    split = split or _only(tuple(found), make.place)
    if split not in found:
        raise unknown(f"split of {make.place}", split, found)
    rows = found[split]
    told = f"{make.place} {make.digest} {sorted(map(repr, kwargs.items()))} {split}"
    return Documents(rows, f"{make.function}[{split}]", sha256_of(told, rows), identity=told)


def sha256_of(told: str, rows: Any) -> str:
    """Return a digest of rows: of their content if it is JSON, with `told` before it."""
    seen = hashlib.sha256(told.encode())
    for row in rows:
        seen.update(json.dumps(row, sort_keys=True, default=str, ensure_ascii=False).encode())
    return seen.hexdigest()


def _documents(
    found: Any, split: str | None, *, label: str, place: str, revision: str
) -> Documents:
    if isinstance(found, Mapping):
        split = split or _only(tuple(found), label)
        if split not in found:
            raise unknown(f"split of {label}", split, found)
        found = found[split]
    label = label if split is None else f"{label}[{split}]"
    digest = hashlib.sha256(f"{found._fingerprint}@{revision}".encode()).hexdigest()  # noqa: SLF001
    return Documents(found, label, digest, identity=f"{place}#{split}")


def _only(splits: tuple[str, ...], label: str) -> str:
    for name in _PREFERRED:
        if name in splits:
            return name
    if len(splits) == 1:
        return splits[0]
    raise DataError(f"{label} has the splits {', '.join(splits)}; name one as `split:`")
