"""Bytes to text, and values that JSON does not know."""

from __future__ import annotations

import codecs
from typing import NoReturn

from xpe.errors import ConfigError, DataError

_GZIP = b"\x1f\x8b"


def decode(content: bytes, encoding: str, label: str) -> str:
    """Decode a whole file; a byte-order mark of UTF-8 is dropped.

    Raises
    ------
    DataError
        If a byte does not belong to the encoding; names the line.
    ConfigError
        If Python knows no such encoding.
    """
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise ConfigError(
            f"unknown encoding {encoding!r} for {label}; try utf-8 or gb18030"
        ) from error
    try:
        return content.decode("utf-8-sig" if name == "utf-8" else name)
    except UnicodeDecodeError as error:
        if content.startswith(_GZIP):
            raise DataError(f"{label} is compressed with gzip; unpack it (gunzip)") from error
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{label}, line {line}: byte {error.start} (0x{content[error.start]:02x}) is not "
            f"{name}; say `encoding:` if the file has another one (gb18030 for older Chinese files)"
        ) from error


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which no result file could hold; for `json.loads`."""
    raise ValueError(f"{name} is not JSON; write null")
