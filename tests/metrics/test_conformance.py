"""The metrics against values that lm-evaluation-harness computed itself."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xpe.evaluators.base import scores
from xpe.evaluators.metric_list import MetricList
from xpe.metrics import get_aggregation
from xpe.metrics.choices import shares
from xpe.metrics.likelihoods import count_bytes, count_words
from xpe.metrics.texts import exact_match
from xpe.types import Answer, Exchange, LogLikelihood, Metric, Sample, Scored

AGGREGATED = {
    "mean": "mean",
    "median": "median",
    "weighted_perplexity": "weighted_perplexity",
    "bits_per_byte": "bits_per_byte",
    "f1(gold,pred)": "f1",
    "mcc(gold,pred)": "matthews_corrcoef",
    "brier": "brier_score",
}
CHOICES = (
    "multiple_choice.process_results(metrics,results[(ll,greedy)],gold,choices,multiple_target)"
)
NO_LABEL = -1
"""No choice is right then. The harness's exact_match takes it for the last choice."""


def cases(folder: Path, names: set[str]) -> list[dict[str, Any]]:
    """Read the cases of some functions."""
    text = (folder / "conformance" / "lm_eval_cases.json").read_text("utf-8")
    found = [case for case in json.loads(text) if case["fn"] in names and "expect" in case]
    assert found
    return found


def aggregated(name: str, items: list[Any]) -> float:
    """Aggregate items as a run does: rows, then the kind of metric."""
    aggregation = get_aggregation(name)
    rows = [aggregation.measured("m", [item]) for item in items]
    return float(scores([Metric("m", aggregation.kind("m"))], rows)["m"]["score"])


@pytest.mark.shared
def test_aggregations_equal_the_harness(shared_data: Path) -> None:
    """Each built-in aggregation gives the harness's number, but for its upper median."""
    for case in cases(shared_data, set(AGGREGATED)):
        items = case["args"][0]
        if case["fn"] == "median" and len(items) % 2 == 0:
            assert aggregated("median", items) == pytest.approx(float(np.median(items)))
            continue
        value = aggregated(AGGREGATED[case["fn"]], items)
        assert value == pytest.approx(case["expect"], rel=1e-12), case


@pytest.mark.shared
def test_counts_and_softmax_equal_the_harness(shared_data: Path) -> None:
    """Words, bytes and choice probabilities are counted as the harness counts them."""
    for case in cases(shared_data, {"count_words", "count_bytes", "softmax"}):
        functions: dict[str, Any] = {
            "count_words": count_words,
            "count_bytes": count_bytes,
            "softmax": shares,
        }
        made = functions[case["fn"]](case["args"][0])
        assert made == pytest.approx(case["expect"])


@pytest.mark.shared
def test_exact_match_equals_the_harness(shared_data: Path) -> None:
    """What is ignored, and in which order, is what the harness ignores."""
    for case in cases(shared_data, {"exact_match"}):
        pairs = zip(*case["args"], strict=True)
        values = [
            exact_match(predictions=[text], references=[gold], **case["kwargs"])
            for text, gold in pairs
        ]
        assert sum(values) / len(values) == case["expect"], case


@pytest.mark.shared
def test_multiple_choice_equals_the_harness(shared_data: Path) -> None:
    """Per question, each metric of choices gives the harness's value, but for a label of -1."""
    for case in cases(shared_data, {CHOICES}):
        metrics, results, *given = case["args"]
        more: list[Any] = given
        unstated: list[Any] = [1, None, False]
        gold, texts, _ = [*more, *unstated[len(more) :]]
        expected_of = case["expect"] | ({"exact_match": 0} if gold == NO_LABEL else {})
        measured = MetricList(names=tuple(metrics)).measure(_answer(results, gold, texts, metrics))
        for name, expected in expected_of.items():
            if isinstance(expected, (int, float)):
                assert measured[name] == expected, (case, name)


def _answer(
    results: list[list[float]], gold: Any, texts: list[str] | None, metrics: list[str]
) -> Answer:
    """Build the answer of a question; the second half of the results is without the question."""
    with_alone = "acc_mutual_info" in metrics
    n = len(results) // 2 if with_alone else len(results)
    texts = texts or ["A", "B", "C"][:n]
    labels = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    sample = Sample("t", 0, {}, gold, {"answer": {"value": gold}, "choices": labels})
    continuations = tuple(f" {text}" for text in texts)
    exchanges = [
        Exchange(
            LogLikelihood(context, continuations),
            Scored(tuple(ll for ll, _ in part), tuple(bool(g) for _, g in part), (1,) * len(part)),
        )
        for context, part in (("question", results[:n]), ("", results[n:]))
        if part
    ]
    return Answer(sample, tuple(exchanges))


def test_an_empty_choice_does_not_win() -> None:
    """A choice of no characters has a log likelihood per character of its own, not NaN."""
    answer = _answer([[-3.0, 0], [-1.0, 0]], 1, ["", "b"], ["acc_norm"])
    assert MetricList(names=("acc_norm",)).measure(answer)["acc_norm"] == 1.0


def test_perplexity_sums_before_it_divides() -> None:
    """Perplexity is of the mean log likelihood, not the mean of perplexities."""
    assert aggregated("perplexity", [-1.0, -3.0]) == pytest.approx(math.exp(2))
