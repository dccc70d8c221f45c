"""Spread of numbers whose squares are no floats any more."""

from __future__ import annotations

import math
from statistics import stdev

import numpy as np
import pytest

from xpe.stats.closed import mean_stderr, spread


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e200, 1e307])
def test_the_spread_of_huge_values(scale: float) -> None:
    """A perplexity of 1e245 has a standard deviation as 1 has, in its own units."""
    values_N = np.array([1.0, 2.0, 4.0, 5.5])
    assert spread(values_N * scale) == pytest.approx(stdev(values_N.tolist()) * scale, rel=1e-14)


def test_scaling_by_a_power_of_two_moves_no_bit() -> None:
    """The scaled path gives the digits of the plain one."""
    values_N = np.random.default_rng(3).lognormal(size=100)
    huge = 2.0**400
    assert spread(values_N * huge) == spread(values_N) * huge
    assert mean_stderr(values_N * huge) == spread(values_N) * huge / math.sqrt(100)
