"""Which documents of a task are evaluated."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from xpe.errors import ConfigError, DataError


def sample_size(n_docs: int, limit: float | None, *, harness: bool = False) -> int:
    """Return how many of `n_docs` documents a limit leaves.

    An int is a count; a float in (0, 1) is a share, rounded up. `harness` counts as
    lm-evaluation-harness does, where 1.0 is one document.

    Raises
    ------
    ConfigError
        If the limit is neither.
    """
    if limit is None:
        return n_docs
    if harness and limit > 0:
        return min(n_docs, math.ceil(n_docs * limit) if limit < 1 else int(limit))
    if isinstance(limit, float) and 0 < limit < 1:
        # 100 * 0.07 is 7.000000000000001: round up the share that was written.
        return math.ceil(n_docs * Fraction(repr(limit)))
    if isinstance(limit, int) and limit >= 1:
        return min(n_docs, limit)
    raise ConfigError(
        f"limit={limit!r}: expected a count of at least 1 (an integer) or a share between 0 and "
        "1 (as 0.25); leave it out for all documents"
    )


def chosen(
    n_docs: int,
    limit: float | None,
    sample_ids: Sequence[int] | None,
    *,
    harness: bool = False,
) -> Sequence[int]:
    """Return the ids of the documents to evaluate, in ascending order, those of all shards.

    Raises
    ------
    ConfigError
        If both `limit` and `sample_ids` are given, or none or one twice of the latter.
    DataError
        If an id is no document.
    """
    if sample_ids is None:
        return range(sample_size(n_docs, limit, harness=harness))
    if limit is not None:
        raise ConfigError("limit and samples exclude each other; give one of them")
    if not sample_ids or len(set(sample_ids)) < len(sample_ids):
        raise ConfigError(f"samples={list(sample_ids)}: expected one id or more, each once")
    wrong = [doc_id for doc_id in sample_ids if not 0 <= doc_id < n_docs]
    if wrong:
        raise DataError(f"samples: no document {wrong[0]}; the ids are 0 to {n_docs - 1}")
    return sorted(sample_ids)


def checked_shard(text: str | None) -> str | None:
    """Return a shard as it is written, `1/4` for the first of four; None for all documents.

    Raises
    ------
    ConfigError
        If it is anything else.
    """
    if text is not None:
        shard_of(text)
    return text


def shard_of(text: str) -> tuple[int, int]:
    """Return number and count: 1 and 4 for `1/4`; errors as `checked_shard`."""
    found = re.fullmatch(r"(\d+)/(\d+)", str(text), re.ASCII)
    number, count = (int(part) for part in found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise ConfigError(
            f"shard={text}: expected NUMBER/COUNT, from 1/COUNT to COUNT/COUNT, as 1/4"
        )
    return number, count


def sharded(ids: Sequence[int], shard: str | None) -> Sequence[int]:
    """Return the ids of one shard: of four shards the first has the documents 0, 4, 8, …

    Which one a document belongs to depends on its id alone, not on `limit` or `samples`.
    """
    if shard is None:
        return ids
    number, count = shard_of(shard)
    return [doc_id for doc_id in ids if doc_id % count == number - 1]
