"""One entry of a config to the tasks and groups that it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from xpe.errors import ConfigError
from xpe.registry import STRICT
from xpe.tasks.lm_eval.index import Index, index_of, library
from xpe.tasks.lm_eval.naming import Resolver
from xpe.tasks.lm_eval.translate import Plain, check_functions


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, (str, Path)) else given or ()


@dataclass(frozen=True, config=STRICT)
class LmEval:
    """What `task.lm_eval` says.

    Parameters
    ----------
    names
        Tasks, groups, tags, globs, YAML files; a mapping is a task or group written in place.
    include_path
        Folders of YAML files, the strongest last.
    include_defaults
        Whether the tasks of the installed package lm_eval are known, too.
    metadata
        Joined to the metadata of every task: functions that make data get it as arguments.
    overrides
        Keys of the YAML format that win over those of every task.
    """

    names: Annotated[tuple[str | dict[str, Any], ...], BeforeValidator(_listed)] = ()
    include_path: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    include_defaults: bool = True
    metadata: dict[str, Any] = Field(default_factory=dict)
    overrides: dict[str, Any] = Field(default_factory=dict)

    @property
    def index(self) -> Index:
        """All names in the folders.

        Raises
        ------
        ConfigError
            If a folder does not exist, or there is none.
        """
        own = library() if self.include_defaults else None
        folders = [*([own] if own else []), *map(Path, self.include_path)]
        return index_of(folders)

    def expanded(self, compat: str | None, note: Callable[[str], None]) -> dict[str, Plain]:
        """Return the settings of the tasks and groups, by name.

        Raises
        ------
        ConfigError
            If a name is unknown or a definition is wrong; names the file.
        """
        if not self.names:
            raise ConfigError(
                "names: no task is named. Name some: 'task.lm_eval.names=[hellaswag,mmlu]'; "
                "`xpe ls tasks` lists those that are installed"
            )
        resolver = Resolver(self.index, self.metadata, self.overrides, compat, note)
        resolver.add(self.names)
        for settings in resolver.found.values():
            check_functions(settings)
        return resolver.found
