"""One JSON document: a list of objects, or an object that holds such a list."""

from __future__ import annotations

import json
from typing import Any

from xpe.data import jsonl
from xpe.data.decoding import decode, parse
from xpe.data.documents import File, Rows
from xpe.errors import DataError, FieldTypeError


def read(file: File) -> Rows:
    """Read a list of objects, at the top or under `file.key`.

    Files named `.json` that hold one object a line are common; they are read as JSON Lines.

    Raises
    ------
    DataError
        If the file is not JSON; names file, line and column.
    FieldTypeError
        If there is no list, or something in it is not an object.
    """
    text = decode(file.content, file.encoding, file.label)
    try:
        found = parse(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            return jsonl.read(file)
        raise DataError(
            f"{file.label}, line {error.lineno}, column {error.colno}: not JSON ({error.msg})"
        ) from error
    except ValueError as error:
        raise DataError(f"{file.label}: {error}") from error
    rows = _rows(found, file)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise FieldTypeError(
                f"{file.label}, record {number}: expected an object, got {type(row).__name__}"
            )
    return Rows(rows, "record", range(1, len(rows) + 1))


def _rows(found: Any, file: File) -> list[Any]:
    if isinstance(found, list):
        return found
    lists = (
        {k: v for k, v in found.items() if isinstance(v, list)} if isinstance(found, dict) else {}
    )
    if file.key in lists:
        return lists[file.key]
    if file.key is None and len(lists) == 1:
        return next(iter(lists.values()))
    raise FieldTypeError(
        f"{file.label}: expected a list of objects, got {type(found).__name__}"
        + (f" with the lists {', '.join(map(repr, lists))}; name one as `split:`" if lists else "")
    )
