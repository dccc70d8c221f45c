"""Documents made by a function of a task, called once; documents that a config lists."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from xpe.data.code import Function
from xpe.data.documents import Documents
from xpe.errors import ConfigError, DataError

_SEEDS = 0, 1234
"""Of `random` and of numpy: a function that shuffles gives the same order each time."""


def processed(make: Function | None, documents: Documents) -> Documents:
    """Return what a function makes of a data set; it gets a `datasets.Dataset`.

    The global generators are seeded before the call and put back after it, so that the order of
    tasks does not matter.

    Raises
    ------
    DataError
        If the function fails, or gives no documents.
    """
    if make is None:
        return documents
    with _seeded():
        try:
            rows = make.resolved(_data_set(documents))
            rows = rows if hasattr(rows, "column_names") else list(rows)
        except ConfigError:
            raise
        except Exception as error:
            raise DataError(
                f"{documents.label}: process_docs, {make.place}, fails: "
                f"{type(error).__name__}: {error}"
            ) from error
    if not len(rows):
        raise DataError(f"{documents.label}: process_docs, {make.place}, leaves no documents")
    told = f"{make.function} {make.digest or make.module}"
    digest = hashlib.sha256(f"{documents.digest} {told}".encode()).hexdigest()
    return Documents(rows, documents.label, digest, f"{documents.identity} {told}", "document")


def listed(samples: Sequence[Mapping[str, Any]] | Function, label: str) -> Documents:
    """Return documents that stand in a config, or that a function gives.

    Raises
    ------
    DataError
        If the function fails.
    """
    rows = samples
    if isinstance(samples, Function):
        try:
            rows = list(samples())
        except ConfigError:
            raise
        except Exception as error:
            raise DataError(f"{samples.place} fails: {type(error).__name__}: {error}") from error
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()
    return Documents(rows, label, digest, digest, "entry")  # type: ignore[arg-type]


def _data_set(documents: Documents) -> Any:
    if hasattr(documents.rows, "column_names"):
        return documents.rows
    import datasets

    return datasets.Dataset.from_list([dict(row) for row in documents.rows])


@contextmanager
def _seeded() -> Iterator[None]:
    of_random, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(_SEEDS[0])
    np.random.seed(_SEEDS[1])  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(of_random)
        np.random.set_state(of_numpy)  # noqa: NPY002
