"""Apache Parquet."""

from __future__ import annotations

from xpe.data.documents import File, Rows
from xpe.errors import DataError


def read(file: File) -> Rows:
    """Read all rows of a Parquet file.

    Raises
    ------
    DataError
        If the file is not Parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(pa.BufferReader(file.content)).to_pylist()
    except pa.ArrowException as error:
        raise DataError(f"{file.label}: not a readable Parquet file ({error})") from error
    return Rows(rows, "row", range(1, len(rows) + 1))
