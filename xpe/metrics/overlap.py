"""Words in common: F1 of bags of words, and ROUGE from its library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from xpe.errors import MissingExtraError
from xpe.metrics.registered import register_metric
from xpe.text.tokenisers import Language, language_of, words_zh

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")


@register_metric(metric="word_f1")
def word_f1(*, predictions: Sequence[str], references: Sequence[str]) -> float:
    """F1 of the words in common with the reference that fits best (Rajpurkar et al. 2016).

    Words stand between white space; those of Chinese references are jieba's.
    """
    chinese = language_of("".join(references)) == "zh"
    cut = words_zh if chinese else str.split
    made = Counter(word for word in cut(predictions[0]) if word.strip())
    return max(
        (_f1(made, Counter(word for word in cut(text) if word.strip())) for text in references),
        default=0.0,
    )


def _f1(made: Counter[str], wanted: Counter[str]) -> float:
    total = made.total() + wanted.total()
    return 2 * (made & wanted).total() / total if total else 1.0


@register_metric(metric="rouge", outputs=ROUGE, signature=lambda **_: "rouge_score|stem:no|f")
def rouge(*, predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """F-measures of ROUGE-1, -2, -L and -Lsum, the best of several references each (Lin 2004).

    Raises
    ------
    MissingExtraError
        If the package rouge-score is not installed.
    """
    scorer = _rouge(language_of("".join(references)))
    found = scorer.score_multi(list(references), predictions[0])
    return {name: float(found[name].fmeasure) for name in ROUGE}


@cache
def _rouge(language: Language) -> Any:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError.of("the metric rouge", "rouge-score", "rouge") from error
    # Its own tokenizer keeps a-z and 0-9 alone, which leaves nothing of Chinese.
    return RougeScorer(list(ROUGE), tokenizer=_Words() if language == "zh" else None)


class _Words:
    """jieba in the form that the library asks for."""

    def tokenize(self, text: str) -> list[str]:
        return [word for word in words_zh(text) if word.strip()]
