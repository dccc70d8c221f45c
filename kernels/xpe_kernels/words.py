"""Random words, and exact binomial and multinomial draws made of them, in integers only.

Word `i` of replicate `b` is `mix(key(seed, b) + i * STEP)`: splitmix64 (Steele, Lea and Flood
2014, "Fast splittable pseudorandom number generators") read by position. No word depends on the
one before it, so loops over words become vector code, and a replicate depends on (seed, b) alone.

Axes: J parts of a whole. `at` is the position of the next unread word of a replicate.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from xpe_kernels._jit import inline

Word: TypeAlias = np.uint64

STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
BUFFER = 64
"""Words drawn at a time."""


@inline
def mix(z: Word) -> Word:
    """Return the splitmix64 output for the state `z`, uint64."""
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@inline
def key(seed: Word, b: int) -> Word:
    """Return where the words of replicate `b` start: uint64 of uint64 `seed` and int64 `b`."""
    start: Word = mix(mix(seed + STEP) + np.uint64(b) * STEP)
    return start


@intrinsic  # type: ignore[untyped-decorator]
def ones(_context: Any, _word: Any) -> Any:
    """Return the number of set bits of a uint64."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@inline
def heads(stream: Word, at: int, c: int) -> np.int64:
    """Return how many of `c` fair coins fall heads: the set bits of ceil(c / 64) words."""
    found = np.int64(0)
    whole = c // 64
    for j in range(whole):
        found += np.int64(ones(mix(stream + np.uint64(at + j) * STEP)))
    if c > whole * 64:
        mask = (_ONE << np.uint64(c - whole * 64)) - _ONE
        found += np.int64(ones(mix(stream + np.uint64(at + whole) * STEP) & mask))
    return found


@inline
def binomial(stream: Word, at: int, c: int, part: int, whole: int) -> tuple[np.int64, int]:
    """Draw Bin(c, part / whole) exactly, 0 < part < whole < 2**62.

    Compares `c` uniform numbers with part / whole, binary digit by binary digit; a digit decides
    half of those that are still tied. 2 c bits in the mean; c bits for one half.

    Returns
    -------
    (draw, at)
        The draw, and the position after the last word read.
    """
    below = np.int64(0)
    tied = c
    rest = part
    while tied > 0 and rest > 0:
        high = heads(stream, at, tied)
        at += (tied + 63) // 64
        rest *= 2
        if rest >= whole:
            rest -= whole
            below += tied - high
            tied = high
        else:
            tied -= high
    return below, at


@inline
def split(
    counts: NDArray[np.int64], first: int, ends_J: NDArray[np.int64], stream: Word, at: int
) -> int:
    """Deal the total in `counts[first]` to J parts: a multinomial draw, in place.

    Halves the parts again and again, by a binomial draw each; parts of equal sizes, a power of
    two in number, cost one bit a unit and level.

    Parameters
    ----------
    counts
        Writes `counts[first : first + J]`.
    ends_J
        (J,), increasing: part j has probability (ends[j] - ends[j-1]) / ends[J-1].

    Returns
    -------
    at
        The position after the last word read.
    """
    n_parts = len(ends_J)
    width = 1
    while width < n_parts:
        width *= 2
    width //= 2
    while width >= 1:
        for low in range(0, n_parts - width, 2 * width):
            start = ends_J[low - 1] if low > 0 else np.int64(0)
            stop = ends_J[min(low + 2 * width, n_parts) - 1]
            middle = ends_J[low + width - 1]
            total = counts[first + low]
            left, at = binomial(stream, at, total, middle - start, stop - start)
            counts[first + low] = left
            counts[first + low + width] = total - left
        width //= 2
    return at


@inline
def fill_bytes(words: NDArray[Word], stream: Word, at: int, n_draws: int) -> int:
    """Write the words for `n_draws` indices below 256, eight a word; read them as bytes."""
    n_words = (n_draws + 7) // 8
    for j in range(n_words):
        words[j] = mix(stream + np.uint64(at + j) * STEP)
    return at + n_words


@inline
def fill_indices(words: NDArray[Word], stream: Word, at: int, n_draws: int, n: int) -> int:
    """Write the words for `n_draws` indices below `n` <= 2**32, two a word; read them as uint32.

    Each half word times n, shifted down by 32 bits: no index is more likely than another by more
    than n / 2**32, relatively.
    """
    n_words = (n_draws + 1) // 2
    size = np.uint64(n)
    for j in range(n_words):
        word = mix(stream + np.uint64(at + j) * STEP)
        words[j] = (((word & _LOW) * size) >> _S32) | ((((word >> _S32) * size) >> _S32) << _S32)
    return at + n_words
