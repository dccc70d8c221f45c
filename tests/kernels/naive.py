"""Slow, obvious twins of the kernels, in plain Python: the fast ones equal them bit for bit."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence

WORD = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
BLOCK = 256


def mix(z: int) -> int:
    """splitmix64's output function on 64-bit words."""
    z &= WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def words(seed: int, b: int) -> Iterator[int]:
    """All words of replicate `b`, in order."""
    state = mix(mix(seed + STEP) + b * STEP)
    while True:
        yield mix(state)
        state += STEP


def coin_flips(stream: Iterator[int], c: int) -> list[int]:
    """`c` bits, the lowest of a word first; a word begun is used up."""
    flips: list[int] = []
    while len(flips) < c:
        word = next(stream)
        flips += [word >> bit & 1 for bit in range(64)]
    return flips[:c]


def binomial(stream: Iterator[int], c: int, part: int, whole: int) -> int:
    """Count uniform numbers below part / whole by comparing binary digits, most important first."""
    below, tied, rest = 0, c, part
    while tied and rest:
        rest *= 2
        digit = int(rest >= whole)
        rest -= digit * whole
        flips = coin_flips(stream, tied)
        below += sum(flip < digit for flip in flips)
        tied = sum(flip == digit for flip in flips)
    return below


def dealt(stream: Iterator[int], total: int, sizes: Sequence[int]) -> list[int]:
    """Deal `total` to parts with probabilities in proportion to `sizes`: widest halves first."""
    pieces = [(0, len(sizes), total)]
    while any(stop - start > 1 for start, stop, _ in pieces):
        widest = max(power_below(stop - start) for start, stop, _ in pieces)
        halved = []
        for start, stop, count in pieces:
            if power_below(stop - start) != widest:
                halved.append((start, stop, count))
                continue
            middle = start + widest
            left = binomial(stream, count, sum(sizes[start:middle]), sum(sizes[start:stop]))
            halved += [(start, middle, left), (middle, stop, count - left)]
        pieces = halved
    return [count for _, _, count in pieces]


def power_below(n: int) -> int:
    """The largest power of two below n; 0 for n = 1."""
    return 0 if n < 2 else 1 << ((n - 1).bit_length() - 1)


def part_sizes(n: int) -> list[int]:
    """Blocks of 256 and a rest; a single part below 4,096 rows."""
    blocks = n // BLOCK if n >= 4096 else 0
    rest = n - blocks * BLOCK
    return [BLOCK] * blocks + [rest] * (rest > 0)


def drawn_rows(n: int, seed: int, b: int) -> list[int]:
    """The indices of replicate `b` of `n` rows."""
    stream = words(seed, b)
    sizes = part_sizes(n)
    rows: list[int] = []
    start = 0
    for size, count in zip(sizes, dealt(stream, n, sizes), strict=True):
        rows += [start + index for index in indices_below(stream, size, count)]
        start += size
    return rows


def indices_below(stream: Iterator[int], size: int, count: int) -> list[int]:
    """`count` indices: bytes in a whole block, halves of words elsewhere.

    Draws come in batches of 64 words, and what a batch leaves of its last word is lost.
    """
    found: list[int] = []
    a_word, bits = (8, 8) if size == BLOCK else (2, 32)
    while count:
        m = min(count, 64 * a_word)
        batch: list[int] = []
        for _ in range(-(-m // a_word)):
            word = next(stream)
            batch += [word >> (bits * i) & ((1 << bits) - 1) for i in range(a_word)]
        found += [value * size >> bits for value in batch[:m]]
        count -= m
    return found


def resampled_sums(rows: Sequence[Sequence[int]], seed: int, b: int) -> list[int]:
    """Sums of the drawn rows."""
    drawn = drawn_rows(len(rows), seed, b)
    return [sum(rows[row][k] for row in drawn) for k in range(len(rows[0]))]


def counted_sums(
    rows: Sequence[Sequence[int]], times: Sequence[int], seed: int, b: int
) -> list[int]:
    """Sums of distinct rows that occur `times`, by how often each is drawn."""
    counts = dealt(words(seed, b), sum(times), times)
    return [
        sum(count * row[k] for count, row in zip(counts, rows, strict=True))
        for k in range(len(rows[0]))
    ]


def order_ranks(n: int, low: int, high: int, seed: int, b: int) -> list[int]:
    """Two order statistics of a resample of 0 … n-1, drawing only what decides them."""
    stream = words(seed, b)

    def descend(start: int, stop: int, count: int, ranks: list[int]) -> list[int]:
        if stop - start == 1 or not ranks:
            return [start] * len(ranks)
        width = power_below(stop - start)
        left = binomial(stream, count, width, stop - start)
        lower = [rank for rank in ranks if rank < left]
        upper = [rank - left for rank in ranks if rank >= left]
        return descend(start, start + width, left, lower) + descend(
            start + width, stop, count - left, upper
        )

    return descend(0, n, n, [low, high])


def drawn_order_values(
    values: Sequence[float], codes: Sequence[int], seed: int, b: int
) -> list[float]:
    """The sorted values of the members of the drawn units."""
    drawn = drawn_rows(max(codes) + 1, seed, b)
    return sorted(
        v for unit in drawn for v, code in zip(values, codes, strict=True) if code == unit
    )


def harness_resamples(items: Sequence[float], chunk: int, size: int) -> list[list[float]]:
    """What lm-evaluation-harness draws, by Python's own generator."""
    generator = random.Random()
    generator.seed(chunk)
    return [generator.choices(items, k=len(items)) for _ in range(size)]


def python_sum(values: Sequence[float], *, compensated: bool) -> float:
    """`sum` of Python before 3.12, and since."""
    total, lost = 0.0, 0.0
    for x in values:
        after = total + x
        lost += (total - after) + x if abs(total) >= abs(x) else (x - after) + total
        total = after
    return total + lost if compensated else total


Leaf = tuple[float, float, float]
"""n, score, variance."""


def pooled_row(leaves: Sequence[Leaf], *, compensated: bool) -> list[float]:
    """n, micro mean, error, degrees of freedom and size, those of the macro mean, pooled, total."""

    def add(terms: Iterable[float]) -> float:
        return python_sum(list(terms), compensated=compensated)

    k, n = len(leaves), add(size for size, _, _ in leaves)
    if not k:
        return [0.0, *[math.nan] * 3, 0.0, *[math.nan] * 6]
    within = [(size - 1.0) * v * size for size, _, v in leaves]
    row = [n]
    for mean, weights, size in (
        (add(size * x for size, x, _ in leaves) / n, [size for size, _, _ in leaves], n),
        (add(x for _, x, _ in leaves) / k, [1.0] * k, k * k / add(1.0 / n for n, _, _ in leaves)),
    ):
        parts = [w * w * v for w, (_, _, v) in zip(weights, leaves, strict=True)]
        above, dfs = add(parts), [n - 1.0 for n, _, _ in leaves]
        below = add(divided(p * p, df) for p, df in zip(parts, dfs, strict=True))
        df = above * above / below if below else math.nan
        row += [mean, math.sqrt(above) / add(weights), df, size]
    between = add(within)
    for size, x, _ in leaves:
        between += size * (x - row[1]) ** 2
    return [
        *row,
        math.sqrt(add(within) / (n - k) / n) if n > k else math.nan,
        math.sqrt(between / (n - 1.0) / n) if n > 1 else math.nan,
    ]


def divided(above: float, below: float) -> float:
    """A quotient that is infinite over 0, and 0 over anything."""
    if not above:
        return 0.0
    return above / below if below else math.inf
