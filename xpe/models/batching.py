"""The loop of every model that answers in batches: pull a wave, plan it, run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xpe.store import waves
from xpe.types import Asked, Batched, Reply


def replies(model: Batched, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
    """Answer all that is asked, a wave at a time, a batch at a time; see `types.Model.reply`."""
    for wave in waves(asked):
        if not wave:
            yield None
        for batch in model.plan(wave):
            yield from zip(batch, model.run(batch), strict=True)
