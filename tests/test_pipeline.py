"""A run from samples to estimates."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from players import Exact, Silent, StreamingModel, ToyTask

from xpe.pipeline import Run, evaluate
from xpe.stats.settings import Stats
from xpe.types import Answer, Failure, Generated, Mean, Measured, Metric


def run(model: StreamingModel, *, n: int = 10, evaluators: list | None = None) -> tuple:
    watch = Silent()
    chosen = [Exact()] if evaluators is None else evaluators
    made = Run(
        models={"model": model},
        tasks=[ToyTask(n=n)],
        evaluators={"toy": {e.name: e for e in chosen}},
        stats=Stats(bootstrap_iters=0),
    )
    return evaluate(made, watch=watch), watch


def test_all_right() -> None:
    """Ten right answers of ten: value 1, Wilson's interval of 10/10."""
    result, watch = run(StreamingModel())
    found = result.tasks["toy"].estimates["exact"]

    assert (found.value, found.n, found.count, found.partial) == (1.0, 10, 10, False)
    assert found.ci == pytest.approx((0.722467, 1.0), abs=1e-6)
    assert len(watch.replies) == len(watch.answers) == 10
    assert watch.results == [result.tasks["toy"]]


def test_failed_samples_are_counted_not_scored() -> None:
    """Two failures of ten leave the value over eight, n at ten, and bounds for both fates."""
    fails = {3: Failure("timeout", "60 s"), 4: Failure("server", "500")}
    result, _ = run(StreamingModel(fails=fails))
    found = result.tasks["toy"].estimates["exact"]

    assert (found.value, found.n, found.count, found.n_failed) == (1.0, 10, 8, 2)
    assert found.partial
    assert result.partial
    assert found.bounds == pytest.approx((0.8, 1.0))


def test_wrong_and_truncated_answers_score() -> None:
    """A wrong answer cut at the token limit scores 0 and is counted as truncated."""
    fails = {0: Generated("no", finish="length")}
    result, _ = run(StreamingModel(fails=fails))
    found = result.tasks["toy"].estimates["exact"]

    assert (found.value, found.count, found.n_truncated, found.partial) == (0.9, 10, 1, False)


@dataclass(frozen=True)
class Parts(Exact):
    """A metric over the odd documents only, and one over documents that do not exist."""

    name: str = "parts"
    metrics: tuple[Metric, ...] = (
        Metric("odd", Mean("right", of="is_odd")),
        Metric("absent", Mean("right", of="is_absent")),
    )

    def measure(self, answer: Answer) -> Measured:
        odd = answer.sample.doc_id % 2
        return {"right": odd, "is_odd": odd, "note": "text stays out of the rows"}


def test_submetric_appears_only_where_it_has_samples() -> None:
    """A metric of a part counts that part; where no sample belongs to it there is no row."""
    result, _ = run(StreamingModel(), evaluators=[Parts()])

    assert {k: e.count for k, e in result.tasks["toy"].estimates.items()} == {"odd": 5}


def test_rows_are_in_document_order_whatever_the_order_of_answers() -> None:
    """Answers that arrive backwards give the same estimates, to the byte."""

    class Backwards(StreamingModel):
        def reply(self, asked):
            pulled = []
            for one in asked:
                if one is None:
                    break
                pulled.append(one)
            for one in reversed(pulled):
                yield one, self.answer(one)
            assert list(asked) == []

    forward, _ = run(StreamingModel())
    backward, watch = run(Backwards())

    assert forward == backward
    assert watch.answers[0].sample.doc_id == 9


def test_without_evaluators_nothing_is_scored() -> None:
    """`predict_only` answers everything and scores nothing."""
    result, watch = run(StreamingModel(), evaluators=[])

    assert len(watch.answers) == 10
    assert result.tasks["toy"].estimates == {}


def test_a_given_name_goes_before_the_metrics() -> None:
    """Two evaluators of one kind, one of them named, have rows of their own."""

    @dataclass(frozen=True)
    class Named(Exact):
        name: str = "strict"
        prefix: str = "strict_"

    result, _ = run(StreamingModel(), evaluators=[Exact(), Named()])

    assert list(result.tasks["toy"].estimates) == ["exact", "strict_exact"]
