"""Translation edits of one sentence, as sacrebleu counts them, in bounded time.

sacrebleu tries up to 1,000 shifts of words, each with an edit distance over the whole sentence:
half a minute for two scrambled texts of 300 words. Texts of up to `LONG` words are left to it.
Longer ones get fewer tries, and the longest are aligned piece by piece, so that their edits may
be counted a little too high.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LONG = 200
"""Longest prediction, in words, that is counted exactly as by sacrebleu."""
BUDGET = 20_000
"""Shifts that are tried times words, beyond that."""
LONGEST = 2_000
"""Words that are aligned at once: piece by piece is one way to edit, if not the shortest."""


def edits(scorer: Any, prediction: str, references: Sequence[str]) -> list[float]:
    """Return the fewest edits to any reference, and the mean length of the references.

    Parameters
    ----------
    scorer
        sacrebleu's TER, which says how texts are cut into words.
    """
    words = _words(scorer, prediction)
    if len(words) <= LONG:
        row: list[float] = scorer._extract_corpus_statistics(  # noqa: SLF001
            [prediction], [[reference] for reference in references]
        )[0]
        return row
    wanted = [_words(scorer, reference) for reference in references]
    fewest = min(_edits_by_piece(words, reference) for reference in wanted)
    return [fewest, sum(map(len, wanted)) / len(wanted)]


def _words(scorer: Any, text: str) -> list[str]:
    return str(scorer._preprocess_segment(text)).split()  # noqa: SLF001


def _edits_by_piece(words: list[str], reference: list[str]) -> int:
    pieces = range(0, max(len(words), len(reference)), LONGEST)
    return sum(_edits_of_long(words[k : k + LONGEST], reference[k : k + LONGEST]) for k in pieces)


def _edits_of_long(words: list[str], reference: list[str]) -> int:
    """Shift words while that helps and tries are left, then count the edits."""
    from sacrebleu.metrics import lib_ter

    if not words or not reference:
        return len(words) + len(reference)
    distance = lib_ter.BeamEditDistance(reference)
    most = lib_ter._MAX_SHIFT_CANDIDATES  # noqa: SLF001
    tried = most - BUDGET // len(words)
    shifts = 0
    while True:
        gain, shifted, tried = lib_ter._shift(words, reference, distance, tried)  # noqa: SLF001
        if tried >= most or gain <= 0:
            break
        words, shifts = shifted, shifts + 1
    return int(distance(words)[0]) + shifts
