"""The documents of a data set, each with the place that an error message names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple


@dataclass(frozen=True)
class File:
    """The bytes of a data file and how to read them; `label` names it in messages."""

    content: bytes
    label: str
    encoding: str = "utf-8"
    delimiter: str | None = None
    columns: tuple[str, ...] | None = None
    key: str | None = None


class Rows(NamedTuple):
    """What a reader gives: the rows, what one is called, and their numbers in the file."""

    rows: Sequence[Mapping[str, Any]]
    unit: str
    numbers: Sequence[int]


@dataclass(frozen=True)
class Documents(Sequence[Mapping[str, Any]]):
    """A data set: a sequence of mappings.

    Attributes
    ----------
    label
        The file or data set, as messages name it.
    digest
        SHA-256 of what was read, in hex.
    identity
        Equal for two data sets that are the same rows in the same order: pool and documents.
    """

    rows: Sequence[Mapping[str, Any]]
    label: str
    digest: str
    identity: str
    unit: str = "record"
    numbers: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def where(self, index: int) -> str:
        """Name the place of a document: `file.jsonl, line 12`."""
        number = index + 1 if self.numbers is None else self.numbers[index]
        return f"{self.label}, {self.unit} {number}"

    def record(self, index: int) -> Record:
        """Return a document with its place."""
        if index not in self._records:
            self._records[index] = Record(self.rows[index], self, index)
        return self._records[index]

    @cached_property
    def _records(self) -> dict[int, Record]:
        # A memory-mapped row is decoded each time it is read.
        return {}

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields that any document has."""
        columns = getattr(self.rows, "column_names", None)
        if columns is not None:
            return frozenset(columns)
        return frozenset().union(*self.rows)


@dataclass(frozen=True, slots=True)
class Record:
    """A document and where it stands."""

    doc: Mapping[str, Any]
    documents: Documents
    index: int

    @property
    def place(self) -> str:
        """Where the document stands, for messages."""
        return self.documents.where(self.index)
