"""Judges: what they are asked, what counts as a verdict, and that a failure is never a 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from players import ToyTask
from tool_players import Critic, play, ratings

from xpe.errors import ConfigError
from xpe.evaluators.judge import JudgeEvaluator
from xpe.evaluators.verdicts import DIMENSIONS, kappa_sums, verdict, weighted_kappa
from xpe.types import Asked, Failure, Generated, Reply

ONE = JudgeEvaluator(judges=(True,))


@pytest.mark.parametrize(
    "text",
    [
        ratings(8, 6, 10, 7),
        f"```json\n{ratings(8, 6, 10, 7)}\n```",
        f"I thought about it.\n{ratings(8, 6, 10, 7)}\nThat is all.",
        f'{{"reason": "good"}} then {ratings(8, 6, 10, 7)}',
        f'{{"scores": {ratings(8, 6, 10, 7)}, "comment": "ok"}}',
        (
            '{"content_accuracy": "8", "completeness": "6/10", "expression_quality": "10分", '
            '"format_consistency": 7.0}'
        ),
        (
            '{"Content Accuracy": 8, "Completeness": 6, "Expression-Quality": 10, '
            '"Format Consistency": 7}'
        ),
        '{"内容准确性": 8, "完整性": 6, "表达质量": 10, "格式一致性": 7,}',
        (
            '{"content_accuracy": {"score": 8, "reason": "x"}, "completeness": {"score": 6}, '
            '"expression_quality": {"score": 10}, "format_consistency": {"score": 7}}'
        ),
        "内容准确性：8分\n完整性：6分\n表达质量：10分\n格式一致性：7分",
        (
            "- **Content accuracy**: 8/10\n- **Completeness**: 6/10\n"
            "- **Expression quality**: 10/10\n"
            "- **Format consistency**: 7/10"
        ),
    ],
)
def test_verdicts_in_every_form(text: str) -> None:
    """JSON as asked for, and what judges write instead."""
    assert verdict(text) == (8.0, 6.0, 10.0, 7.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A fine answer.",
        '{"content_accuracy": 8, "completeness": 6, "expression_quality": 10}',
        ratings(8, 6, 11, 7),
        ratings(8, 6, -1, 7),
        (
            '{"content_accuracy": true, "completeness": 6, "expression_quality": 1, '
            '"format_consistency": 7}'
        ),
        '{"content_accuracy": 8, "completeness": 6, "expression_quality": 10, "format_cons',
        "Content accuracy 8, completeness 6",
    ],
)
def test_what_is_no_verdict(text: str) -> None:
    """A missing dimension, a number outside of 0–10, a text that breaks off."""
    assert verdict(text) is None


@given(st.text() | st.text(alphabet='{}[]":,0123456789 content_accuracy内容准确性'))
def test_reading_a_verdict_never_raises(text: str) -> None:
    """Whatever a judge writes is a verdict or none."""
    found = verdict(text)

    assert found is None or len(found) == len(DIMENSIONS)


@dataclass
class Writer:
    """A model that writes what it is told, by document."""

    texts: Sequence[str | Reply]
    asked: list[Asked] = field(default_factory=list)
    identity: Any = field(default_factory=dict)

    def reply(self, asked: Any) -> Any:
        for one in asked:
            said = None if one is None else self.texts[one.origin.doc_id % len(self.texts)]
            reply = Generated(said) if isinstance(said, str) else said
            yield None if one is None else (one, reply)


def judge_of(*verdicts: str | Reply) -> Critic:
    return Critic(lambda one: verdicts[one.origin.doc_id % len(verdicts)])


def test_the_score_is_the_mean_over_ten() -> None:
    """(8 + 6 + 10 + 7) / 4 / 10, and 1.0 for full marks."""
    found, _ = play(
        ToyTask(n=2),
        ONE,
        model=Writer(["a", "b"]),
        judge=judge_of(ratings(8, 6, 10, 7), ratings(10, 10, 10, 10)),
    )

    assert found["answer_score"].value == pytest.approx((0.775 + 1) / 2)
    assert found["completeness"].value == pytest.approx(0.8)
    assert found["answer_score"].count == 2


def test_a_judge_that_fails_is_counted_and_never_zero() -> None:
    """Neither a failure nor a reply without a verdict moves the mean of the others."""
    found, _ = play(
        ToyTask(n=4),
        ONE,
        model=Writer(["a"]),
        judge=judge_of(
            ratings(8, 8, 8, 8), Failure("timeout", "x"), "no idea", ratings(6, 6, 6, 6)
        ),
    )
    score = found["answer_score"]

    assert score.value == pytest.approx(0.7)
    assert (score.n, score.count, score.n_failed, score.partial) == (4, 2, 2, True)


def test_a_model_that_fails_is_not_judged() -> None:
    """Its failure is counted; an empty answer is 0 without asking."""
    judge = judge_of(ratings(8, 8, 8, 8))
    found, _ = play(
        ToyTask(n=3), ONE, model=Writer(["a", Failure("server", "x"), "  "]), judge=judge
    )
    score = found["answer_score"]

    assert len(judge.asked) == 1
    assert score.value == pytest.approx(0.4)
    assert (score.n_failed, score.n_unparsed) == (1, 1)


def test_without_a_judge_the_metric_is_absent_with_a_note() -> None:
    """The model under test never judges itself unasked."""
    found, seen = play(ToyTask(n=3), JudgeEvaluator(), model=Writer(["a"]))

    assert found["answer_score"].value is None
    assert found["answer_score"].why == "no judge"
    assert not found["answer_score"].partial
    assert all(len(answer.exchanges) == 1 for answer in seen.answers)


def test_what_a_judge_reads() -> None:
    """Question, reference and answer in tags, in the language of the question, and the form."""
    judge = judge_of(ratings(8, 8, 8, 8))
    play(ToyTask(n=1), ONE, model=Writer(["the answer"]), judge=judge)
    (asked,) = judge.asked
    system, user = asked.request.prompt

    assert all(name in system["content"] for name in DIMENSIONS)
    assert user["content"] == (
        "Request:\n<request>\n0:0:0\n</request>\n\n"
        "Reference answer:\n<reference>\n0\n</reference>\n\n"
        "Answer to rate:\n<answer>\nthe answer\n</answer>"
    )
    schema = asked.request.extra["response_format"]["json_schema"]["schema"]
    assert schema["required"] == list(DIMENSIONS)
    assert (asked.request.to, asked.request.temperature) == ("judge", 0.0)

    judge = judge_of(ratings(8, 8, 8, 8))
    chinese = JudgeEvaluator(judges=(False,), language="zh")
    play(ToyTask(n=1), chinese, model=Writer(["x"]), judge=judge)
    assert "待评回答" in judge.asked[0].request.prompt[1]["content"]
    assert judge.asked[0].request.extra == {}


def test_a_server_that_refuses_the_form_is_asked_without_it() -> None:
    """One more request; its verdict counts."""

    def say(one: Asked) -> Reply | str:
        if one.request.extra:
            return Failure("bad_request", "response_format is not supported")
        return ratings(9, 9, 9, 9)

    judge = Critic(say)
    found, _ = play(ToyTask(n=2), ONE, model=Writer(["a"]), judge=judge)

    assert found["answer_score"].value == pytest.approx(0.9)
    assert found["answer_score"].n_failed == 0
    assert len(judge.asked) == 4


def test_swapped_positions_are_averaged_and_compared() -> None:
    """Each answer is rated twice; the mean counts, and agreement is reported."""

    def say(one: Asked) -> str:
        text = one.request.prompt[1]["content"]
        first = text.index("<answer>") < text.index("<reference>")
        return ratings(6, 6, 6, 6) if first else ratings(8, 8, 8, 8 - one.origin.doc_id)

    judge = Critic(say)
    twice = JudgeEvaluator(judges=(True,), swap=True)
    found, _ = play(ToyTask(n=3), twice, model=Writer(["a"]), judge=judge)

    assert len(judge.asked) == 6
    assert found["answer_score"].value == pytest.approx((0.7 + 0.6875 + 0.675) / 3)
    first = [8] * 4 + [8, 8, 8, 7] + [8, 8, 8, 6]
    assert found["position_kappa"].value == pytest.approx(reference(first, [6] * 12))


def test_several_judges_are_averaged_and_compared() -> None:
    """One that fails leaves the answer without a score, not with that of the other."""
    two = JudgeEvaluator(judges=(True, False))
    names = {"judge": judge_of(ratings(8, 8, 8, 4)), "judge.2": judge_of(ratings(6, 8, 6, 4))}
    found, _ = play(ToyTask(n=2), two, model=Writer(["a"]), **names)

    assert found["answer_score"].value == pytest.approx((0.7 + 0.6) / 2)
    expected = reference([8, 8, 8, 4] * 2, [6, 8, 6, 4] * 2)
    assert found["judge_kappa"].value == pytest.approx(expected)

    names["judge.2"] = judge_of("no idea", ratings(6, 8, 6, 4))
    found, _ = play(ToyTask(n=2), two, model=Writer(["a"]), **names)
    assert (found["answer_score"].count, found["answer_score"].n_failed) == (1, 1)


def reference(first: Sequence[float], second: Sequence[float]) -> float:
    metrics = pytest.importorskip("sklearn.metrics")
    return float(metrics.cohen_kappa_score(first, second, weights="quadratic", labels=range(11)))


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=30))
def test_kappa_beside_a_reference(pairs: list[tuple[int, int]]) -> None:
    """Sums alone give the kappa with quadratic weights of scikit-learn."""
    if len({rating for pair in pairs for rating in pair}) == 1:
        return
    sums = np.array(kappa_sums(pairs))

    assert float(weighted_kappa(sums)) == pytest.approx(
        reference(*map(list, zip(*pairs, strict=True))), abs=1e-9
    )


def test_a_judge_is_chosen_by_config() -> None:
    """`judge=` says who; a model that takes no schema gets none, and none is none."""
    from xpe.config import compose, dump, finish

    typed = ["task=translation_zh_en", "evaluator=judge", "tracking=none"]
    chosen = (
        ["judge=openai", "judge.model=m"],
        ["judge=smollm2"],
        ["judge=panel"],
        ["judge=none"],
        [],
    )
    runs = [compose([*typed, *more]) for more in chosen]

    assert [run.evaluators["translation_zh_en"]["judge"].judges for run in runs] == [
        (True,),
        (False,),
        (True, True),
        (),
        (),
    ]
    assert list(runs[2].models) == ["model", "judge", "judge.2"]
    assert finish(dump(runs[2])) == runs[2]


def test_a_wrong_seat_on_a_panel_is_named() -> None:
    """Before the run, with its place."""
    from xpe.config import compose

    with pytest.raises(ConfigError, match=r"judge\.judges\.1\.modell: no such setting"):
        compose(["judge=panel", "judge.judges=[{kind:smollm2},{kind:openai,modell:x}]"])
