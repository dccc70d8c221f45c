"""The accuracy evaluator: choices, texts, numbers; from Python and in a run."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpe.evaluators.accuracy import AccuracyEvaluator
from xpe.types import Answer, Exchange, Generate, Generated, Sample

CHOICES = [{"id": "A", "text": "London"}, {"id": "B", "text": "Paris"}, {"id": "C", "text": "Rome"}]


def reference(value, kind="choice", **more):
    return {"answer": {"type": kind, "value": value}, **more}


def judged(prediction, gold, **settings_):
    return AccuracyEvaluator(**settings_).judge_text(prediction, gold)


def test_documented_example():
    """The example of the documentation gives what its rules say."""
    predictions = ["选择A", "我认为答案是B", "这是正确的文本"]
    references = [
        reference("A", choices=[{"id": "A"}, {"id": "B"}]),
        reference("C", choices=[{"id": "A"}, {"id": "B"}, {"id": "C"}]),
        reference("这是正确的文本", "text"),
    ]

    result = AccuracyEvaluator(exact_match=True, case_sensitive=False).evaluate(
        predictions, references
    )

    assert result == {
        "accuracy": {"score": 2 / 3, "min": 0.0, "max": 1.0, "count": 3},
        "choice_accuracy": {"score": 0.5, "min": 0.0, "max": 1.0, "count": 2},
        "text_accuracy": {"score": 1.0, "min": 1.0, "max": 1.0, "count": 1},
    }


def test_documented_defaults():
    """The four documented settings have the documented defaults."""
    evaluator = AccuracyEvaluator()

    assert evaluator.exact_match is True
    assert evaluator.case_sensitive is False
    assert evaluator.allow_partial is False
    assert evaluator.numeric_tolerance == 0.0001


@pytest.mark.parametrize(
    ("prediction", "gold", "extracted"),
    [
        ("B", reference("B", choices=CHOICES), "B"),
        ("答案：b", reference("b", choices=CHOICES), "B"),
        ("Paris", reference("B", choices=CHOICES), "B"),
        ("The answer is C.", reference("Rome", choices=CHOICES), "C"),
        ("B", reference("B", choices=["London", "Paris"]), "B"),
        ("C and A", reference("AC", choices=CHOICES), "AC"),
        ("C、A", reference(["A", "C"], choices=CHOICES), "AC"),
        ("答案是丙", reference("丙"), "丙"),
        ("The answer is yes", reference("yes", choices=[{"id": "yes"}, {"id": "no"}]), "yes"),
        ("The answer is 3.00005", reference(3, "number"), "3.00005"),
        ("一共三千五百元", reference("3,500", "number"), "3500"),
        (" Paris\n", reference(["Lutetia", "paris"], "text"), "Paris"),
        ("<think>A? No.</think>B", reference("B", choices=CHOICES), "B"),
        ("风寒束表", reference("风寒束表", "syndrome"), "风寒束表"),
    ],
)
def test_right_answers(prediction, gold, extracted):
    """What agrees with the gold scores 1 and is parsed; the extracted answer is kept."""
    measured = judged(prediction, gold)

    assert measured["accuracy"] == 1.0
    assert measured["unparsed"] == 0
    assert measured["extracted"] == extracted


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("A", reference("B", choices=CHOICES)),
        ("A", reference(["A", "C"], choices=CHOICES)),
        ("Berlin", reference("Paris", "text")),
        ("3.0002", reference(3, "number")),
        ("Paris, France", reference("Paris", "text")),
    ],
)
def test_wrong_answers_are_parsed(prediction, gold):
    """What was read and disagrees scores 0 and is not unparsed."""
    measured = judged(prediction, gold)

    assert (measured["accuracy"], measured["unparsed"]) == (0.0, 0)


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("A or B", reference("B", choices=CHOICES)),
        ("no idea", reference("B", choices=CHOICES)),
        ("", reference("Paris", "text")),
        ("no idea", reference(3, "number")),
        ("<think>It must be B", reference("B", choices=CHOICES)),
        ("<think>Paris", reference("Paris", "text")),
    ],
)
def test_unparsed_answers_score_zero_and_say_so(prediction, gold):
    """No answer, several answers, and reasoning that never ends are unparsed."""
    measured = judged(prediction, gold)

    assert (measured["accuracy"], measured["unparsed"]) == (0.0, 1)


@pytest.mark.parametrize(
    "gold",
    [
        reference("", choices=CHOICES),
        reference("E", choices=CHOICES),
        reference([], choices=CHOICES),
        reference("many", "number"),
        reference(" ", "text"),
        reference("A", choices=[{"text": "London"}]),
        reference("A", choices=[3]),
    ],
)
def test_references_that_cannot_be_right_are_invalid(gold):
    """A gold that no answer could match is a fault of the data, not a wrong answer."""

    assert judged("B", gold) == {"invalid": 1}


def test_text_settings():
    """Case, containment and normalisation count as set; exact_match rules containment out."""
    gold = reference("Paris", "text")

    assert judged("paris", gold)["accuracy"] == 1.0
    assert judged("paris", gold, case_sensitive=True)["accuracy"] == 0.0
    assert judged("It is Paris.", gold, allow_partial=True)["accuracy"] == 0.0
    assert judged("It is Paris.", gold, exact_match=False, allow_partial=True)["accuracy"] == 1.0
    assert judged("It is Paris.", gold, exact_match=False)["accuracy"] == 0.0
    assert judged("《Ｐａｒｉｓ》。", gold)["accuracy"] == 0.0
    assert judged("《Ｐａｒｉｓ》。", gold, normalise_text=True)["accuracy"] == 1.0


def test_tolerance_is_met_exactly():
    """A difference that is the tolerance in decimals agrees."""

    assert judged("0.3", reference(0.2, "number"), numeric_tolerance=0.1)["accuracy"] == 1.0
    assert judged("0.31", reference(0.2, "number"), numeric_tolerance=0.1)["accuracy"] == 0.0


def test_a_negative_tolerance_is_refused():
    """Settings are checked where they are given."""
    with pytest.raises(ValueError, match="numeric_tolerance"):
        AccuracyEvaluator(numeric_tolerance=-1)


def test_repeats_are_averaged():
    """An answer with repeats is one row: the mean of its columns, all extracted answers."""
    sample = Sample("t", 0, {}, "B", reference("B", choices=CHOICES))
    replies = [Exchange(Generate("?"), Generated(text)) for text in ("B", "A", "A or B", "B")]

    measured = AccuracyEvaluator().measure(Answer(sample, tuple(replies)))

    assert measured["accuracy"] == 0.5
    assert measured["unparsed"] == 0.25
    assert measured["extracted"] == ("B", "A", "", "B")


@pytest.mark.shared
def test_recorded_choices(shared_data):
    """Of 287 recorded answers 213 are right and 10 unparsed."""
    name = "gpt-4-0314_2010-2022_History_MCQs.json"
    with (shared_data / "data" / "gaokao_history" / name).open(encoding="utf-8") as file:
        examples = json.load(file)["example"]
    options = [{"id": label} for label in "ABCD"]
    evaluator = AccuracyEvaluator()

    rows = [
        evaluator.judge_text(
            example["model_output"], reference(example["standard_answer"][0], choices=options)
        )
        for example in examples
    ]

    assert sum(row["accuracy"] for row in rows) == 213
    assert sum(row["unparsed"] for row in rows) == 10


@given(st.text(), st.text(min_size=1), st.sampled_from(["choice", "text", "number"]))
@settings(max_examples=200)
def test_never_raises(prediction, value, kind):
    """Whatever stands in answer and gold, the row has a score or a fault."""
    measured = judged(prediction, reference(value, kind))

    assert measured == {"invalid": 1} or measured["accuracy"] in {0.0, 1.0}
