"""Pooling every group of a tree at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xpe.errors import DataError
from xpe.stats.tree import pooled_tree


def test_micro_and_macro_means():
    """Three tasks of 100, 150 and 250 (S16), and of 20 and 1,000 (S17), under one root."""
    scores = [0.8, 0.6, 0.7, 0.5, 0.9]
    sizes = [100, 150, 250, 20, 1000]
    stderrs = [math.sqrt(p * (1 - p) / (n - 1)) for p, n in zip(scores, sizes, strict=True)]

    found = pooled_tree([0, 0, 0, 1, 1], sizes, scores, stderrs, [2, 2, -1])

    assert found.micro[0] == pytest.approx(0.69, abs=1e-12)
    assert found.micro_stderr[0] == pytest.approx(0.0205050, abs=5e-8)
    assert found.pooled_stderr[0] == pytest.approx(0.0205067, abs=5e-8)
    assert found.macro[:2] == pytest.approx([0.70, 0.70], abs=1e-12)
    assert found.macro_stderr[:2] == pytest.approx([0.0212662, 0.0575499], abs=5e-8)
    assert found.leaves.tolist() == [3, 2, 5]
    assert found.n.tolist() == [500, 1020, 1520]


def test_pooled_error_of_the_harness():
    """Standard errors .05 and .005 of 10 and 10,000 samples: 0.004995479093708098 there."""
    found = pooled_tree([0, 0], [10, 10_000], [0.5, 0.5], [0.05, 0.005], [-1])

    assert found.pooled_stderr[0] == pytest.approx(0.004995479093708098, rel=1e-15)
    assert found.macro_stderr[0] == pytest.approx(0.025124689052802227, rel=1e-15)


def test_missing_is_counted_and_left_out():
    """A task without the metric leaves a mean of the others; one without an error leaves none."""
    nan = math.nan
    found = pooled_tree(
        [0, 0, 1, 1], [5, 9, 5, 5], [0.5, nan, 0.5, 0.7], [0.1, nan, nan, 0.1], [-1, -1]
    )

    assert found.missing.tolist() == [1, 0]
    assert found.micro.tolist() == [0.5, 0.6]
    assert found.micro_stderr[0] == 0.1
    assert np.isnan([found.micro_stderr[1], found.macro_stderr[1], found.pooled_stderr[1]]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group_of_leaf": [0, 3]}, "leaf 1 must be one of 2, got 3"),
        ({"parent_of_group": [-1, 0]}, r"group 1 must be -1 or in 2\.\.1, got 0"),
        ({"n": [5, -1]}, "leaf 1 needs n >= 0"),
        ({"stderr": [-0.1, 0.1]}, "leaf 0 needs"),
        ({"score": [0.1, math.inf]}, "leaf 1 needs"),
        ({"score": [0.1]}, r"equal lengths, got \[2, 2, 1, 2\]"),
    ],
)
def test_bad_trees(change, message):
    """One clear error each."""
    good = {
        "group_of_leaf": [0, 0],
        "n": [5, 5],
        "score": [0.5, 0.5],
        "stderr": [0.1, 0.1],
        "parent_of_group": [1, -1],
    }
    with pytest.raises(DataError, match=message):
        pooled_tree(**{**good, **change})
