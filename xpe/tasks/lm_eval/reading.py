"""YAML files of lm-evaluation-harness: includes merged, functions named, nothing interpreted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from xpe.errors import ConfigError, DataFileError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def merged(path: Path, read: Callable[[Path], Mapping[str, Any]]) -> dict[str, Any]:
    """Return a file with what it includes: later includes override earlier, its own keys win.

    A file may be included twice by different ways, but not by itself.

    Parameters
    ----------
    read
        Reads one file: `contents`, or `outline` where functions do not matter.

    Raises
    ------
    ConfigError
        If a file includes itself.
    DataFileError
        If a file is missing or not YAML.
    """
    return _merged(path.resolve(), read, ())


def contents(path: Path) -> Mapping[str, Any]:
    """Read one file; `!function` becomes what `named` gives. Errors as `merged`."""
    return _read(path, _Named)


def outline(path: Path) -> Mapping[str, Any]:
    """Read one file; `!function` becomes True, so that nothing is looked up."""
    return _read(path, _Outline)


def known_contents(path: Path) -> Mapping[str, Any]:
    """Read as `contents` does, once for as long as the file stays the same."""
    try:
        status = path.stat()
    except OSError:
        return contents(path)
    return _known(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _known(path: Path, _changed: int, _size: int) -> Mapping[str, Any]:
    return contents(path)


class _Named(_LOADER):  # type: ignore[misc]
    """Names the functions of a file by where they are defined."""

    folder: Path


class _Outline(_LOADER):  # type: ignore[misc]
    """Does not look at functions."""

    folder: Path


def _function(loader: Any, node: Any) -> Any:
    # With pydantic behind it, the import takes a fourth of the time of `xpe ls tasks`.
    from xpe.data.code import named

    return named(str(node.value), loader.folder)


_Named.add_constructor("!function", _function)
_Outline.add_constructor("!function", lambda _loader, _node: True)


def _merged(
    path: Path, read: Callable[[Path], Mapping[str, Any]], above: tuple[Path, ...]
) -> dict[str, Any]:
    if path in above:
        chain = " > ".join(file.name for file in (*above, path))
        raise ConfigError(f"{path}: includes itself: {chain}")
    own = dict(read(path))
    stated = own.pop("include", None) or []
    includes = stated if isinstance(stated, list) else [stated]
    found: dict[str, Any] = {}
    for include in includes:
        found |= _merged((path.parent / str(include)).resolve(), read, (*above, path))
    # It names the tasks of the included file alone.
    found.pop("task_list", None)
    return found | own


def _read(path: Path, kind: type[Any]) -> Mapping[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror}") from error
    loader = kind(content)
    loader.folder = path.parent
    try:
        found = loader.get_single_data()
    except yaml.YAMLError as error:
        raise DataFileError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    finally:
        loader.dispose()
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: expected a mapping, got {type(found).__name__}")
    return found
