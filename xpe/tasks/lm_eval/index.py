"""Which file defines which task, group or tag: found once, kept in the cache folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from xpe.data.cache import cache_dir
from xpe.errors import ConfigError, XpeError
from xpe.tasks.lm_eval.reading import merged, outline

Kind: TypeAlias = Literal["task", "group", "tag", "class"]

_SCHEMA = "xpe.lm_eval_index/1"
_IGNORED = {"__pycache__", ".ipynb_checkpoints"}
_YAML = (".yaml", ".yml")
"""Endings of files that define tasks; those that are only included may have none."""


class Entry(NamedTuple):
    """A name, what it stands for, and the file that defines it (of a tag: the tasks under it)."""

    name: str
    kind: Kind
    file: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Index:
    """The names of several folders; a later folder overrides an earlier one.

    `broken` says, by file, why one could not be read.
    """

    entries: Mapping[str, Entry]
    broken: Mapping[str, str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self.entries))


def library() -> Path | None:
    """Return the folder of tasks of the installed lm_eval; None if it is not installed.

    The package is found, not imported.
    """
    spec = find_spec("lm_eval")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "tasks"
        if folder.is_dir():
            return folder
    return None


def index_of(folders: Sequence[Path]) -> Index:
    """Return the names in folders, from the cache folder where nothing has changed since.

    Raises
    ------
    ConfigError
        If a folder does not exist.
    """
    entries: dict[str, Entry] = {}
    broken: dict[str, str] = {}
    tags: dict[str, set[str]] = {}
    for folder in folders:
        found = _of_folder(folder.expanduser().resolve())
        for name, kind, file, listed in found["entries"]:
            entries[name] = Entry(name, kind, file)
            for tag in listed:
                tags.setdefault(tag, set()).add(name)
        broken |= found["broken"]
    for tag, members in tags.items():
        # A task or group of that name was there first.
        entries.setdefault(tag, Entry(tag, "tag", "", tuple(sorted(members))))
    return Index(entries, broken)


def kind_of(settings: Mapping[str, Any]) -> Kind | None:
    """Return what a file defines; None for one that others include."""
    if "class" in settings:
        return "class"
    if "group" in settings:
        return "group"
    return "task" if isinstance(settings.get("task"), str) else None


def _of_folder(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ConfigError(f"include_path: {folder} is not a folder")
    files = sorted(_files(str(folder)))
    told = json.dumps([_SCHEMA, str(folder), files])
    signature = hashlib.sha256(told.encode()).hexdigest()
    mark = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    kept = cache_dir() / "lm_eval_index" / f"{mark}.json"
    try:
        found: dict[str, Any] = json.loads(kept.read_text("utf-8"))
    except (OSError, ValueError):
        found = {}
    if found.get("signature") != signature:
        found = {"signature": signature, **_parsed(files)}
        _keep(kept, found)
    return found


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, time of change and size of every file that may define tasks."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name not in _IGNORED:
                    yield from _files(entry.path)
            elif entry.name.endswith(_YAML) or "." not in entry.name:
                status = entry.stat()
                yield entry.path, status.st_mtime_ns, status.st_size


def _parsed(files: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
    read: dict[Path, Mapping[str, Any]] = {}

    def once(path: Path) -> Mapping[str, Any]:
        if path not in read:
            read[path] = outline(path)
        return read[path]

    entries: dict[str, tuple[str, Kind, str, list[str]]] = {}
    broken: dict[str, str] = {}
    for path in (path for path, _, _ in files if path.endswith(".yaml")):
        try:
            settings = merged(Path(path), once)
        except XpeError as error:
            broken[path] = str(error)
            continue
        kind = kind_of(settings)
        name = settings.get("group") if kind == "group" else settings.get("task")
        if kind is None or not isinstance(name, str):
            continue
        tags = settings.get("tag") or [] if kind != "group" else []
        listed = [tags] if isinstance(tags, str) else [str(tag) for tag in tags]
        entries.setdefault(name, (name, kind, path, listed))
    return {"entries": list(entries.values()), "broken": broken}


def _keep(file: Path, found: Mapping[str, Any]) -> None:
    """Write the index; a cache folder that cannot be written only costs time."""
    partial = file.with_suffix(f".{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(found, ensure_ascii=False), "utf-8")
        partial.replace(file)
    except OSError:
        partial.unlink(missing_ok=True)
