"""What other frameworks get wrong, where no other test of ours would catch it; and repeats."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xpe.errors import ConfigError, DataError
from xpe.evaluators.metric_list import MetricList
from xpe.metrics import get_aggregation
from xpe.stats import intervals, power, repeats
from xpe.stats.agreement import cohen_kappa
from xpe.stats.closed import mean_stderr
from xpe.stats.estimate import estimate, estimate_all
from xpe.stats.multiplicity import holm
from xpe.stats.paired import mcnemar_exact, mcnemar_midp, paired_difference, sign_flip, z_test
from xpe.stats.settings import Stats
from xpe.tables import Ledger, measure
from xpe.types import Answer, Exchange, Generate, Generated, Mean, Metric, Sample, Table

SCORES = np.array([[1, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0], [1, 0, 1, 1]], float)


def test_one_discordant_pair_proves_nothing() -> None:
    """1–0: Wald divides by a spread of 0 and finds p = 0; the exact test gives 1."""
    assert z_test(1.0, 0.0) == 0.0
    assert mcnemar_exact(1, 0) == 1.0
    assert mcnemar_midp(1, 0) == 0.5
    a, b = np.array([1.0, 1, 0, 1, 0]), np.array([1.0, 0, 0, 1, 0])
    made = paired_difference(a, b)
    assert (made.test, made.p) == ("McNemar exact", 1.0)


def test_overlapping_intervals_are_no_test() -> None:
    """Both intervals overlap widely, and yet every flip goes one way."""
    a = np.repeat([1.0, 0.0], [130, 70])
    b = np.repeat([1.0, 0.0], [118, 82])
    low_a, high_b = intervals.wilson(130, 200)[0], intervals.wilson(118, 200)[1]
    assert low_a < high_b
    made = paired_difference(a, b)
    assert made.p == pytest.approx(2 * 0.5**12)
    assert made.ci is not None
    assert made.ci[0] > 0


def test_a_share_keeps_its_denominator() -> None:
    """4,441 asked, 50 failed, 300 unparsed: unparsed ones count, failed ones show."""
    n, failed, unparsed, right = 4441, 50, 300, 3000
    x = np.repeat([1.0, 0.0], [right, n - right])
    marks = np.zeros((n, 2))
    marks[n - failed :, 0] = 1
    marks[n - failed - unparsed : n - failed, 1] = 1
    scored = marks[:, 0] == 0
    rows = np.column_stack([x, marks])
    table = Table(("acc", "failed", "unparsed"), rows, tuple(range(n)), scored, (None,) * n)
    made = estimate(Metric("acc", Mean("acc")), table, Stats())
    assert made.value == right / 4391
    assert (made.n, made.count, made.n_failed, made.n_unparsed) == (4441, 4391, 50, 300)
    assert made.partial
    assert made.bounds == (right / n, (right + failed) / n)


def test_repeats_of_a_question_are_one_sample_in_a_run() -> None:
    """S14 from the items of a metric to the estimate: error over questions, variance split."""
    rows = [get_aggregation("mean").measured("acc", list(row)) for row in SCORES]
    columns = tuple(rows[0])
    values = np.array([[row[c] for c in columns] for row in rows])
    table = Table(columns, values, tuple(range(5)), np.ones(5, bool), (None,) * 5)
    made = estimate(Metric("acc", Mean("acc")), table, Stats())
    assert (made.value, made.stderr) == (pytest.approx(0.6), pytest.approx(0.15))
    assert made.extra["repeats"] == 4
    assert made.extra["within_variance"] == pytest.approx(0.2)
    assert made.extra["between_variance"] == pytest.approx(0.0625)
    once = Table(("acc",), values[:, :1], table.doc_ids, table.scored_N, table.clusters)
    assert estimate(Metric("acc", Mean("acc")), once, Stats()).extra == {}


def test_pass_rates_have_intervals_over_questions() -> None:
    """pass@2 and pass^2 of three questions with 10 answers each; values by hand."""
    right = np.array([3, 7, 10])
    value, stderr, ci = repeats.mean_pass_rate(right, 10, 2)
    each = [1 - 21 / 45, 1 - 3 / 45, 1.0]
    assert value == pytest.approx(np.mean(each))
    assert stderr == pytest.approx(np.std(each, ddof=1) / math.sqrt(3))
    assert ci[0] < value < ci[1]
    every, _, _ = repeats.mean_pass_rate(right, 10, 2, every=True)
    assert every == pytest.approx(np.mean([3 / 45, 21 / 45, 1.0]))
    assert math.isnan(repeats.mean_pass_rate(right[:1], 10, 2)[1])
    assert math.isnan(repeats.mean_pass_rate(right, 10, 11)[0])


def test_pass_rates_of_a_run_have_intervals_over_questions() -> None:
    """The same from ten written answers a question to the estimates of a run."""
    rates = [{"metric": "pass@k", "k": 2}, {"metric": "pass^k", "k": 2, "name": "pass^2"}]
    ledger = Ledger(MetricList(names=tuple(rates)))
    for doc_id, right in enumerate([3, 7, 10]):
        target = {"answer": {"type": "text", "value": "right"}}
        texts = ["right"] * right + ["no"] * (10 - right)
        said = tuple(Exchange(Generate("q"), Generated(text)) for text in texts)
        answer = Answer(Sample("t", doc_id, {}, "right", target), said)
        ledger.add(answer, measure(ledger.evaluator, answer))
    made = estimate_all(ledger.metrics(), Stats(bootstrap_iters=20_000))
    for found, each in zip(
        made.values(), ([1 - 21 / 45, 1 - 3 / 45, 1.0], [3 / 45, 21 / 45, 1.0]), strict=True
    ):
        assert found.value == pytest.approx(np.mean(each))
        assert found.stderr == pytest.approx(np.std(each) / math.sqrt(3), rel=0.03)
        assert (found.count, found.ci_method) == (3, "percentile")
        assert found.ci == pytest.approx((min(each), max(each)), abs=0.02)


def test_one_repeat_or_one_question_says_nothing_of_its_variance() -> None:
    """NaN, never 0."""
    alone = repeats.repeated_mean(SCORES[:1])
    assert math.isnan(alone.stderr)
    assert math.isnan(alone.between)
    once = repeats.repeated_mean(SCORES[:, :1])
    assert math.isnan(once.within)
    assert once.stderr == pytest.approx(mean_stderr(SCORES[:, 0]))


def test_paired_interval_has_a_width_without_discordant_pairs() -> None:
    """Thirty equal answers do not show that two systems are equal."""
    made = paired_difference(np.ones(30), np.ones(30))
    assert made.value == 0
    assert made.ci is not None
    assert made.ci[1] > 0.1
    assert (made.p, made.correlation) == (1.0, None)


def test_paired_interval_holds_the_truth() -> None:
    """Simulated: at least 93 % for correlated systems of 30 questions near the end."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(500):
        luck = rng.random(30)
        other = np.where(rng.random(30) < 0.6, luck, rng.random(30))
        ci = paired_difference((luck < 0.95) * 1.0, (other < 0.85) * 1.0).ci
        assert ci is not None
        held += ci[0] <= 0.1 <= ci[1]
    assert held >= 0.93 * 500


@pytest.mark.parametrize(
    "call",
    [
        lambda: paired_difference(np.ones(3), np.ones(4)),
        lambda: paired_difference(np.ones(0), np.ones(0)),
        lambda: sign_flip(np.ones(21)),
        lambda: intervals.wilson(3, 2),
        lambda: intervals.wilson(0, 0),
        lambda: repeats.repeated_mean(np.ones(3)),
        lambda: repeats.repeated_mean(np.array([[1.0, math.nan]])),
        lambda: repeats.mean_pass_rate(np.array([], int), 5, 1),
        lambda: repeats.pass_at_k(3, 4, 1),
        lambda: cohen_kappa("ab", "a"),
        lambda: holm([0.5, 1.5]),
    ],
)
def test_bad_data_is_an_error(call: object) -> None:
    """Mismatched lengths, empty input, impossible counts and shares: one clear error each."""
    with pytest.raises(DataError):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(
    "call",
    [
        lambda: power.needed(0, 1),
        lambda: power.needed(0.1, -1),
        lambda: power.detectable(1, 0),
        lambda: power.z_sum(alpha=0),
        lambda: power.shares_variance(1.2, 0.5),
        lambda: power.shares_variance(0.2, 0.5, 2),
    ],
)
def test_impossible_plans_are_errors(call: object) -> None:
    """No difference, negative variance, no samples, shares and correlations out of range."""
    with pytest.raises(ConfigError):
        call()  # type: ignore[operator]


def test_one_cluster_in_a_comparison_has_no_error() -> None:
    """Undefined with a reason, not 0."""
    made = paired_difference(np.array([1.0, 0, 1]), np.zeros(3), clusters=["a"] * 3)
    assert (made.stderr, made.ci, made.p, made.why) == (None, None, None, "one cluster")
