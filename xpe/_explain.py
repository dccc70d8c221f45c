"""Turns pydantic's complaints into ours: path, what was got, what was expected."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_type_hints

from pydantic import ValidationError

from xpe.errors import ConfigError, SettingTypeError, UnknownNameError, XpeError, nearest


def build(cls: type[Any], settings: Mapping[str, Any], path: str) -> Any:
    """Return `cls(**settings)`; `path` is where the settings stand (`task.capitals_en`).

    Raises
    ------
    ConfigError
        With the path of each wrong setting, what was got and what was expected.
    """
    try:
        return cls(**settings)
    except ValidationError as error:
        raise translated(error, cls, path) from None
    except XpeError as error:
        raise _located(error, path) from None
    except TypeError as error:
        raise _signature_error(error, cls, settings, path) from error


def translated(error: ValidationError, cls: type[Any], path: str) -> ConfigError:
    """Return the error to raise instead; the most specific class that fits all complaints."""
    faults = [_fault(dict(detail), cls, path) for detail in error.errors()]
    kinds = {type(fault) for fault in faults}
    kind = kinds.pop() if len(kinds) == 1 else ConfigError
    return kind("\n".join(dict.fromkeys(str(fault) for fault in faults)))


def settings_of(cls: Any) -> tuple[str, ...]:
    """Return the names that a class takes as settings; empty if it does not say."""
    return tuple(f.name for f in dataclasses.fields(cls) if f.init) if _is_typed(cls) else ()


def unknown_key(path: str, key: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a key that nothing reads."""
    listed = sorted(known)
    hints = nearest(key, listed)
    full = f"{path}.{key}" if path else key
    hint = f" Did you mean {' or '.join(repr(h) for h in hints)}?" if hints else ""
    return UnknownNameError(f"{full}: no such setting.{hint} Known: {', '.join(listed) or 'none'}")


def _fault(detail: dict[str, Any], cls: type[Any], path: str) -> ConfigError:
    kind, where = detail["type"], tuple(detail["loc"])
    full = _joined(path, where)
    inner = detail.get("ctx", {}).get("error")
    if isinstance(inner, ConfigError):
        located = _located(inner, full)
        return located if isinstance(located, ConfigError) else ConfigError(str(located))
    if kind == "unexpected_keyword_argument":
        owner, parent = _owner(cls, where[:-1]), _joined(path, where[:-1])
        return unknown_key(parent, str(where[-1]), settings_of(owner))
    if kind in {"missing", "missing_argument"}:
        return ConfigError(f"{full}: is needed but not given. Set it with {full}=…")
    wanted = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    wanted = wanted.replace("String should have at least 1 character", "a text that is not empty")
    made = SettingTypeError if kind.endswith(("_type", "_parsing", "_from_float")) else ConfigError
    return made(f"{full}: expected {wanted}, got {_shown(detail['input'])}")


def _joined(path: str, where: Iterable[Any]) -> str:
    """Join a path; parts that name a branch of a union (`int`, `list[str]`) say nothing."""
    parts = [str(part) for part in where]
    plain = [part for part in parts if part.replace("_", "").replace("-", "").isalnum()]
    return ".".join(filter(None, [path, *_without_branches(plain)]))


def _without_branches(parts: list[str]) -> list[str]:
    branches = {"int", "float", "str", "bool", "tuple", "list", "dict"}
    return [p for i, p in enumerate(parts) if not (p in branches and i > 0)]


def _owner(cls: Any, where: Iterable[Any]) -> Any:
    """Return the class that a place inside `cls` holds, as far as type hints tell."""
    for part in where:
        hints = get_type_hints(cls) if _is_typed(cls) else {}
        inside = [t for t in _leaves(hints.get(str(part))) if _is_typed(t)]
        if inside:
            cls = inside[0]
        elif str(part) in hints:
            return None
    return cls


def _leaves(hint: Any) -> list[Any]:
    inner = get_args(hint)
    return [leaf for arg in inner for leaf in _leaves(arg)] if inner else [hint]


def _is_typed(cls: Any) -> bool:
    return isinstance(cls, type) and dataclasses.is_dataclass(cls)


def _located(error: XpeError, path: str) -> XpeError:
    text = str(error)
    error.args = (text if path.rsplit(".", 1)[-1] in text and path in text else f"{path}: {text}",)
    return error


def _signature_error(
    error: TypeError, cls: type[Any], settings: Mapping[str, Any], path: str
) -> ConfigError:
    """Explain a plain class (of a third party) that did not take its arguments."""
    known = settings_of(cls)
    for key in settings:
        if known and key not in known:
            return unknown_key(path, key, known)
    return ConfigError(f"{path}: {cls.__name__} does not take these settings: {error}")


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 80 else text[:77] + '…'} ({type(value).__name__})"
