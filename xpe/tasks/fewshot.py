"""Few-shot examples: the pool they come from and which of them a document gets."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from pydantic.dataclasses import dataclass

from xpe.data.code import Function
from xpe.data.documents import Documents, Record
from xpe.data.source import Source
from xpe.errors import DataError
from xpe.registry import STRICT
from xpe.seeds import generator
from xpe.tasks.template import Template
from xpe.tasks.texts import Texts


@dataclass(frozen=True, config=STRICT)
class Fewshot:
    """Where examples come from, how they are chosen, and what differs in their texts.

    Parameters
    ----------
    source, split, samples
        The pool: a data set of its own, another split of the task's, or a list of documents (or
        a function that gives one); without any of them, the documents of the task.
    sampler
        `random` (also called `default`) draws for each document, `first_n` takes the first.
    doc_to_text, doc_to_target, doc_to_choice, gen_prefix, target_delimiter, fewshot_delimiter
        Where examples differ from the task.
    exclude
        Under `compat: lm_eval` alone: whether a document is kept out of its own examples.
        None decides as the harness does: when pool and documents name the same split.
    process_docs
        A function that makes the pool of the data set; None: the task's own.
    """

    source: Source | None = None
    split: str | None = None
    samples: tuple[dict[str, Any], ...] | Function | None = None
    sampler: Literal["random", "default", "first_n"] = "random"
    doc_to_text: Template | None = None
    doc_to_target: Template | None = None
    doc_to_choice: Template | None = None
    gen_prefix: str | None = None
    target_delimiter: str | None = None
    fewshot_delimiter: str | None = None
    exclude: bool | None = None
    process_docs: Function | None = None

    def texts(self, task: Texts) -> Texts:
        """Return the templates of examples: the task's where nothing else is said."""
        names = Texts.__dataclass_fields__
        stated = {name: getattr(self, name) for name in names}
        own = {name: value for name, value in stated.items() if value is not None}
        return Texts(**{name: own.get(name, getattr(task, name)) for name in names})


class Draws:
    """Which examples of a pool each document gets.

    The examples depend on seed, task name and document id alone: neither other documents nor
    `limit` move them. A document is never its own example: not by index where the pool is the
    same data, and not by content (`same`) whatever the pool.
    """

    def __init__(
        self, pool: Documents, documents: Documents, same: Callable[[Record, Record], bool]
    ) -> None:
        self._pool = pool
        self._documents = documents
        self._same = same
        self._own = pool.identity == documents.identity

    def random(self, doc_id: int, n: int, seed: int, task: str) -> tuple[int, ...]:
        """Draw `n` examples without replacement.

        Raises
        ------
        DataError
            If the pool has too few besides the document itself.
        """
        draw = generator(seed, "fewshot", task, doc_id)
        return self._take(doc_id, n, _distinct(draw, len(self._pool)))

    def first(self, doc_id: int, n: int) -> tuple[int, ...]:
        """Take the first `n` examples; errors as `random`."""
        return self._take(doc_id, n, iter(range(len(self._pool))))

    def _take(self, doc_id: int, n: int, order: Iterator[int]) -> tuple[int, ...]:
        record = self._documents.record(doc_id)
        taken: list[int] = []
        for index in order:
            if len(taken) == n:
                break
            if not (self._own and index == doc_id) and not self._same(
                record, self._pool.record(index)
            ):
                taken.append(index)
        if len(taken) < n:
            raise too_few(n, len(taken), self._pool, record.place)
        return tuple(taken)


def _distinct(draw: random.Random, size: int) -> Iterator[int]:
    """Yield every index once in a random order, paying only for what is taken."""
    seen: set[int] = set()
    while len(seen) < size:
        index = draw.randrange(size)
        if index not in seen:
            seen.add(index)
            yield index


def harness_draws(
    pool: Sequence[Any],
    docs: Sequence[Any],
    n: int,
    seed: int | None,
    *,
    sampler: str = "default",
    exclude: bool = False,
) -> Iterator[tuple[int, ...]]:
    """Yield the examples that lm-evaluation-harness gives each document, one after another.

    One generator is advanced through all documents, so that a draw depends on those before it.

    Parameters
    ----------
    pool, docs
        The pool, and the documents in the order in which they are asked.
    exclude
        Whether a document that is equal to an example is kept out; the draw then takes one more.

    Raises
    ------
    ValueError
        If the pool is smaller than the draw.
    DataError
        If too few are left.
    """
    draw = random.Random(seed)
    for doc in docs:
        order: Sequence[int] = range(len(pool))
        if sampler != "first_n":
            order = draw.sample(order, n + exclude)
        kept = [index for index in order if not (exclude and pool[index] == doc)]
        if len(kept) < n:
            raise DataError(f"the few-shot pool has {len(kept)} examples, {n} are needed")
        yield tuple(kept[:n])


def too_few(n: int, found: int, pool: Documents, place: str) -> DataError:
    """Build the error for a pool that is too small."""
    return DataError(
        f"num_fewshot={n}, but {pool.label} has {found} examples for {place} (the document "
        f"itself is never one); use num_fewshot={found}{' or fewer' if found else ''}, or a larger "
        "pool"
    )
