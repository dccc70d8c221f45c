"""Likeness to reference texts: mean sentence BLEU, and corpus BLEU, chrF and TER."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from importlib.metadata import version
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.errors import ConfigError
from xpe.evaluators.base import TextEvaluator, golds_of
from xpe.metrics.corpus import SCORES, Name, columns_of, signature, statistics
from xpe.registry import STRICT
from xpe.text.tokenisers import TOKENISERS, Language, language_of
from xpe.types import Mean, Measured, Metric, Sums

LONGEST_PREDICTION = 50_000
"""Characters of a prediction that are scored; a longer one is marked `truncated`."""
_CORPUS: Mapping[str, Name] = {"corpus_bleu": "bleu", "chrf": "chrf", "ter": "ter"}


@dataclass(frozen=True, config=STRICT)
class BLEUEvaluator(TextEvaluator):
    """Sentence BLEU by nltk, 0–1, averaged; corpus BLEU, chrF, TER on sacrebleu's scale.

    Parameters
    ----------
    n_gram
        Longest n-gram of the sentence score.
    weights
        One a length from 1 to `n_gram`, summing to 1; None: all equal.
    smoothing
        Whether a length without a match counts a tenth of one (method 1 of Chen and Cherry 2014).
    language
        How texts are cut into words; `auto`: by the references of each sample, so that a
        prediction in another language is cut as they are.
    """

    n_gram: Annotated[int, Field(ge=1)] = 4
    weights: tuple[float, ...] | None = None
    smoothing: bool = True
    language: Literal["auto", "en", "zh"] = "auto"

    fits: ClassVar[frozenset[str]] = frozenset({"generation"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is None:
            return
        if len(self.weights) != self.n_gram:
            raise ConfigError(
                f"weights: one for each n-gram length up to n_gram={self.n_gram} is expected,"
                f" got {len(self.weights)}"
            )
        if not math.isclose(sum(self.weights), 1, rel_tol=0, abs_tol=1e-9):
            raise ConfigError(f"weights: must sum to 1, got {sum(self.weights)}")

    @cached_property
    def metrics(self) -> Sequence[Metric]:
        """`bleu`, `corpus_bleu`, `chrf`, `ter`."""
        smooth = "method1" if self.smoothing else "none"
        words = f"tok:{self.language}(jieba {version('jieba')},nltk)"
        weights = "uniform" if self.weights is None else ",".join(map(str, self.weights))
        sentence = (
            f"nltk|n:{self.n_gram}|weights:{weights}|smooth:{smooth}|{words}"
            f"|version:{version('nltk')}"
        )
        return (
            Metric("bleu", Mean("bleu"), signature=sentence, limits=(0.0, 1.0)),
            *(
                Metric(
                    metric,
                    Sums(columns_of(name, metric), SCORES[name]),
                    higher_is_better=name != "ter",
                    signature=signature(name, self.language),
                )
                for metric, name in _CORPUS.items()
            ),
        )

    def judge_text(self, prediction: str, reference: Mapping[str, Any]) -> Measured:
        """Compare with one reference text, or with several at once."""
        references = [str(text) for text in golds_of(reference)]
        if not references:
            return {"invalid": 1}
        spoken = language_of("".join(references)) if self.language == "auto" else self.language
        cut = prediction[:LONGEST_PREDICTION]
        columns = {"bleu": self._sentence(cut, references, spoken)}
        for metric, name in _CORPUS.items():
            counted = statistics(name, cut, references, spoken)
            columns |= zip(columns_of(name, metric), counted, strict=True)
        return columns if cut == prediction else {**columns, "truncated": 1}

    def _sentence(self, prediction: str, references: Sequence[str], language: Language) -> float:
        if not prediction.strip():
            return 0.0
        words = TOKENISERS[language]
        return float(self._score([words(text) for text in references], words(prediction)))

    @cached_property
    def _score(self) -> Any:
        from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

        smoothing = SmoothingFunction().method1 if self.smoothing else None
        weights = self.weights or (1 / self.n_gram,) * self.n_gram
        score = partial(sentence_bleu, weights=weights, smoothing_function=smoothing)
        return score if self.smoothing else partial(_quietly, score)


def _quietly(score: Any, references: Sequence[Sequence[str]], prediction: Sequence[str]) -> Any:
    """Score without nltk's advice to smooth, which it gives once a sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return score(references, prediction)
