"""What was typed: quoting what Hydra's grammar rejects, and checking names before Hydra does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, QuotedString
from hydra.errors import HydraException

from xpe._explain import unknown_key
from xpe._folders import options
from xpe.errors import ConfigError, SettingTypeError, UnknownNameError, nearest

LISTS = re.compile(r"\[|\{(?!\{)")
"""How a list or mapping begins, which the user has to quote inside; `{{` is Jinja."""

_SPACED_HEADER = re.compile(r"#\s*@package[ \t]+\S+[ \t]+\S")
"""A header that Hydra refuses: it splits the line at spaces."""


def parsed(text: str) -> Override | None:
    """Return one parsed override, None if Hydra's grammar rejects it."""
    try:
        return OverridesParser.create().parse_overrides([text])[0]
    except HydraException:
        return None


def quoted(overrides: Sequence[str], *, multirun: bool) -> list[tuple[str, bool]]:
    """Return each override in a form that Hydra reads, and whether it had to be quoted.

    A value with Chinese, `=`, `#` and the like is quoted; in a multirun each item of a
    comma-separated list by itself, else the list would become one text.

    Raises
    ------
    ConfigError
        If quoting the value does not help.
    """
    return [_quoted(text, multirun) for text in overrides]


def check_choices(overrides: Sequence[str], names: Sequence[str], groups: Sequence[str]) -> None:
    """Raise for a root key or an option of a group that does not exist, naming the nearest.

    Raises
    ------
    UnknownNameError
        With the known names. Globs and interpolations are left to Hydra.
    ConfigError
        If a value is no name, or Hydra could not read the file that it names.
    """
    for text in overrides:
        override = parsed(text)
        if override is None:
            continue
        key = str(override.key_or_group)
        root = re.split(r"[./]", key, maxsplit=1)[0]
        if root not in (*names, *groups, "hydra"):
            raise unknown_key("", root, {*names, *groups})
        if key in groups:
            for choice in _choices(override.value(), key):
                _check_choice(key, choice)


def _check_choice(group: str, choice: str) -> None:
    known = options(group)
    if choice in known:
        _check_file(known[choice])
    if choice in known or "${" in choice or choice.startswith("_"):
        return
    hints = nearest(choice, known)
    hint = f" Did you mean {' or '.join(repr(h) for h in hints)}?" if hints else ""
    raise UnknownNameError(
        f"{group}={choice}: there is no {group} {choice!r}.{hint} "
        f"Known: {', '.join(known) or 'none'}"
    )


def _check_file(file: Path) -> None:
    """Refuse what Hydra stumbles over, and what it would take for a file without a header."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    if text.startswith("\ufeff"):
        raise ConfigError(f"{file} begins with a byte-order mark; save it as UTF-8 without one")
    if not text.strip():
        raise ConfigError(f"{file} is empty; expected settings")
    if _SPACED_HEADER.match(text):
        raise ConfigError(
            f"{file}: the first line names {text.splitlines()[0].split(maxsplit=2)[2]!r}; "
            "expected a name without spaces"
        )


def _choices(value: Any, group: str) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, QuotedString):
        yield value.text
    elif isinstance(value, (ChoiceSweep, list)):
        for item in value.list if isinstance(value, ChoiceSweep) else value:
            yield from _choices(item, group)
    elif value is None or isinstance(value, (int, float, dict)):
        raise SettingTypeError(
            f"{group}: expected a name ({', '.join(options(group))}), got {value}; "
            f"a single setting is written {group}.NAME=…"
        )


def _quoted(text: str, multirun: bool) -> tuple[str, bool]:
    override = parsed(text)
    key, equals, value = text.partition("=")
    if override is not None:
        if not multirun and override.is_sweep_override():
            raise ConfigError(
                f"{text}: several values are a sweep, which needs -m. "
                f"For one value with commas write '{key}=\"{value}\"', for a list '{key}=[{value}]'"
            )
        return text, False
    if not equals or not key.isascii():
        raise ConfigError(
            f"{text!r} is not a setting: expected key=value, with the key in ASCII letters"
        )
    items = _items(value) if multirun else [value]
    attempt = f"{key}={','.join(_quoted_item(key, item) for item in items)}"
    if LISTS.match(value) or parsed(attempt) is None:
        raise ConfigError(
            f"{text!r} cannot be read: check its brackets and quotes. Text with other than "
            f'ASCII letters inside a list or mapping needs quotes: \'{key}=["北京","上海"]\''
        )
    return attempt, True


def _quoted_item(key: str, item: str) -> str:
    if item.startswith(("'", '"')) or LISTS.match(item) or parsed(f"{key}={item}") is not None:
        return item
    return '"' + _escaped(item) + '"'


def _escaped(item: str) -> str:
    """Escape quotes, and the backslashes that stand before a quote or at the end."""
    text = re.sub(r'(\\*)"', lambda found: found[1] * 2 + '\\"', item)
    return text + "\\" * (len(text) - len(text.rstrip("\\")))


def _items(value: str) -> list[str]:
    """Split at the commas that stand outside of quotes and brackets."""
    items, depth, quote, start = [], 0, "", 0
    for place, char in enumerate(value):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in ")}]":
            depth -= 1
        elif char == "," and depth == 0:
            items.append(value[start:place])
            start = place + 1
    return [*items, value[start:]]
