"""What can go wrong, as one tree.

    XpeError                     everything raised on purpose by xpe
    ├── ConfigError              a setting is wrong                     (ValueError, exit 2)
    │   ├── UnknownNameError     no such task, model, key, option …     (KeyError too)
    │   └── SettingTypeError     a setting of the wrong type            (TypeError too)
    ├── MissingExtraError        an optional package is not installed   (ImportError, exit 2)
    ├── DataError                a file or record is wrong              (ValueError, exit 2)
    │   ├── MissingFieldError    a record lacks a field                 (KeyError too)
    │   ├── FieldTypeError       a field has the wrong type             (TypeError too)
    │   └── DataFileError        a file is missing or unreadable        (OSError too)
    ├── WeightsError             a model folder cannot be loaded        (OSError, exit 2)
    ├── OutputError              the run folder cannot be written       (OSError, exit 2)
    ├── StoreError               the stored replies do not fit the run  (ValueError, exit 2)
    └── EngineError              the model died while it answered       (RuntimeError, exit 1)

Each class also inherits the builtin exception that it replaces, so that callers who catch
`ValueError` or `KeyError` keep working. A message says what was got, what was expected,
where (file and record) and the next step.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class XpeError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line returns."""

    exit_code = 2

    def __str__(self) -> str:
        # KeyError would show the repr of its message.
        return " ".join(str(part) for part in self.args)


class ConfigError(XpeError, ValueError):
    """A setting is wrong; found before any data is read."""


class UnknownNameError(ConfigError, KeyError):
    """A name that nothing answers to; the message lists the nearest known ones."""


class SettingTypeError(ConfigError, TypeError):
    """A setting has the wrong type."""


class MissingExtraError(XpeError, ImportError):
    """An optional package is not installed; the message names the command that installs it."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> MissingExtraError:
        """Say which extra brings `package`, needed by `what`."""
        return cls(
            f"{what} needs the package {package!r}, which is not installed. "
            f"Install it with: python3 -m pip install 'xperteval[{extra}]'"
        )


class DataError(XpeError, ValueError):
    """A file or a record in it is wrong."""


class MissingFieldError(DataError, KeyError):
    """A record lacks a field that is needed."""


class FieldTypeError(DataError, TypeError):
    """A field of a record has the wrong type."""


class DataFileError(DataError, OSError):
    """A data file is missing or cannot be read."""


class WeightsError(XpeError, OSError):
    """A model folder is missing, incomplete or unreadable."""


class OutputError(XpeError, OSError):
    """The run folder cannot be written."""


class StoreError(XpeError, ValueError):
    """The stored replies do not fit this run, or another run holds them."""


class EngineError(XpeError, RuntimeError):
    """The model died while it answered; what is stored is kept."""

    exit_code = 1


def retrieves_nothing(what: str) -> ConfigError:
    """Build the error for a search that a language model is asked to make."""
    return ConfigError(f"{what} searches nothing. Choose retrieval=bm25 or retrieval=http")


def nearest(name: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Return up to `most` names of `known` that look like `name`, best first."""
    names = {known_name.lower(): known_name for known_name in known}
    close = difflib.get_close_matches(name.lower(), names, n=most, cutoff=0.5)
    inside = [low for low in names if len(name) > 2 and name.lower() in low and low not in close]
    return tuple(names[low] for low in (*close, *inside)[:most])


def unknown(what: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Build the error for an unknown `name`: the nearest known ones, then all of them."""
    listed = sorted(known)
    hints = nearest(name, listed)
    hint = f" Did you mean {' or '.join(repr(h) for h in hints)}?" if hints else ""
    return UnknownNameError(f"unknown {what} {name!r}.{hint} Known: {', '.join(listed) or 'none'}")
