"""Where documents come from: a file, a folder, a file of the package, or the Hub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.data import delimited, hub, json_document, jsonl, parquet
from xpe.data.code import Function
from xpe.data.documents import Documents, File, Rows
from xpe.errors import DataError, DataFileError, nearest
from xpe.registry import STRICT

Format = Literal["auto", "jsonl", "json", "csv", "tsv", "parquet", "hub"]

READERS: Mapping[str, Callable[[File], Rows]] = {
    "jsonl": jsonl.read,
    "json": json_document.read,
    "csv": delimited.read,
    "tsv": delimited.read_tabs,
    "parquet": parquet.read,
}
_SHIPPED = "shipped:"
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_MANY = 10


@dataclass(frozen=True, config=STRICT)
class Source:
    """A data set and how to read it.

    Parameters
    ----------
    path
        A file, a folder (of `save_to_disk`, or one file a split), a Hub id, or
        `shipped:NAME.jsonl` for a file of the package. `{split}` in it is replaced.
    format
        `auto` goes by the ending. `hub` reads what it finds through the library `datasets`, files
        included, so that columns have the types that it gives them.
    name
        The subset of a Hub data set; in a folder, a folder inside it.
    split
        Of a Hub data set or a folder; a single file has none. In a JSON document, the key of
        the list. Where there are several and none is named: test, else validation.
    revision
        Of a Hub data set.
    encoding
        Of text files. A UTF-8 byte-order mark is dropped.
    delimiter, columns
        Of delimited text; `columns` names them where the file has no header.
    kwargs
        Further arguments of `datasets.load_dataset`, or those of `make`.
    make
        A function that gives the data set by split; nothing is read from `path` then.
    """

    path: str = Field(min_length=1)
    format: Format = "auto"
    name: str | None = None
    split: str | None = None
    revision: str | None = None
    encoding: str = "utf-8"
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    columns: tuple[str, ...] | None = None
    kwargs: dict[str, Any] = Field(default_factory=dict)
    make: Function | None = None

    def load(self, remap: Mapping[str, str] | None = None) -> Documents:
        """Read the documents.

        Parameters
        ----------
        remap
            Hub id or path to the local path that is read in its place.

        Raises
        ------
        DataFileError
            If there is no such file or data set; lists the nearest names.
        DataError
            If the content is broken or there is no document.
        """
        documents = self._load(remap or {})
        if not documents:
            raise DataError(f"{documents.label} has no documents; expected at least one")
        return documents

    def _load(self, remap: Mapping[str, str]) -> Documents:
        if self.make is not None:
            return hub.made(self.make, self.kwargs, self.split)
        located = remap.get(self.path, self.path).replace("{split}", self.split or "")
        if located.startswith(_SHIPPED):
            return self._shipped(located.removeprefix(_SHIPPED))
        path = Path(located).expanduser()
        if path.is_file():
            return self._file(path)
        if path.is_dir():
            return self._folder(path)
        ending = path.suffix.removeprefix(".") in READERS
        if not _HUB_ID.fullmatch(located) or self.path in remap or self._is_file(ending=ending):
            raise _missing(path)
        return hub.read(located, self.name, self.split, self.revision, self.kwargs)

    def _is_file(self, *, ending: bool) -> bool:
        return ending if self.format == "auto" else self.format != "hub"

    def _shipped(self, name: str) -> Documents:
        folder = files("xpe.data") / "shipped"
        if not (folder / name).is_file():
            names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
            raise DataFileError(f"no file {name!r} ships with xpe.{_hint(name, names)}")
        return self._parse((folder / name).read_bytes(), name, identity=f"{_SHIPPED}{name}")

    def _file(self, path: Path) -> Documents:
        if self.format == "hub":
            return hub.read_file(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataFileError(f"cannot read {path}: {error.strerror}") from error
        return self._parse(content, path.name, identity=str(path.resolve()))

    def _folder(self, folder: Path) -> Documents:
        if self.name and (folder / self.name).is_dir():
            return replace(self, path=str(folder / self.name), name=None).load()
        if hub.is_saved(folder):
            return hub.read_saved(folder, self.split)
        for ending in READERS:
            file = folder / f"{self.split}.{ending}"
            if self.split and file.is_file():
                return self._file(file)
        return hub.read(str(folder), self.name, self.split, None, self.kwargs)

    def _parse(self, content: bytes, label: str, *, identity: str) -> Documents:
        format = Path(label).suffix.removeprefix(".") if self.format == "auto" else self.format  # noqa: A001
        if format not in READERS:
            raise DataError(
                f"{label}: cannot tell the format from the ending; say `format:` "
                f"({', '.join(READERS)}), and unpack what is compressed"
            )
        file = File(content, label, self.encoding, self.delimiter, self.columns, self.split)
        rows, unit, numbers = READERS[format](file)
        if format == "json" and self.split:
            identity = f"{identity}#{self.split}"
        digest = hashlib.sha256(content).hexdigest()
        return Documents(rows, label, digest, identity, unit, numbers)


def _missing(path: Path) -> DataFileError:
    folder = path.parent
    if not folder.is_dir():
        return DataFileError(f"no file {path}: there is no folder {folder}")
    return DataFileError(f"no file {path}.{_hint(path.name, [p.name for p in folder.iterdir()])}")


def _hint(name: str, names: list[str]) -> str:
    close = nearest(name, names) or tuple(sorted(names))[:_MANY]
    return f" There is: {', '.join(close)}" if close else " The folder is empty"
