"""Words of English and Chinese text, and which of the two a text is."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]

CHINESE_SHARE = 0.2
"""A text with a greater share of Chinese characters is Chinese."""
LONGEST_RUN = 200
"""Longest run of word characters that jieba sees at once; see `words_zh`."""

_HAN = re.compile(r"[\u4e00-\u9fff]")
# What jieba takes as one block; it handles each on its own.
_RUN = re.compile(r"[\u4e00-\u9fd5a-zA-Z0-9+#&._%\-]+")


def language_of(text: str) -> Language:
    """Return `zh` if more than a fifth of the characters are Chinese, else `en`."""
    return "zh" if text and len(_HAN.findall(text)) / len(text) > CHINESE_SHARE else "en"


def words_en(text: str) -> list[str]:
    """Return the tokens of the Penn Treebank rules, the text taken as one line.

    Splitting it into sentences first needs a model that would have to be downloaded.
    """
    from nltk.tokenize import word_tokenize

    tokens: list[str] = word_tokenize(text, preserve_line=True)
    return tokens


def words_zh(text: str) -> list[str]:
    """Return the words that jieba finds, those of long runs piece by piece.

    jieba's hidden Markov model takes quadratic time on a run of characters that form no known
    words: 100,000 times 证 is a minute. Runs beyond `LONGEST_RUN` are therefore cut first.
    """
    return [word for piece in _pieces(text) for word in _jieba()(piece)]


TOKENISERS: Mapping[Language, Callable[[str], list[str]]] = {"en": words_en, "zh": words_zh}


def _pieces(text: str) -> Iterator[str]:
    """Yield the text, cut inside runs that are too long and nowhere else."""
    start = 0
    for run in _RUN.finditer(text):
        for end in range(run.start() + LONGEST_RUN, run.end(), LONGEST_RUN):
            yield text[start:end]
            start = end
    yield text[start:]


@cache
def _jieba() -> Callable[[str], list[str]]:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    cut: Callable[[str], list[str]] = jieba.lcut
    return cut
