"""The four seeds of a run, and one named, independent generator for each purpose."""

from __future__ import annotations

import hashlib
import random
import sys

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.registry import STRICT


@dataclass(frozen=True, config=STRICT)
class Seeds:
    """Where chance comes from. The defaults are those of lm-evaluation-harness.

    `random` and `numpy` seed the global generators that a user's own code may draw from;
    `torch` decides sampled generations; `fewshot` decides the few-shot examples.
    """

    random: int = 0
    numpy: int = Field(default=1234, ge=0, lt=2**32)
    torch: int = Field(default=1234, ge=-(2**63), lt=2**64)
    fewshot: int = 1234


def seed_globals(seeds: Seeds) -> None:
    """Seed the global generators of random and numpy, and torch's where it is in use."""
    import numpy as np

    random.seed(seeds.random)
    np.random.seed(seeds.numpy)  # noqa: NPY002 - a user's own code may draw from it
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seeds.torch)


def derive(seed: int, *path: str | int) -> int:
    """Return a seed in [0, 2**63) that depends on `seed` and every part of `path`, by SHA-256."""
    text = "\x1f".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *path: str | int) -> random.Random:
    """Return a generator of its own for the purpose named by `path`."""
    return random.Random(derive(seed, *path))
