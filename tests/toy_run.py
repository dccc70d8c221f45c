"""Run xpe's command line with a model that counts what it is asked: `python toy_run.py WORDS`.

The model writes one line a batch, before it answers, to the file that `TOY_LOG` names. It is as
slow as `TOY_SECONDS` a batch, so that a test can stop it in the middle.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic.dataclasses import dataclass

from xpe.cli import main
from xpe.errors import EngineError
from xpe.models.batching import replies
from xpe.registry import MODELS, STRICT
from xpe.types import Asked, Failure, Generate, Generated, LogLikelihood, Reply, Rolling, Scored


@dataclass(frozen=True, config=STRICT)
class Toy:
    """Answers by a hash of the question; every log likelihood depends on its batch."""

    size: int = 7
    fails: tuple[int, ...] = ()
    dies_at: int | None = None
    weights: str = "w0"

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"backend": "toy", "weights": self.weights}

    def reply(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        return replies(self, asked)

    def plan(self, asked: Sequence[Asked]) -> Sequence[tuple[Asked, ...]]:
        return [tuple(asked[i : i + self.size]) for i in range(0, len(asked), self.size)]

    def run(self, batch: tuple[Asked, ...]) -> tuple[Reply, ...]:
        ids = [f"{one.origin.task}/{one.origin.doc_id}" for one in batch]
        with Path(os.environ["TOY_LOG"]).open("a") as log:
            log.write(" ".join(ids) + "\n")
        time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
        if self.dies_at is not None and any(one.origin.doc_id == self.dies_at for one in batch):
            raise EngineError("the toy engine died")
        seed = ",".join(ids)
        return tuple(self._one(one, seed) for one in batch)

    def _one(self, one: Asked, seed: str) -> Reply:
        if one.origin.doc_id in self.fails:
            return Failure("server", "500")
        match one.request:
            case Generate():
                return Generated(f"答案是{one.origin.doc_id}", tokens=3)
            case LogLikelihood(continuations=texts):
                scores = tuple(-_unit(f"{seed}{one.origin}{text}") for text in texts)
                return Scored(scores, (False,) * len(texts), (1,) * len(texts))
            case Rolling(text=text):
                return Scored((-float(len(text)),), (False,), (len(text),))


def _unit(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


if __name__ == "__main__":
    MODELS.register("toy", Toy)
    sys.exit(main())
