"""What every kernel computes, to the bit, whichever numba compiled it.

The session `tests` has the newest numba, `vllm` and `minimums` the oldest that is allowed: all of
them hold this file to the same digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest
from xpe_kernels import harness, order, pooling, sums

pytestmark = pytest.mark.numba
SEED, FIRST, N, B = np.uint64(2**63 + 7), 3, 4600, 24
# Integers and fractions by arithmetic alone: no generator of numpy's has a say.
WHOLE_N = np.arange(1, 50 * N, dtype=np.int64) * 2654435761 % 2**31
PARTS_N = WHOLE_N / 2**31


def resampled() -> Iterator[np.ndarray]:
    """Blocks and a rest, and one small part: one column, lines of int64, lines of int32."""
    for n in (N, 300):
        for n_lines, lanes, dtype in ((1, 1, np.int64), (1, 8, np.int64), (3, 16, np.int32)):
            whole = (WHOLE_N[: n_lines * n * lanes] >> 8 & 0xFFFF).astype(dtype)
            table = whole if lanes == 1 else whole.reshape(-1, lanes)
            out = np.zeros((B, n_lines * lanes), dtype)
            sums.resampled_sums(table, n, sums.parts(n), SEED, FIRST, out)
            yield out


def counted() -> Iterator[np.ndarray]:
    """Seven distinct rows of three columns."""
    columns_KD = WHOLE_N[:21].reshape(3, 7)
    out_BK = np.empty((B, 3), np.int64)
    sums.counted_sums(columns_KD, np.cumsum(np.arange(40, 47)), SEED, FIRST, out_BK)
    yield out_BK


def ranked() -> Iterator[np.ndarray]:
    """Two neighbours, and two ranks apart."""
    for low, high in ((2299, 2300), (7, 4000)):
        out_B2 = np.empty((B, 2), np.int64)
        order.order_ranks(N, low, high, SEED, FIRST, out_B2)
        yield out_B2


def ranked_by_unit() -> Iterator[np.ndarray]:
    """Units of one to five rows, interpolated and upper."""
    sizes_U = 1 + WHOLE_N[:200] % 5
    units_SN = np.argsort(WHOLE_N[: 2 * sizes_U.sum()].reshape(2, -1), axis=1, kind="stable")
    units_SN = np.repeat(np.arange(200), sizes_U)[units_SN].astype(np.int32)
    for upper in (False, True):
        out_BS2, totals_B = np.empty((B, 2, 2), np.int64), np.empty(B, np.int64)
        order.drawn_order_ranks(
            units_SN, sizes_U, sums.parts(200), 0.3, upper, SEED, FIRST, out_BS2, totals_B
        )
        yield from (out_BS2, totals_B)


def harness_drawn() -> Iterator[np.ndarray]:
    """Sums that round, from left to right and compensated; ranks."""
    for compensated in (False, True):
        out_CRK = np.empty((3, 5, 2))
        harness.harness_sums(PARTS_N[:1400].reshape(2, 700), compensated, 1, out_CRK)
        yield out_CRK
    out_CR = np.empty((3, 5), np.int64)
    harness.harness_ranks(np.argsort(WHOLE_N[:700]), 350, 1, out_CR)
    yield out_CR


def pooled() -> Iterator[np.ndarray]:
    """Groups of 1 to 30 leaves; one leaf without spread, one without a known error."""
    ends_G = np.cumsum(np.arange(1, 31))
    n_M, score_M, variance_M = 1.0 + WHOLE_N[:465] % 999, PARTS_N[465:930], PARTS_N[930:1395] / 99
    variance_M[[5, 100]] = 0.0, np.nan
    for compensated in (False, True):
        out_GC = np.empty((30, 11))
        pooling.pool(ends_G, n_M, score_M, variance_M, compensated, out_GC)
        # The bits of NaN differ between machines.
        yield np.where(np.isnan(out_GC), -1.0, out_GC)


@pytest.mark.parametrize(
    ("made", "digest"),
    [
        (resampled, "7b93f88f2d60d97368227046e777e188"),
        (counted, "a97b7cd467a5d52dc43d73c941c3a013"),
        (ranked, "5ff9a76f71f953873167a1343ef9df4f"),
        (ranked_by_unit, "389b6007c44e0b8ebf633517c29baeee"),
        (harness_drawn, "5287ef7e783b747df295e3a7f3ceae42"),
        (pooled, "b53f6d9596c5c1fafab0d32465de6bb6"),
    ],
)
def test_bits_of_every_numba(made, digest):
    """The digest of what a kernel wrote."""
    found = hashlib.sha256()
    for array in made():
        found.update(str(array.dtype).encode() + array.tobytes())

    assert found.hexdigest()[:32] == digest
