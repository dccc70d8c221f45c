"""Corpus BLEU, chrF and TER against sacrebleu on the same texts."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from xpe.metrics import get_aggregation
from xpe.metrics.corpus import SCORES, Name, signature, statistics
from xpe.text.tokenisers import Language

WORDS: dict[Language, list[str]] = {
    "en": "the cat sat on a mat . it's 3.5 km to Rome , isn't it ? (yes) don't can not".split(),  # noqa: SIM905
    "zh": list("患者头痛发热，恶寒无汗。治宜辛温解表；宣肺散寒3剂HIV、"),
}
MAKERS: dict[Language, dict[Name, Any]] = {
    "en": {"bleu": partial(BLEU, tokenize="13a"), "chrf": CHRF, "ter": TER},
    "zh": {
        "bleu": partial(BLEU, tokenize="zh"),
        "chrf": CHRF,
        "ter": partial(TER, normalized=True, asian_support=True),
    },
}


def random_pairs(
    language: Language, n: int, n_references: int, seed: int = 0
) -> tuple[list[str], list[list[str]]]:
    """Make predictions, some empty, and references that share words with them."""
    draw = random.Random(seed)
    joiner = " " if language == "en" else ""
    predictions, references = [], []
    for _ in range(n):
        words = draw.choices(WORDS[language], k=draw.randint(0, 25))
        predictions.append(joiner.join(words))
        references.append(
            [
                joiner.join(
                    [w if draw.random() < 0.7 else draw.choice(WORDS[language]) for w in words]
                    + draw.choices(WORDS[language], k=draw.randint(1, 4))
                )
                for _ in range(n_references)
            ]
        )
    return predictions, references


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("n_references", [1, 3])
@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_scores_equal_sacrebleu(name: Name, language: Language, n_references: int) -> None:
    """Summed statistics score as sacrebleu scores the corpus, and single rows as it does one."""
    predictions, references = random_pairs(language, 300, n_references)
    metric = MAKERS[language][name]()
    rows_NK = np.array(
        [
            statistics(name, prediction, several, language)
            for prediction, several in zip(predictions, references, strict=True)
        ],
        dtype=np.float64,
    )
    transposed = [list(column) for column in zip(*references, strict=True)]
    expected = metric.corpus_score(predictions, transposed).score
    assert SCORES[name](rows_NK.sum(axis=0)) == pytest.approx(expected, abs=1e-9)
    assert expected > 0
    alone = [
        metric.corpus_score([prediction], [[r] for r in several]).score
        for prediction, several in zip(predictions[:50], references, strict=False)
    ]
    assert SCORES[name](rows_NK)[:50] == pytest.approx(alone, abs=1e-9)


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_signature_is_that_of_sacrebleu(name: Name, language: Language) -> None:
    """What moves the number is said as sacrebleu says it; the number of references may vary."""
    metric = MAKERS[language][name]()
    metric.corpus_score(["a", "b"], [["a", "b"], ["c", None]])
    assert signature(name, language).replace("|exact:200w", "") == str(metric.get_signature())


def test_ter_of_long_texts_takes_seconds_and_is_close_to_sacrebleu() -> None:
    """Beyond 200 words fewer shifts are tried; the edits are never fewer than sacrebleu's."""
    draw = random.Random(3)
    long = draw.choices([f"w{i}" for i in range(400)], k=260)
    moved = " ".join([*long[120:180], *long[:120], *long[180:]])
    row = np.array(statistics("ter", moved, [" ".join(long)], "en"))
    expected = TER().corpus_score([moved], [[" ".join(long)]]).score
    assert expected <= SCORES["ter"](row) <= 2 * expected + 1
    start = time.thread_time()
    text, other = (" ".join(draw.choices(WORDS["en"], k=n)) for n in (1000, 500))
    edits, wanted = statistics("ter", text, [other], "en")
    assert 500 <= edits <= 1000
    assert wanted == 500
    assert time.thread_time() - start < 20


def test_identical_chinese_scores_full_marks() -> None:
    """A short identical Chinese pair is cut into characters, not taken as one word."""
    aggregation = get_aggregation("bleu")
    row = aggregation.measured("bleu", [("肝胆湿热", "肝胆湿热")])
    assert SCORES["bleu"](np.array(list(row.values()))) == pytest.approx(100)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bleu", 42.72870063962342), ("chrf", 60.88131516269082), ("ter", 20.0)],
)
def test_items_of_the_harness(name: Name, expected: float) -> None:
    """Items `(reference, prediction)` give the numbers that lm-evaluation-harness computed."""
    items = [
        ("the cat sat on the mat", "the cat sat on a mat"),
        ("there is a dog", "there was a dog"),
    ]
    rows = [list(get_aggregation(name).measured(name, [item]).values()) for item in items]
    assert SCORES[name](np.array(rows).sum(axis=0)) == pytest.approx(expected)


def test_ter_of_texts_longer_than_is_aligned_at_once() -> None:
    """5,000 words need no edit to become themselves, one to lose one, some 2,900 to be cut."""
    words = random.Random(5).choices([f"w{i}" for i in range(3000)], k=5000)
    text = " ".join(words)
    assert statistics("ter", text, [text], "en") == [0, 5000]
    edits, _ = statistics("ter", text, [" ".join(words[:2100])], "en")
    assert 2900 <= edits <= 3000
    edits, _ = statistics("ter", text, [" ".join([*words[:4500], *words[4501:]])], "en")
    assert edits == 1
