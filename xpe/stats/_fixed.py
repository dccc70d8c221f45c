"""Numbers as integers, so that sums do not depend on the order in which threads add them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xpe.errors import DataError
from xpe.types import Float

_BITS = 61
_EXACT = 2.0**53


@dataclass(frozen=True)
class Fixed:
    """Columns as integers: value = integer · 2**-shift. Sums of N of them stay below 2**61.

    `integers_NK` is int64; `shift_K` is 0 for columns of whole numbers.
    """

    integers_NK: NDArray[np.int64]
    shift_K: NDArray[np.int64]
    largest: int
    """The largest magnitude of any integer."""

    def restore(self, sums_BK: NDArray[np.int64] | NDArray[np.int32]) -> Float:
        """Return sums in the unit of the columns, each rounded once."""
        if not self.shift_K.any():
            return sums_BK.astype(np.float64)
        return np.ldexp(sums_BK.astype(np.float64), -self.shift_K.astype(np.int32))


def to_fixed(rows_NK: Float) -> Fixed:
    """Return `rows_NK` as integers of 61 bits less those that a sum of N needs.

    Whole numbers stay exact. Others lose what is below 2**-(61 - log2 N) of the column's largest.
    """
    n = len(rows_NK)
    largest_K = np.abs(rows_NK).max(axis=0)
    if (largest_K > np.finfo(np.float64).max / n).any():
        raise DataError(f"sums of {n} numbers as large as {largest_K.max():.3g} are not finite")
    whole_K = (largest_K * n < _EXACT) & (rows_NK == np.rint(rows_NK)).all(axis=0)
    room = _BITS - int(np.ceil(np.log2(n)))
    shift_K = np.where(whole_K, 0, room - np.frexp(largest_K)[1]).astype(np.int64)
    integers_NK = np.rint(np.ldexp(rows_NK, shift_K.astype(np.int32))).astype(np.int64)
    return Fixed(integers_NK, shift_K, int(np.abs(integers_NK).max(initial=0)))
