"""Functions that a config names by file: code of a task, run only where it is trusted.

In YAML, `!function utils.clean` names `clean` of `utils.py` beside the file. In a finished config
it is `{function: clean, file: …/utils.py, digest: …}`, which is all that is needed to run it again.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import sys
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic.dataclasses import dataclass

from xpe.errors import ConfigError, UnknownNameError, nearest
from xpe.registry import STRICT

_WRITES = {"globals", "setattr", "vars", "locals"}
KEYS = frozenset({"function", "file", "module", "digest"})


@dataclass(frozen=True, config=STRICT)
class Function:
    """A function or class of a Python file, or of a module that can be imported.

    Parameters
    ----------
    function
        Its name.
    file, module
        Where it is defined: one of the two.
    digest
        SHA-256 of the file when the config was finished; a changed file is refused.
    """

    function: str
    file: str | None = None
    module: str | None = None
    digest: str | None = None

    def __post_init__(self) -> None:
        if (self.file is None) == (self.module is None):
            raise ConfigError(f"function {self.function!r}: give either file or module")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it; whatever it raises is its own."""
        return self.resolved(*args, **kwargs)

    @property
    def place(self) -> str:
        """Where it is defined, for messages."""
        return f"{self.function} of {self.file or self.module}"

    @cached_property
    def resolved(self) -> Callable[..., Any]:
        """The function, its module imported on first use.

        Raises
        ------
        ConfigError
            If the module cannot be imported, has changed, or has no such function.
        """
        module = _imported(self.module) if self.module else _loaded(str(self.file), self.digest)
        found = getattr(module, self.function, None)
        if not callable(found):
            raise ConfigError(f"{self.file or self.module} has no function {self.function!r}")
        made: Callable[..., Any] = found
        return made

    def check(self) -> None:
        """Check that the file defines the name, without running it.

        Raises
        ------
        UnknownNameError
            If it does not; names the nearest.
        """
        names = () if self.file is None else _read(self.file, _changed(self.file))[1]
        if names and self.function not in names and "*" not in names:
            close = nearest(self.function, names)
            hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise UnknownNameError(f"{self.file} defines no {self.function!r}.{hint}")


def named(spec: str, folder: Path) -> dict[str, Any]:
    """Return what `!function spec` means in a YAML file of `folder`, as plain values.

    Raises
    ------
    ConfigError
        If neither a file beside it nor a module answers to the name.
    """
    module, _, name = spec.rpartition(".")
    if not module:
        raise ConfigError(f"!function {spec}: expected a module and a name, as utils.clean")
    file = folder / f"{module.replace('.', '/')}.py"
    if file.is_file():
        return {"function": name, "file": str(file), "digest": _digest(str(file))}
    if not _importable(module):
        raise ConfigError(f"!function {spec}: there is no {file}, and no module {module!r}")
    return {"function": name, "module": module}


def is_named(value: Any) -> bool:
    """Whether plain values spell a `Function`."""
    return (
        isinstance(value, Mapping)
        and "function" in value
        and value.keys() <= KEYS
        and len(value) > 1
    )


def functions_in(value: Any) -> list[str]:
    """Return the places of all functions that settings name, however deep."""
    if isinstance(value, Function):
        return [value.place]
    if is_named(value):
        return [f"{value['function']} of {value.get('file') or value.get('module')}"]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (getattr(value, field.name) for field in dataclasses.fields(value) if field.init)
        return [place for inner in fields for place in functions_in(inner)]
    if isinstance(value, Mapping):
        return [place for inner in value.values() for place in functions_in(inner)]
    if isinstance(value, (list, tuple)):
        return [place for inner in value for place in functions_in(inner)]
    return []


def as_function(value: Any) -> Any:
    """Build the function that a setting spells; anything else stays as it is."""
    return Function(**value) if is_named(value) else value


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:
        raise ConfigError(f"module {name} cannot be imported: {_said(error)}") from error


def _loaded(path: str, digest: str | None) -> ModuleType:
    file = Path(path)
    found = _digest(path)
    if digest is not None and digest != found:
        raise ConfigError(f"{path} has changed since this config was finished; start a new run")
    name = _module_name(file)
    if (known := sys.modules.get(name)) is not None and vars(known).get("xpe_digest") == found:
        return known
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    vars(module)["xpe_digest"] = found
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
        raise ConfigError(f"{path} cannot be run: {_said(error)}") from error
    return module


def _module_name(file: Path) -> str:
    """Name a file as its package would, so that its relative imports work."""
    parts = file.resolve().with_suffix("").parts
    if "lm_eval" in parts and "tasks" in parts:
        return ".".join(parts[parts.index("lm_eval") :])
    return f"xpe_task_code_{hashlib.sha256(str(file).encode()).hexdigest()[:16]}"


def _digest(path: str) -> str:
    return _read(path, _changed(path))[0]


def _changed(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


@lru_cache(maxsize=4096)
def _read(path: str, _changed: int) -> tuple[str, frozenset[str]]:
    """Return digest and defined names of a file, once for as long as it stays the same."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return hashlib.sha256(content).hexdigest(), _defined_in(path, content)


@lru_cache(maxsize=256)
def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _defined_in(path: str, content: bytes) -> frozenset[str]:
    """Return the names that a file defines; `*` if it may define others, too."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{path} is not a readable Python file: {error}") from error
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            # A file that writes to globals() may define anything.
            names.add("*" if node.id in _WRITES else node.id if _is_stored(node) else "")
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return frozenset(names)


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _said(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
