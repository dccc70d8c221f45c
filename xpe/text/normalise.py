"""Text in one spelling: compatibility forms, punctuation, and a bound on length."""

from __future__ import annotations

import re
import unicodedata

MOST = 65_536
"""Characters that extraction reads: of a longer text, its first and its last half of this."""

WHITE = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""Every white-space character, for `strip` with other characters: what `strip()` alone removes."""

_CHANGEABLE = re.compile(
    r"[\x00-\x7f]?[^\x00-\x7f\u2013\u2014\u2018-\u201d\u3001-\u3011\u4e00-\u9fff]+"
)


def nfkc(text: str) -> str:
    """Return `text` in the normal form NFKC: full width to half width, Ⅳ to IV, ① to 1."""
    # Characters that the form leaves alone are most of a Chinese text, and passing over them is
    # several times faster than `normalize`. A match begins with the character that a combining
    # mark would join, so the result is the same.
    return text if text.isascii() else _CHANGEABLE.sub(_normalised, text)


def clip(text: str) -> str:
    """Return `text`, or its beginning and its end where it is longer than `MOST` characters.

    Answers stand at one of the two ends; the bound keeps extraction fast on any text.
    """
    return text if len(text) <= MOST else f"{text[: MOST // 2]}\n{text[-MOST // 2 :]}"


def without_punctuation(text: str) -> str:
    """Return `text` without Unicode punctuation, and runs of white space as one space."""
    marks = {ord(char): " " for char in set(text) if unicodedata.category(char)[0] == "P"}
    return " ".join(text.translate(marks).split())


def plain(text: str, *, case_sensitive: bool = False, normalise: bool = False) -> str:
    """Return `text` as it is compared: stripped; lower case; NFKC without punctuation if asked."""
    if normalise:
        text = without_punctuation(nfkc(text))
    return text.strip() if case_sensitive else text.strip().lower()


def _normalised(match: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", match[0])
