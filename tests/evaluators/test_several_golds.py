"""Several right answers of one question, from the file of a task to the score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from xpe.evaluators import get_evaluator
from xpe.evaluators.base import TextEvaluator
from xpe.tasks.generation import Generation
from xpe.tasks.multiple_choice import MultipleChoice
from xpe.types import Answer, Exchange, Generate, Generated, LogLikelihood, Sample, Scored, Sums

PREDICTIONS = ["The cat sat on the mat today.", "It rained hard all night.", "Good morning to you."]
REFERENCES = [
    ["A cat was sitting on a rug.", "The cat sat on the mat."],
    ["It rained hard all night."],
    ["Hello there, my friend.", "Good day.", "A good morning to you all."],
]


def samples(folder: Path, golds: list[Any], cls: Any = Generation, **settings: Any) -> list[Sample]:
    """Read documents with these golds through a task."""
    path = folder / "rows.jsonl"
    rows = [{"q": "?", "c": ["one", "two", "three"], "gold": gold} for gold in golds]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    task = cls(
        name="t", data={"path": str(path)}, doc_to_text="q", doc_to_target="gold", **settings
    )
    return list(task.samples())


def evaluator_of(name: str, **settings: Any) -> TextEvaluator:
    """Build one that measures answers."""
    made = get_evaluator(name, **settings)
    assert isinstance(made, TextEvaluator)
    return made


def said(sample: Sample, text: str) -> Answer:
    """Answer a question in writing."""
    return Answer(sample, (Exchange(Generate("?"), Generated(text)),))


def test_corpus_scores_take_all_references_of_a_task(tmp_path: Path) -> None:
    """BLEU, chrF and TER of a run are sacrebleu's with the same several references."""
    found = samples(tmp_path, REFERENCES)
    evaluator = evaluator_of("bleu")
    rows = [evaluator.measure(said(*pair)) for pair in zip(found, PREDICTIONS, strict=True)]
    streams = [[r[place] if place < len(r) else None for r in REFERENCES] for place in range(3)]
    for name, scorer in (("corpus_bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())):
        kind = next(metric.kind for metric in evaluator.metrics if metric.name == name)
        assert isinstance(kind, Sums)
        sums = np.array([sum(row[column] for row in rows) for column in kind.columns])
        expected = scorer.corpus_score(PREDICTIONS, streams).score
        assert float(kind.score(sums)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "metric", "golds", "text", "right"),
    [
        ("accuracy", "accuracy", ["Peking", "Beijing"], "Beijing", 1),
        ("accuracy", "accuracy", ["Peking", "Beijing"], "Nanjing", 0),
        ("accuracy", "accuracy", [3, 4], "The answer is 4.", 1),
        ("accuracy", "accuracy", [3, 4], "The answer is 5.", 0),
        ("math", "math_accuracy", ["\\frac{1}{2}", "7"], "The answer is 7.", 1),
        ("metrics", "exact_match", ["Peking", "Beijing"], "Beijing", 1),
    ],
)
def test_any_of_several_texts_or_numbers_is_right(
    tmp_path: Path, name: str, metric: str, golds: list[Any], text: str, *, right: int
) -> None:
    """A second right answer counts as the first does."""
    settings = {"names": ["exact_match"]} if name == "metrics" else {}
    (sample,) = samples(tmp_path, [golds])
    assert evaluator_of(name, **settings).measure(said(sample, text))[metric] == right


@pytest.mark.parametrize(("text", "right"), [("AC", 1), ("A", 0), ("C", 0), ("ABC", 0)])
def test_all_of_several_choices_are_to_be_written(tmp_path: Path, text: str, right: int) -> None:
    """A question with two right options is right when both are named, and no other."""
    (sample,) = samples(tmp_path, [[0, 2]], doc_to_choice="c")
    assert evaluator_of("accuracy").measure(said(sample, text))["accuracy"] == right


@pytest.mark.parametrize(("best", "right"), [(0, 1), (1, 0), (2, 1)])
def test_the_likeliest_choice_may_be_any_of_the_right_ones(
    tmp_path: Path, best: int, right: int
) -> None:
    """Only one choice can be likeliest, so that each of the right ones is right alone."""
    (sample,) = samples(tmp_path, [[0, 2]], MultipleChoice, doc_to_choice="c")
    values = tuple(-1.0 if place == best else -9.0 for place in range(3))
    request = LogLikelihood("?", (" one", " two", " three"))
    answer = Answer(sample, (Exchange(request, Scored(values, (False,) * 3, (1,) * 3)),))
    assert evaluator_of("accuracy").measure(answer)["accuracy"] == right


@pytest.mark.parametrize("name", ["accuracy", "math", "bleu", "tcm_diagnosis"])
def test_no_gold_at_all_is_invalid(name: str) -> None:
    """A reference whose value is null cannot make an answer wrong."""
    found = get_evaluator(name).evaluate(["None"], [{"answer": {"type": "text", "value": None}}])
    assert next(iter(found.values()))["count"] == 0


def test_wrong_settings_are_told_in_the_words_of_the_command_line() -> None:
    """No ArgsKwargs, no "Value error": what was expected, what was got."""
    with pytest.raises(ValueError, match=r"^bleu: weights: one for each") as caught:
        get_evaluator("bleu", weights=[0.5, 0.5])
    assert "ArgsKwargs" not in str(caught.value)
