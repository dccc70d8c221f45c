"""Names to tasks: globs, tags, groups with overrides, files, and tasks written in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from xpe.errors import ConfigError, SettingTypeError, UnknownNameError, nearest
from xpe.tasks.lm_eval.index import Entry, Index, kind_of
from xpe.tasks.lm_eval.reading import known_contents, merged
from xpe.tasks.lm_eval.translate import GROUP_KEYS, Plain, group_settings, task_settings

_STRUCTURE = ("tag", "group", "task_list")
"""Keys of a task's file that say how it is found, not what it is."""


@dataclass
class Resolver:
    """Collects the tasks and groups that names stand for, each once, in their order.

    Attributes
    ----------
    metadata
        Joined to the metadata of every task: arguments of functions that make data.
    overrides
        Settings, in the harness's words, that win over those of every task.
    """

    index: Index
    metadata: Mapping[str, Any]
    overrides: Mapping[str, Any]
    compat: str | None
    note: Callable[[str], None]
    found: dict[str, Plain] = field(default_factory=dict)

    def add(self, names: Iterable[str | Mapping[str, Any]]) -> None:
        """Add what each name stands for; a mapping is a task or group written in place.

        Raises
        ------
        UnknownNameError
            If nothing has a name or matches a glob; names the nearest.
        ConfigError
            If a definition is wrong; names its file.
        """
        for name in names:
            if isinstance(name, Mapping):
                self._written(dict(name), "names", dict(self.overrides))
            else:
                for entry in self._entries(name):
                    self._build(entry, dict(self.overrides))

    def _entries(self, name: str) -> list[Entry]:
        if name in self.index.entries:
            return [self.index.entries[name]]
        if any(char in name for char in "*?["):
            matching = [one for one in self.index.names if fnmatchcase(one, name)]
            if matching:
                # What a tag stands for matches by its own name, or is not wanted.
                entries = [self.index.entries[one] for one in matching]
                return [entry for entry in entries if entry.kind != "tag"] or entries
        path = Path(name).expanduser()
        if path.is_file():
            return [_of_file(path.resolve())]
        raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownNameError:
        close = nearest(name, self.index.names)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        broken = [file for file in self.index.broken if Path(file).stem == name]
        why = f" {self.index.broken[broken[0]]}" if broken else ""
        return UnknownNameError(
            f"no task, group, tag or YAML file {name!r} among {len(self.index.names):,} names."
            f"{hint}{why} `xpe ls tasks` lists them; include_path adds a folder"
        )

    def _build(self, entry: Entry, overrides: Plain) -> list[str]:
        """Add what an entry stands for; return the names that a group lists for it."""
        if entry.kind == "tag":
            return [
                name
                for member in entry.members
                for name in self._build(self.index.entries[member], overrides)
            ]
        settings = merged(Path(entry.file), known_contents)
        if entry.kind == "group":
            return [self._group(entry.name, settings, overrides, entry.file)]
        return [self._task({**settings, **overrides}, entry.file)]

    def _task(self, settings: Plain, file: str) -> str:
        own = {key: value for key, value in settings.items() if key not in _STRUCTURE}
        stated = own.get("metadata")
        metadata = stated if isinstance(stated, Mapping) else {"_metadata": stated}
        own["metadata"] = {**(metadata if stated else {}), **self.metadata}
        try:
            made = task_settings(own, self.compat, self.note)
        except ConfigError as error:
            raise type(error)(f"{file}: {error}") from error
        return self._put(str(own["task"]), made, file)

    def _group(self, name: str, settings: Plain, overrides: Plain, file: str) -> str:
        below = {key: value for key, value in settings.items() if key not in GROUP_KEYS}
        below |= overrides
        stated = settings.get("task") or []
        members = stated if isinstance(stated, list) else [stated]
        made = [one for item in members for one in self._member(item, name, below, file)]
        try:
            members_made = list(dict.fromkeys(made))
            group = group_settings(name, settings, members_made, self.compat, self.note)
        except ConfigError as error:
            raise type(error)(f"{file}: {error}") from error
        return self._put(name, group, file)

    def _member(self, item: Any, group: str, overrides: Plain, file: str) -> Sequence[str]:
        known = self.index.entries
        if isinstance(item, str):
            if item not in known:
                error = self._unknown(item)
                raise type(error)(f"{file}: {error}")
            return self._build(known[item], overrides)
        if not isinstance(item, Mapping) or not ("task" in item or "group" in item):
            raise SettingTypeError(
                f"{file}: a member of group {group!r} must be a name, or a mapping with `task` or "
                f"`group`; got {item!r}"
            )
        own = {key: value for key, value in item.items() if key not in GROUP_KEYS}
        if "group" in item:
            if item["group"] in known:
                return self._build(known[item["group"]], {**overrides, **own})
            return [self._group(f"{group}::{item['group']}", dict(item), overrides, file)]
        if item["task"] in known:
            return self._build(known[item["task"]], {**overrides, **own})
        return [self._task({**overrides, **item, "task": f"{group}::{item['task']}"}, file)]

    def _written(self, item: Plain, place: str, overrides: Plain) -> None:
        if "group" in item:
            self._group(str(item["group"]), item, overrides, place)
        elif isinstance(item.get("task"), str) and item["task"] in self.index.entries:
            own = {key: value for key, value in item.items() if key != "task"}
            self._build(self.index.entries[item["task"]], {**overrides, **own})
        elif isinstance(item.get("task"), str):
            self._task({**item, **overrides}, place)
        else:
            raise ConfigError(f"{place}: expected `task` or `group` in {item!r}")

    def _put(self, name: str, settings: Plain, file: str) -> str:
        if name in self.found and self.found[name] != settings:
            raise ConfigError(
                f"{file}: {name!r} is asked for twice with different settings; "
                "run them one after another"
            )
        self.found.setdefault(name, settings)
        return name


def _of_file(path: Path) -> Entry:
    settings = merged(path, known_contents)
    kind = kind_of(settings)
    if kind is None:
        raise ConfigError(f"{path}: defines neither `task` nor `group`; others include it")
    name = settings["group"] if kind == "group" else settings.get("task", path.stem)
    return Entry(str(name), kind, str(path))
