"""Takes a model's reasoning out of what it wrote, so that only the answer is scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Markers: TypeAlias = Sequence[tuple[str, str]]

MARKERS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
    ("【思考】", "【/思考】"),
)
"""The pairs of start and end that published reasoning models write."""


class Reasoned(NamedTuple):
    """What is left to score, what was taken out, and whether every block was closed."""

    answer: str
    reasoning: str
    finished: bool


def split_reasoning(
    text: str, start: str = "<think>", end: str = "</think>", *, markers: Markers | None = None
) -> Reasoned:
    """Split off everything up to the last end marker.

    The start marker may be missing, because many templates put it at the end of the prompt. A
    block that is opened after the last end marker and never closed leaves an empty answer.

    Parameters
    ----------
    text
        What the model wrote. Linear time in its length.
    start, end
        One pair of markers.
    markers
        Several pairs instead; whichever occur are honoured.
    """
    pairs = [pair for pair in ([(start, end)] if markers is None else markers) if all(pair)]
    cut = max((at + len(e) for _, e in pairs if (at := text.rfind(e)) >= 0), default=0)
    opened = min((at for s, _ in pairs if (at := text.find(s, cut)) >= 0), default=-1)
    if opened >= 0:
        return Reasoned("", _inner(text, pairs), finished=False)
    if not cut:
        return Reasoned(text, "", finished=True)
    return Reasoned(text[cut:].lstrip(), _inner(text[:cut], pairs), finished=True)


def opened_by(prompt: str, markers: Markers = MARKERS) -> str:
    """Return the start marker that `prompt` ends with, else an empty string."""
    tail = prompt.rstrip()
    return next((start for start, _ in markers if start and tail.endswith(start)), "")


def _inner(block: str, pairs: Markers) -> str:
    inner = block.strip()
    for start, end in pairs:
        inner = inner.removeprefix(start).removesuffix(end)
    return inner.strip()
