"""The BLEU evaluator against nltk and sacrebleu."""

from __future__ import annotations

import math
import random
import time
from typing import Any

import jieba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize import word_tokenize
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics import BLEU, CHRF, TER

from xpe.evaluators import get_evaluator
from xpe.evaluators.bleu import BLEUEvaluator

EN = "The doctor said that fever , cough and headache aren't rare in winter (see p. 12) .".split()  # noqa: SIM905
ZH = ["患者", "头痛", "发热", "，", "恶寒", "无汗", "。", "治宜", "辛温", "解表", "3", "剂", "方剂"]


def texts(language: str, n_references: int) -> tuple[list[str], list[list[str]]]:
    """300 predictions and references that share most words."""
    draw, words = random.Random(7), EN if language == "en" else ZH
    join = " ".join if language == "en" else "".join
    predictions, references = [], []
    for _ in range(300):
        drawn = draw.choices(words, k=draw.randint(1, 20))
        predictions.append(join(drawn))
        references.append(
            [
                join([word if draw.random() < 0.75 else draw.choice(words) for word in drawn])
                for _ in range(n_references)
            ]
        )
    return predictions, references


def as_references(values: list[Any]) -> list[dict[str, Any]]:
    """Wrap values as the documented references."""
    return [{"answer": {"type": "text", "value": value}} for value in values]


@pytest.mark.parametrize("n_references", [1, 3])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_sentence_bleu_is_that_of_nltk(language: str, n_references: int) -> None:
    """Each of 300 sentences scores as nltk scores the same words, to 1e-12."""
    predictions, references = texts(language, n_references)
    evaluator = BLEUEvaluator(language=language)  # type: ignore[arg-type]
    cut = jieba.lcut if language == "zh" else lambda text: word_tokenize(text, preserve_line=True)
    smoothing = SmoothingFunction().method1
    for prediction, several in zip(predictions, references, strict=True):
        expected = sentence_bleu(
            [cut(text) for text in several],
            cut(prediction),
            weights=[0.25] * 4,
            smoothing_function=smoothing,
        )
        made = evaluator.judge_text(prediction, as_references([several])[0])["bleu"]
        assert made == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_references", [1, 3])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_corpus_scores_are_those_of_sacrebleu(language: str, n_references: int) -> None:
    """Corpus BLEU, chrF and TER of 300 pairs equal sacrebleu's to 1e-9."""
    predictions, references = texts(language, n_references)
    evaluator = get_evaluator("bleu", language=language)
    result = evaluator.evaluate(predictions, as_references(references))
    transposed = [list(column) for column in zip(*references, strict=True)]
    chinese = language == "zh"
    metrics = {
        "corpus_bleu": BLEU(tokenize="zh" if chinese else "13a"),
        "chrf": CHRF(),
        "ter": TER(normalized=chinese, asian_support=chinese),
    }
    for name, metric in metrics.items():
        expected = metric.corpus_score(predictions, transposed).score
        assert result[name]["score"] == pytest.approx(expected, abs=1e-9)


def test_the_documented_form_of_the_result() -> None:
    """`bleu` is 0–1 with lowest, highest and number of samples; identical text scores 1."""
    result = get_evaluator("bleu").evaluate(
        ["the cat sat on the mat", ""], as_references(["the cat sat on the mat", "a dog"])
    )
    assert result["bleu"] == {"score": 0.5, "min": 0.0, "max": 1.0, "count": 2}


@pytest.mark.parametrize("prediction", ["", " ", "\n"])
def test_an_empty_prediction_scores_zero_and_counts(prediction: str) -> None:
    """An empty text is an answer: every score of likeness is 0, and TER counts all words."""
    result = get_evaluator("bleu").evaluate([prediction], as_references(["辛温解表"]))
    assert [result[name]["score"] for name in ("bleu", "corpus_bleu", "chrf")] == [0, 0, 0]
    assert result["ter"]["score"] == 100


def test_the_references_decide_the_language() -> None:
    """A Chinese reference has an English prediction cut by jieba as well."""
    evaluator = BLEUEvaluator(n_gram=1, smoothing=False)
    made = evaluator.judge_text("can't", as_references(["辛温解表can't"])[0])
    assert made["bleu"] == pytest.approx(math.exp(1 - len(jieba.lcut("辛温解表can't")) / 3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": [0.5, 0.5]}, "n_gram=4"),
        ({"n_gram": 2, "weights": [0.5, 0.6]}, "sum to 1"),
        ({"n_gram": 0}, "n_gram"),
        ({"language": "fr"}, "language"),
    ],
)
def test_wrong_settings_are_value_errors(settings: dict[str, Any], message: str) -> None:
    """Weights of the wrong length or sum, and impossible settings, are named."""
    with pytest.raises(ValueError, match=message):
        get_evaluator("bleu", **settings)


def test_weights_unset_are_uniform() -> None:
    """At n_gram=4 that is the documented list; at 2 it is one half each."""
    pair = ["the cat sat on a mat"], as_references(["the cat is on a mat"])
    for n in (2, 4):
        given = get_evaluator("bleu", n_gram=n, weights=[1 / n] * n).evaluate(*pair)
        assert get_evaluator("bleu", n_gram=n).evaluate(*pair)["bleu"] == given["bleu"]


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=120), st.lists(st.text(max_size=40), min_size=1, max_size=3))
def test_no_text_raises(prediction: str, values: list[str]) -> None:
    """Any texts give finite scores."""
    result = BLEUEvaluator().evaluate([prediction], as_references([values]))
    assert all(math.isfinite(found["score"]) for found in result.values())


@pytest.mark.parametrize("unit", ["9", "证", "a b ", "a\n"])
def test_a_megabyte_takes_seconds(unit: str) -> None:
    """What is too long is cut and marked, and long texts take bounded time."""
    evaluator, start = BLEUEvaluator(), time.thread_time()
    measured = evaluator.judge_text(unit * (1_000_000 // len(unit)), as_references(["证 9 a b"])[0])
    assert measured["truncated"] == 1
    assert time.thread_time() - start < 20
