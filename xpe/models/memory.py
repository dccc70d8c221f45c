"""What to do when memory runs out: less at once."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xpe.types import Failure

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

_SIGNS = ("out of memory", "can't allocate memory", "cannot allocate memory", "alloc_failed")


@dataclass
class Halving:
    """Runs all items at once; where memory runs out, each half, down to single items.

    An item that does not fit alone gives a Failure of kind `memory`. Other errors pass. `splits`
    counts how often memory ran out: the last digits of the results depend on it.
    """

    splits: int = 0

    def __call__(
        self, run: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]
    ) -> list[Result | Failure]:
        try:
            return list(run(items))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            message = f"not enough memory for this request alone: {error}"
        # Out of the handler: the traceback no longer holds the tensors of the failed try.
        free()
        self.splits += 1
        if len(items) == 1:
            return [Failure("memory", message)]
        log.warning("out of memory with %d requests at once; trying half of them", len(items))
        middle = len(items) // 2
        return self(run, items[:middle]) + self(run, items[middle:])


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory ran out, on the CPU or an accelerator."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(sign in text for sign in _SIGNS)


def free() -> None:
    """Give back what torch holds and nobody uses."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
