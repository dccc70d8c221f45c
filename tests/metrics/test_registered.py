"""Metrics and aggregations by name, ours and a user's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef

from xpe.evaluators.base import scores
from xpe.evaluators.metric_list import MetricList
from xpe.metrics import (
    aggregations,
    default_metrics,
    get_aggregation,
    get_metric,
    list_metrics,
    register_aggregation,
    register_metric,
    registered,
)
from xpe.metrics.texts import pass_rate
from xpe.types import Answer, Exchange, Generate, Generated, Items, Metric, Rolling, Sample, Scored


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Take back what a test registers."""
    metrics, known = dict(registered._REGISTERED), dict(aggregations.AGGREGATIONS)
    yield
    registered._REGISTERED.clear()
    registered._REGISTERED.update(metrics)
    aggregations.AGGREGATIONS.clear()
    aggregations.AGGREGATIONS.update(known)


def written(*texts: str, target: Any = "right") -> Answer:
    """Answer a question with texts, one a repeat."""
    sample = Sample("t", 0, {}, target, {"answer": {"type": "text", "value": target}})
    return Answer(sample, tuple(Exchange(Generate("q"), Generated(text)) for text in texts))


def value(evaluator: MetricList, answers: Sequence[Answer]) -> float:
    """Score the first metric of a list over answers."""
    rows = [evaluator.measure(answer) for answer in answers]
    return float(scores(evaluator.metrics, rows)[evaluator.metrics[0].name]["score"])


def test_a_user_registers_a_metric() -> None:
    """The decorated function sees one text and all references; the list passes settings."""

    @register_metric(metric="length", higher_is_better=False, aggregation="median")
    def length(*, predictions: Sequence[str], references: Sequence[str], unit: int = 1) -> float:
        assert list(references) == ["right"]
        return len(predictions[0]) / unit

    listed = MetricList(names=({"metric": "length", "unit": 2, "name": "half"},))
    assert listed.metrics[0].higher_is_better is False
    assert value(listed, [written("aa"), written("aaaa"), written("a" * 10)]) == 2
    assert "length" in list_metrics()
    assert length(predictions=["a"], references=["right"]) == 1


def test_a_user_registers_an_aggregation() -> None:
    """A function of the list sees every item, those of repeats too."""

    @register_aggregation("largest")
    def largest(items: list[float]) -> float:
        assert len(items) == 3
        return max(items)

    listed = MetricList(names=({"metric": "exact_match", "aggregation": "largest"},))
    assert isinstance(listed.metrics[0].kind, Items)
    rows = [listed.measure(answer) for answer in (written("no", "right"), written("no"))]
    kind = listed.metrics[0].kind
    assert kind.aggregate([row["exact_match"] for row in rows]) == 1
    assert largest([1.0, 3.0, 2.0]) == 3


SCRIPT = """
import datasets
import evaluate


class Likeness(evaluate.Metric):
    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description="", citation="", features=datasets.Features(
                predictions=text, references=text
            ),
        )

    def _compute(self, predictions, references, floor=0.0):
        pairs = [(set(p), set(r)) for p, r in zip(predictions, references)]
        return {"likeness": max(floor, sum(len(p & r) / len(p | r) for p, r in pairs) / len(pairs))}
"""


def test_a_name_that_is_not_ours_is_one_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`evaluate` loads and computes it; what it cannot load is one message with our names."""
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("evaluate.config.HF_EVALUATE_OFFLINE", True)
    script = tmp_path / "likeness" / "likeness.py"
    script.parent.mkdir()
    script.write_text(SCRIPT, "utf-8")

    named = {"metric": str(script.parent), "name": "likeness"}
    answers = [written("right"), written("rigid"), written("no")]
    assert value(MetricList(names=(named,)), answers) == pytest.approx((1 + 3 / 6 + 0) / 3)
    assert value(MetricList(names=({**named, "floor": 0.5},)), answers) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match=r"'likenes'\..* Known: acc, .*`evaluate` cannot load it"):
        get_metric("likenes")


def test_unknown_names_list_the_nearest() -> None:
    """Metrics, aggregations and output types; a metric that does not fit the output is named."""
    with pytest.raises(ValueError, match="Did you mean 'exact_match'"):
        get_metric("exact_mach")
    with pytest.raises(ValueError, match="Did you mean 'median'"):
        get_aggregation("meadian")
    with pytest.raises(ValueError, match="'multiple_choice'"):
        register_metric(metric="m", output_type="multiple_choices")
    with pytest.raises(ValueError, match=r"'acc_norm' measures multiple_choice, not generate"):
        MetricList(names=("acc_norm",), output_type="generation")
    with pytest.raises(ValueError, match="names"):
        MetricList()


def test_defaults_by_kind_of_output() -> None:
    """What lm-evaluation-harness takes for a task that names no metric."""
    assert default_metrics("multiple_choice") == ("acc", "acc_norm")
    assert default_metrics("generate_until") == ("exact_match",)
    assert default_metrics("loglikelihood") == ("perplexity", "acc")
    names = [metric.name for metric in MetricList(output_type="perplexity").metrics]
    assert names == ["word_perplexity", "byte_perplexity", "bits_per_byte"]


def test_every_metric_has_a_direction_and_an_aggregation() -> None:
    """Perplexities, TER and the Brier score are better low; all else is better high."""
    low = {name for name in list_metrics() if not get_metric(name).higher_is_better}
    assert low == {
        "perplexity",
        "word_perplexity",
        "byte_perplexity",
        "bits_per_byte",
        "ter",
        "brier_score",
    }
    for name in list_metrics():
        get_aggregation(get_metric(name).aggregation)


def test_a_rolling_text_is_measured_per_word_and_byte() -> None:
    """A Chinese text without spaces is one word; its bytes are 3 a character."""
    request, reply = Rolling("北京 很大"), Scored((-13.0,), (False,), (4,))
    answer = Answer(Sample("t", 0, {}, "", {}), (Exchange(request, reply),))
    rows = [MetricList(output_type="loglikelihood_rolling").measure(answer)]
    found = scores(MetricList(output_type="perplexity").metrics, rows)
    assert found["word_perplexity"]["score"] == pytest.approx(math.exp(13 / 2))
    assert found["byte_perplexity"]["score"] == pytest.approx(math.e)
    assert found["bits_per_byte"]["score"] == pytest.approx(1 / math.log(2))


def test_repeats() -> None:
    """pass@k, maj@k and avg@k see all repeats of a question."""
    answers = [written("right", "no", "right"), written("no", "no", "right")]
    at = [
        value(MetricList(names=({"metric": name, **given},)), answers)
        for name, given in (
            ("avg@k", {}),
            ("maj@k", {}),
            ("pass@k", {"k": 1}),
            ("pass@k", {"k": 2}),
            ("avg@k", {"k": 2}),
        )
    ]
    assert at == pytest.approx([0.5, 0.5, 0.5, (1 + 2 / 3) / 2, 0.25])


@pytest.mark.parametrize(
    ("n", "right", "k", "expected"),
    [(10, 3, 1, 0.3), (10, 3, 2, 0.533333), (10, 3, 5, 0.916667), (3, 3, 1, 1.0), (3, 0, 3, 0.0)],
)
def test_pass_rate(n: int, right: int, k: int, expected: float) -> None:
    """The unbiased estimate, by published numbers; undefined for more than there are."""
    assert pass_rate(n, right, k) == pytest.approx(expected, abs=1e-6)
    assert math.isnan(pass_rate(n, right, n + 1))


@pytest.mark.filterwarnings("ignore:A single label")
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3)), min_size=1, max_size=40))
def test_mcc_and_f1_equal_scikit_learn(items: list[tuple[int, int]]) -> None:
    """mcc of several classes, with answers (-1) that name none; f1 of two."""
    golds, made = zip(*items, strict=True)
    assert aggregated("matthews_corrcoef", items) == pytest.approx(
        matthews_corrcoef(golds, made), abs=1e-12
    )
    binary = [(gold % 2, label % 2) for gold, label in items]
    golds, made = zip(*binary, strict=True)
    assert aggregated("f1", binary) == pytest.approx(f1_score(golds, made, zero_division=0))


def aggregated(name: str, items: Sequence[Any]) -> float:
    """Aggregate items as a run does: rows, then the kind of metric."""
    aggregation = get_aggregation(name)
    rows = [aggregation.measured("m", [item]) for item in items]
    return float(scores([Metric("m", aggregation.kind("m"))], rows)["m"]["score"])
