"""Answers judged a second on one core, beside plain loops that do the same work.

Run: python tests/bench/bench_extraction.py
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Sequence

from xpe.evaluators.accuracy import AccuracyEvaluator
from xpe.evaluators.math import MathEvaluator

N = 10_000
ROUNDS = 5

CHOICES = [
    {"id": label, "text": text}
    for label, text in zip("ABCD", ("London", "Paris", "New York", "Tokyo"), strict=True)
]
CHOICE = {"answer": {"type": "choice", "value": "B"}, "choices": CHOICES}
SHORT = ("B", "(C)", "答案是：D", "The answer is B.", "选A", "b", "**B**", "Paris")
WORKED = (
    "Option A names London, which is the capital of another country, so A is wrong. As for (C), "
    "New York is a large city but no capital. D, Tokyo, is in Asia and can be excluded as well. "
)
WORKED_ZH = (
    "选项A提到伦敦，与题意不符，故排除。选项C虽然是大城市，但并不是首都，因此C错误。"
    "D项在亚洲，也可排除。"
)
NUMBERS = ("18", "1,234.5", "3/4", "12%", "-7", "1.5e3")
GOLDS = ("18", "1234.5", "0.75", "0.12", "-7", "1500")
SOLUTION = "She has 16 - 3 = 13 eggs left and sells them at $2 each, which makes 13 * 2 = $26.\n"

_LETTER = re.compile(r"\b([A-D])\b")
_NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")


def rate(function: Callable[[Sequence[str]], object], texts: Sequence[str]) -> float:
    """Return texts a second of processor time: the median of several rounds."""
    rates = []
    for _ in range(ROUNDS):
        start = time.process_time()
        function(texts)
        rates.append(len(texts) / (time.process_time() - start))
    return statistics.median(rates)


def of_length(parts: str, size: int, end: str) -> str:
    """Return a text of about `size` bytes that ends with `end`."""
    text = parts * (size // len(parts.encode()) + 1)
    while len(text.encode()) + len(end.encode()) > size:
        text = text[1:]
    return text + end


def by_accuracy(texts: Sequence[str]) -> object:
    return AccuracyEvaluator().evaluate(texts, [CHOICE] * len(texts))


def by_math(texts: Sequence[str]) -> object:
    references = [{"answer": {"value": gold}} for gold in GOLDS]
    return MathEvaluator().evaluate(
        texts, [references[index % len(GOLDS)] for index in range(len(texts))]
    )


def by_last_letter(texts: Sequence[str]) -> object:
    return sum((found := _LETTER.findall(text)) != [] and found[-1] == "B" for text in texts)


def by_last_number(texts: Sequence[str]) -> object:
    return sum(
        (found := _NUMBER.findall(text)) != [] and float(found[-1].replace(",", "")) == 18
        for text in texts
    )


def by_math_verify(texts: Sequence[str]) -> object:
    from math_verify import parse, verify

    golds = [parse(gold, parsing_timeout=None) for gold in GOLDS]
    return sum(
        verify(golds[index % len(GOLDS)], parse(text, parsing_timeout=None), timeout_seconds=None)
        for index, text in enumerate(texts)
    )


def cycled(texts: Sequence[str], count: int = N) -> list[str]:
    return [texts[index % len(texts)] for index in range(count)]


def main() -> None:
    """Print a table: what was judged, by whom, how many a second."""
    worked = of_length(WORKED, 1024, "So the answer is B.")
    worked_zh = of_length(WORKED_ZH, 1024, "故选B。")
    solution = of_length(SOLUTION, 1024, "A: 18")
    rows = [
        ("short answers", "accuracy", by_accuracy, cycled(SHORT)),
        ("short answers", "last letter by regex", by_last_letter, cycled(SHORT)),
        ("worked answers of 1 KB", "accuracy", by_accuracy, cycled([worked])),
        ("worked answers of 1 KB, Chinese", "accuracy", by_accuracy, cycled([worked_zh])),
        ("worked answers of 1 KB", "last letter by regex", by_last_letter, cycled([worked])),
        ("plain numbers", "math", by_math, cycled(NUMBERS)),
        ("plain numbers", "last number by regex", by_last_number, cycled(NUMBERS)),
        ("plain numbers", "math-verify", by_math_verify, cycled(NUMBERS, 600)),
        ("worked solutions of 1 KB", "math", by_math, cycled([solution])),
    ]
    for what, who, function, texts in rows:
        print(f"{what:32} {who:22} {rate(function, texts):12,.0f} /s")


if __name__ == "__main__":
    import logging

    logging.disable(logging.WARNING)
    main()
