"""Bytes to text, and values that JSON does not know."""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, NoReturn

from xpe.errors import ConfigError, DataError

_SURROGATE = re.compile("[\ud800-\udfff]")

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


def parse(text: str) -> Any:
    """Read JSON that every result file can hold.

    Raises
    ------
    ValueError
        For what is not JSON, NaN and Infinity (also as 1e999), and half a surrogate pair, which
        is no character: no model can be asked it, and no file holds it.
    """
    found = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    # Only an escape can bring one in, since the text itself was decoded.
    escaped = "\\ud" in text or "\\uD" in text
    if escaped and (half := _SURROGATE.search(json.dumps(found, ensure_ascii=False))):
        raise ValueError(f"\\u{ord(half[0]):04x} is half a character (of an emoji that was cut?)")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON; write null")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text:.40} is too large for a number; write null")
    return value
