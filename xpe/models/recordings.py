"""An index over files of recorded outputs: what a document's line is, without keeping it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from xpe.errors import DataError, DataFileError, FieldTypeError, MissingFieldError
from xpe.types import Origin


class Line(NamedTuple):
    """One line of a file, and where it stands."""

    content: Mapping[str, Any]
    where: str


class _Spot(NamedTuple):
    file: int
    number: int
    offset: int


@dataclass(frozen=True)
class Recordings:
    """Where the line of each document begins. Memory holds numbers only."""

    files: tuple[Path, ...]
    spots: Mapping[tuple[str | None, int], _Spot]
    digest: str
    handles: tuple[BinaryIO, ...]

    @classmethod
    def read(cls, path: Path, *, by_order: bool) -> Self:
        """Read all lines once, for their ids and a digest.

        Raises
        ------
        DataFileError
            There is no such file, or nothing is recorded in the folder.
        DataError
            A line is no JSON object, or its id is missing, no number, or there twice.
        """
        files = _files(path)
        spots: dict[tuple[str | None, int], _Spot] = {}
        seen = hashlib.sha256()
        for f, file in enumerate(files):
            # A file of samples is named after its task.
            task = file.stem if path.is_dir() or file.parent.name == "samples" else None
            order: dict[str | None, int] = {}
            for number, offset, raw in _lines(file):
                seen.update(raw)
                content = _object(raw, f"{file}:{number}")
                owner = content.get("task", task)
                n = order[owner] = order.get(owner, -1) + 1
                doc_id = n if by_order else _doc_id(content, f"{file}:{number}")
                first = spots.setdefault((owner, doc_id), _Spot(f, number, offset))
                if first.offset != offset or first.file != f:
                    raise DataError(
                        f"{file}:{number}: id {doc_id} is there twice, first at "
                        f"{files[first.file]}:{first.number}"
                    )
        return cls(files, spots, seen.hexdigest(), tuple(file.open("rb") for file in files))

    def line(self, origin: Origin) -> Line:
        """Return the line of a document.

        Raises
        ------
        DataError
            There is none; the message names the document.
        """
        spot = self.spots.get((origin.task, origin.doc_id))
        if spot is None:
            spot = self.spots.get((None, origin.doc_id))
        if spot is None:
            raise DataError(
                f"{', '.join(map(str, self.files[:3]))}: nothing is recorded for id "
                f"{origin.doc_id} of task {origin.task}; {len(self.spots)} ids are there"
            )
        handle = self.handles[spot.file]
        handle.seek(spot.offset)
        where = f"{self.files[spot.file]}:{spot.number}"
        return Line(_object(handle.readline(), where), where)

    def close(self) -> None:
        """Close the files."""
        for handle in self.handles:
            handle.close()


def _files(path: Path) -> tuple[Path, ...]:
    folder = path / "samples" if (path / "samples").is_dir() else path
    files = tuple(sorted(folder.glob("*.jsonl"))) if folder.is_dir() else (path,)
    if not files or not all(file.is_file() for file in files):
        what = "no *.jsonl in this folder" if folder.is_dir() else "there is no such file or folder"
        raise DataFileError(f"recorded outputs {path}: {what}")
    return files


def _lines(file: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and bytes of each line that is not blank."""
    offset = 0
    try:
        with file.open("rb") as data:
            for number, raw in enumerate(data, 1):
                if raw.strip():
                    yield number, offset, raw
                offset += len(raw)
    except OSError as error:
        raise DataFileError(f"recorded outputs {file}: {error.strerror or error}") from error


def _object(raw: bytes, where: str) -> Mapping[str, Any]:
    try:
        content = json.loads(raw.decode("utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{where}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise FieldTypeError(f"{where}: expected an object, got {type(content).__name__}")
    return content


def _doc_id(content: Mapping[str, Any], where: str) -> int:
    value = content.get("doc_id", content.get("id"))
    if value is None:
        raise MissingFieldError(
            f"{where}: no field id or doc_id; by=order takes line n for document n"
        )
    if isinstance(value, bool) or not str(value).isdecimal():
        raise FieldTypeError(
            f"{where}: id must be the number of a document, counted from 0, got {value!r}; "
            "by=order takes line n for document n"
        )
    return int(value)
