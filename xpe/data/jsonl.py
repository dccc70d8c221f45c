"""JSON Lines: one object a line."""

from __future__ import annotations

import json
from typing import Any

from xpe.data.decoding import decode, parse
from xpe.data.documents import File, Rows
from xpe.errors import DataError, FieldTypeError


def read(file: File) -> Rows:
    """Read the objects of a file. Blank lines are skipped, and counted in line numbers.

    Raises
    ------
    DataError
        If a line is not JSON; names file, line and column.
    FieldTypeError
        If a line is JSON but not an object.
    """
    # str.splitlines would also split at U+2028, which JSON allows inside strings.
    lines = decode(file.content, file.encoding, file.label).split("\n")
    numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
    rows = [_parse(lines[number - 1], f"{file.label}, line {number}") for number in numbers]
    return Rows(rows, "line", numbers)


def _parse(line: str, place: str) -> dict[str, Any]:
    try:
        row = parse(line)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{place}, column {error.colno}: not JSON ({error.msg}); the line begins {line[:60]!r}"
        ) from error
    except ValueError as error:
        raise DataError(f"{place}: {error}") from error
    if not isinstance(row, dict):
        raise FieldTypeError(
            f'{place}: expected an object such as {{"question": …}}, got {type(row).__name__}'
        )
    return row
