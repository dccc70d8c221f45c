"""Seeds: one for each purpose, the same every time."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from xpe.seeds import Seeds, derive, generator, seed_globals


def test_defaults_are_the_harness_ones() -> None:
    """random 0, numpy, torch and fewshot 1234."""
    assert Seeds() == Seeds(random=0, numpy=1234, torch=1234, fewshot=1234)


def test_derived_seed_is_sha256_of_the_path() -> None:
    """The seed can be computed by hand from its parts."""
    digest = hashlib.sha256(b"1234\x1ftoy\x1f7").digest()

    assert derive(1234, "toy", 7) == int.from_bytes(digest[:8], "big") // 2


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 99)), unique=True, max_size=20))
def test_purposes_do_not_share_a_stream(paths: list[tuple[str, int]]) -> None:
    """Different purposes get different generators, and equal ones equal draws."""
    draws = [generator(0, *path).random() for path in paths]

    assert len(set(draws)) == len(paths)
    assert draws == [generator(0, *path).random() for path in paths]


def test_global_generators_are_seeded() -> None:
    """Code of a user's own that draws from the global generators draws the same every time."""
    seed_globals(Seeds())
    found = random.random(), np.random.random(), torch.rand(1).item()

    assert found[0] == random.Random(0).random()
    assert found[1] == np.random.RandomState(1234).random()
    assert found[2] == torch.rand(1, generator=torch.Generator().manual_seed(1234)).item()
