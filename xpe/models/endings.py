"""Where a generated text ends, and what of it is the answer. Pure functions of the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from xpe.text.reasoning import Markers, split_reasoning


class Cut(NamedTuple):
    """An answer before its stop string, the reasoning, and what was met."""

    answer: str
    reasoning: str
    stopped: bool
    finished: bool


@dataclass(frozen=True)
class Ending:
    """The stop strings and reasoning markers of one generation.

    `opened` is the start marker that the prompt ends with. Stop strings apply to the answer
    only: a blank line in the reasoning ends nothing.
    """

    stop: tuple[str, ...] = ()
    markers: Markers = ()
    opened: str = ""

    def cut(self, text: str) -> Cut:
        """Split the reasoning off and cut the answer at the first stop string in it."""
        split = split_reasoning(self.opened + text, markers=self.markers)
        at = min(
            (i for s in self.stop if s and (i := split.answer.find(s)) >= 0),
            default=len(split.answer),
        )
        stopped = at < len(split.answer)
        return Cut(split.answer[:at], split.reasoning, stopped, split.finished)

    @property
    def reach(self) -> int:
        """Characters at the end of a text that can hold a marker or stop string that is new."""
        marks = [*self.stop, *(mark for pair in self.markers for mark in pair)]
        return max((len(mark) for mark in marks), default=0)

    def worth_a_look(self, tail: str, *, inside: bool) -> bool:
        """Tell whether the end of a text calls for a `cut`; `inside` an open reasoning block."""
        if inside:
            return any(end in tail for _, end in self.markers)
        return any(s and s in tail for s in (*self.stop, *(start for start, _ in self.markers)))
