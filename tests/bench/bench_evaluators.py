"""Samples a second of the BLEU and TCM evaluators, beside plain loops over the libraries.

    python tests/bench/bench_evaluators.py [N]

Both sides see the same texts in the same process, alternating; the median of five runs each.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jieba
from nltk.tokenize import word_tokenize
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics import BLEU, CHRF, TER

from xpe.evaluators import get_evaluator

RUNS = 5
EN = "the doctor said that fever cough and headache are not rare in winter , see page 12 .".split()  # noqa: SIM905
ZH = ["患者", "头痛", "发热", "，", "恶寒", "无汗", "。", "治宜", "辛温", "解表", "宣肺", "散寒"]


def pairs(language: str, n: int) -> tuple[list[str], list[str]]:
    """Make sentences of about 12 words and references that share most of them."""
    draw, words = random.Random(1), EN if language == "en" else ZH
    join = " ".join if language == "en" else "".join
    texts = [draw.choices(words, k=draw.randint(6, 18)) for _ in range(n)]
    return [join(text) for text in texts], [
        join([word if draw.random() < 0.8 else draw.choice(words) for word in text])
        for text in texts
    ]


def bare(language: str, predictions: list[str], references: list[str]) -> None:
    """Score with nltk and sacrebleu alone: sentence BLEU, corpus BLEU, chrF, TER."""
    chinese = language == "zh"
    smoothing = SmoothingFunction().method1
    for prediction, reference in zip(predictions, references, strict=True):
        if chinese:
            cut = [jieba.lcut(reference)], jieba.lcut(prediction)
        else:
            cut = (
                [word_tokenize(reference, preserve_line=True)],
                word_tokenize(prediction, preserve_line=True),
            )
        sentence_bleu(*cut, smoothing_function=smoothing)
    for metric in (
        BLEU(tokenize="zh" if chinese else "13a"),
        CHRF(),
        TER(normalized=chinese, asian_support=chinese),
    ):
        metric.corpus_score(predictions, [references])


def alternating(sides: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median seconds of each side, run in turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(RUNS):
        for name, side in sides.items():
            start = time.process_time()
            side()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main(n: int) -> None:
    """Print a row for each language, and one for the TCM evaluator."""
    for language in ("en", "zh"):
        predictions, golds = pairs(language, n)
        references = [{"answer": {"type": "text", "value": gold}} for gold in golds]
        evaluator = get_evaluator("bleu", language=language)
        jieba.initialize()
        taken = alternating(
            {
                "bare": lambda: bare(language, predictions, golds),  # noqa: B023
                "xpe": lambda: evaluator.evaluate(predictions, references),  # noqa: B023
            }
        )
        print(
            f"bleu {language}: {n / taken['xpe']:,.0f} samples/s, bare {n / taken['bare']:,.0f}, "
            f"{taken['xpe'] / taken['bare']:.3f} of the bare libraries' time"
        )
    golds = ["肝郁脾虚", "气滞血瘀", "湿热下注，膀胱失约", "肾阴亏虚"] * (n // 4)
    answers = [f"患者头痛发热，脉浮紧，辨证为{gold}，请结合临床。" for gold in golds[::-1]]
    references = [{"answer": {"type": "syndrome", "value": gold}} for gold in golds]
    evaluator = get_evaluator("tcm_diagnosis")
    taken = alternating({"xpe": lambda: evaluator.evaluate(answers, references)})
    print(f"tcm_diagnosis: {len(golds) / taken['xpe']:,.0f} samples/s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
