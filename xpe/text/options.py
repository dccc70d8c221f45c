"""Options that an answer names by their text instead of their label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from xpe.text.labels import MARKS, Mention
from xpe.text.normalise import nfkc


@dataclass(frozen=True)
class Options:
    """The texts of the options of one question, by label; empty where they are not known."""

    texts: Mapping[str, str]

    def whole(self, text: str) -> tuple[str, ...]:
        """Return the label whose text is all of `text`, but for case and marks, else ().

        Two labels with the same text name neither.
        """
        if len(text) > self._longest + 40:
            return ()
        label = self._by_text.get(_folded(text))
        return () if label is None else (label,)

    def mentions(self, text: str) -> list[Mention]:
        """Return where `text`, in the form NFKC, contains options, longest first, none twice."""
        low = text.lower()
        if len(low) != len(text):
            # The few letters whose lower case is longer would shift all spans behind them.
            low = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
        found: list[Mention] = []
        for option in sorted(self._by_text, key=len, reverse=True):
            spans = list(_spans(low, option))
            found += [Mention((self._by_text[option],), start, end) for start, end in spans]
            for start, end in spans:
                low = f"{low[:start]}{' ' * (end - start)}{low[end:]}"
        return sorted(found, key=lambda mention: mention.start)

    @cached_property
    def _by_text(self) -> Mapping[str, str]:
        folded = [(_folded(option), label) for label, option in self.texts.items()]
        times = Counter(option for option, _ in folded)
        return {option: label for option, label in folded if option and times[option] == 1}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.texts.values()), default=-40)


def _spans(text: str, option: str) -> Iterator[tuple[int, int]]:
    """Yield where `option` stands in `text` as words of its own."""
    start = text.find(option)
    while start >= 0:
        end = start + len(option)
        if not _within_word(text, start) and not _within_word(text, end):
            yield start, end
        start = text.find(option, end)


def _within_word(text: str, at: int) -> bool:
    """Whether two Latin letters or digits meet at `at`."""
    pair = text[max(0, at - 1) : at + 1]
    return at > 0 and len(pair) == 2 and all(char.isascii() and char.isalnum() for char in pair)


def _folded(text: str) -> str:
    return nfkc(text).strip(MARKS).lower()
