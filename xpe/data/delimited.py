"""CSV and TSV: a header and rows of text."""

from __future__ import annotations

import csv
import io

from xpe.data.decoding import decode
from xpe.data.documents import File, Rows
from xpe.errors import DataError

_LONGEST_FIELD = 2**31 - 1


def read(file: File) -> Rows:
    """Read rows of text; the first names the columns unless `file.columns` does.

    Every value stays text. Blank rows are skipped. A row's number counts rows, the header not.

    Raises
    ------
    DataError
        If a row has more or fewer values than there are columns, or quotes do not close.
    """
    text = decode(file.content, file.encoding, file.label)
    # The limit is 128 KiB unless said otherwise, and it is global: put it back.
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        table = list(
            csv.reader(io.StringIO(text, newline=""), delimiter=file.delimiter or ",", strict=True)
        )
    except csv.Error as error:
        raise DataError(f"{file.label}: not delimited text ({error})") from error
    finally:
        csv.field_size_limit(limit)
    header = list(file.columns) if file.columns else next(iter(table), [])
    body = table if file.columns else table[1:]
    if len(set(header)) < len(header):
        raise DataError(f"{file.label}: a column is named twice in the header {header}")
    numbered = [(number, row) for number, row in enumerate(body, 1) if row]
    for number, row in numbered:
        if len(row) != len(header):
            raise DataError(
                f"{file.label}, row {number}: {len(row)} values for {len(header)} columns {header}"
            )
    rows = [dict(zip(header, row, strict=True)) for _, row in numbered]
    return Rows(rows, "row", [number for number, _ in numbered])


def read_tabs(file: File) -> Rows:
    """Read tab-separated text, as `read` does."""
    tabs = File(file.content, file.label, file.encoding, file.delimiter or "\t", file.columns)
    return read(tabs)
