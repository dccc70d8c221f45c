"""Where config files lie and what they offer. Imports nothing, so that `xpe ls` is quick."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from xpe.errors import ConfigError


def user_folders() -> tuple[Path, ...]:
    """Return the folders whose configs shadow ours, the strongest first.

    `./conf` counts only if no YAML lies at its own top level: inside another Hydra project it
    would bring that project's `config.yaml` along.

    Raises
    ------
    ConfigError
        If a folder that `$XPE_CONFIG_PATH` names does not exist.
    """
    here = Path.cwd() / "conf"
    folders = [here] if here.is_dir() and not any(here.glob("*.y*ml")) else []
    for text in filter(None, os.environ.get("XPE_CONFIG_PATH", "").split(os.pathsep)):
        folder = Path(text).expanduser().resolve()
        if not folder.is_dir():
            raise ConfigError(
                f"$XPE_CONFIG_PATH names {text!r}, which is not a folder. "
                f"Create it or take it out (folders are separated by {os.pathsep!r})"
            )
        folders.append(folder)
    home = _home_config()
    return (*folders, home) if home is not None and home.is_dir() else tuple(folders)


def packaged_folder() -> Path:
    """Return the folder of the configs that ship with xpe."""
    spec = find_spec("xpe.conf")
    if spec is None or spec.origin is None:
        raise ConfigError("the package xpe.conf is missing: xpe is not installed whole")
    return Path(spec.origin).parent


def config_folders() -> tuple[Path, ...]:
    """Return all folders that configs are searched in, the strongest first."""
    return (*user_folders(), packaged_folder())


def options(group: str) -> dict[str, Path]:
    """Return what may be chosen in a group: name to file. Names that begin with `_` are bases."""
    found: dict[str, Path] = {}
    for folder in config_folders():
        root = folder / group
        for file in sorted(root.rglob("*.yaml")):
            name = file.relative_to(root).with_suffix("").as_posix()
            if not any(part.startswith("_") for part in name.split("/")):
                found.setdefault(name, file)
    return dict(sorted(found.items()))


def _home_config() -> Path | None:
    if base := os.environ.get("XDG_CONFIG_HOME"):
        return Path(base) / "xpe"
    try:
        return Path.home() / ".config" / "xpe"
    except RuntimeError:
        return None
