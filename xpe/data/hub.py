"""Data sets of the Hugging Face Hub, `save_to_disk` folders and folders of data files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xpe.data.documents import Documents
from xpe.errors import DataError, DataFileError, unknown

_SAVED = ("dataset_dict.json", "state.json")
_PREFERRED = ("test", "validation")


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
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataFileError(
            f"cannot load the data set {path!r} (name {name!r}): {reason}. "
            f"To use a local copy: 'data.remap={{{path}: FILE_OR_FOLDER}}'"
        ) from error
    label = path if name is None else f"{path}:{name}"
    return _documents(found, split, label=label, place=label, revision=revision or "")


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
