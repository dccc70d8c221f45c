"""The documented interface of the evaluators: base class, registry, and its examples."""

from __future__ import annotations

import copy
import logging
import math
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from xpe.core.base_evaluator import BaseEvaluator
from xpe.evaluators import (
    EVALUATOR_REGISTRY,
    get_evaluator,
    get_evaluators,
    list_evaluators,
    register_evaluator,
)
from xpe.evaluators.base import Adapted, adapt, averaged
from xpe.evaluators.bleu import BLEUEvaluator
from xpe.evaluators.tcm_diagnosis import TcmDiagnosisEvaluator
from xpe.types import Answer, Exchange, Generate, Generated, Items, LogLikelihood, Sample, Scored

PREDICTIONS = ["选择A", "我认为答案是B", "这是正确的文本"]
REFERENCES: list[dict[str, Any]] = [
    {"answer": {"type": "choice", "value": "A"}, "choices": [{"id": "A"}, {"id": "B"}]},
    {
        "answer": {"type": "choice", "value": "C"},
        "choices": [{"id": "A"}, {"id": "B"}, {"id": "C"}],
    },
    {"answer": {"type": "text", "value": "这是正确的文本"}},
]


class MyCustomEvaluator(BaseEvaluator):
    """The custom evaluator of the document: `scores.append(score)`, with a score."""

    calls = 0

    def evaluate(
        self, predictions: Sequence[str], references: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Score 1 for an equal text."""
        type(self).calls += 1
        pairs = zip(predictions, references, strict=True)
        scores = [float(text == reference["answer"]["value"]) for text, reference in pairs]
        return {"my_metric": self.aggregate_scores(scores)}


@pytest.fixture
def registered() -> Any:
    """Register the custom evaluator for one test."""
    register_evaluator("my_custom", MyCustomEvaluator)
    yield
    EVALUATOR_REGISTRY._found.pop("my_custom")


def answer(
    *texts: str, reference: Mapping[str, Any] = REFERENCES[2], choices: Sequence[float] = ()
) -> Answer:
    """Answer with texts, one a repeat, or with log likelihoods."""
    asked = [Exchange(Generate("q"), Generated(text)) for text in texts]
    if choices:
        n = len(choices)
        scored = Scored(tuple(choices), (False,) * n, (1,) * n)
        asked.append(Exchange(LogLikelihood("q", tuple("ABCDE"[:n])), scored))
    return Answer(Sample("t", 0, {}, "", reference), tuple(asked))


# --- the examples of the document ------------------------------------------------------------


def test_basic_use() -> None:
    """The first example: one right choice, one wrong, one right text."""
    evaluator = get_evaluator("accuracy", exact_match=True, case_sensitive=False)
    result = evaluator.evaluate(PREDICTIONS, REFERENCES)
    assert result["accuracy"] == {"score": 2 / 3, "min": 0.0, "max": 1.0, "count": 3}
    assert result["choice_accuracy"] == {"score": 0.5, "min": 0.0, "max": 1.0, "count": 2}
    assert result["text_accuracy"] == {"score": 1.0, "min": 1.0, "max": 1.0, "count": 1}
    assert "number_accuracy" not in result


def test_several_evaluators() -> None:
    """The second example: each evaluator gives its own result."""
    evaluators = get_evaluators(["accuracy", "bleu"])
    results = [evaluator.evaluate(PREDICTIONS, REFERENCES) for evaluator in evaluators]
    assert ["accuracy" in results[0], "bleu" in results[1]] == [True, True]
    assert results[1]["bleu"]["count"] == 3


def test_a_custom_evaluator(registered: None) -> None:
    """The third example: register, get, evaluate."""
    custom = get_evaluator("my_custom")
    assert isinstance(custom, MyCustomEvaluator)
    assert custom.evaluate(PREDICTIONS, REFERENCES)["my_metric"]["score"] == pytest.approx(1 / 3)
    assert "my_custom" in list_evaluators()


# --- the base class --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prediction", "reference", "valid"),
    [
        ("a", {"answer": {"type": "text", "value": "a"}}, True),
        ("", {"answer": {"value": ""}}, True),
        (None, {"answer": {"value": "a"}}, False),
        ("a", None, False),
        ("a", [], False),
        ("a", {}, False),
        ("a", {"answer": "a"}, False),
        ("a", {"answer": {"type": "text"}}, False),
    ],
)
def test_what_is_a_valid_sample(prediction: Any, reference: Any, valid: bool) -> None:
    """A prediction, and a mapping with a mapping `answer` that has a `value`."""
    assert MyCustomEvaluator()._is_valid_sample(prediction, reference) is valid


def test_scores_are_aggregated_as_documented() -> None:
    """Mean, lowest, highest, number; zeros for no scores."""
    aggregate = MyCustomEvaluator().aggregate_scores
    assert aggregate([0.2, 1.0]) == {"score": 0.6, "min": 0.2, "max": 1.0, "count": 2}
    assert aggregate([]) == {"score": 0.0, "min": 0.0, "max": 0.0, "count": 0}


def test_name_and_settings_are_kept() -> None:
    """Custom or built in: the class's name unless one is given, and the settings as given."""
    assert (MyCustomEvaluator().name, MyCustomEvaluator(name="x", a=1).kwargs) == (
        "MyCustomEvaluator",
        {"name": "x", "a": 1},
    )
    made = BLEUEvaluator(n_gram=2)
    assert (made.name, made.kwargs, made.prefix) == ("BLEUEvaluator", {"n_gram": 2}, "")
    assert BLEUEvaluator(name="b").prefix == "b_"
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert (other, other.kwargs) == (made, {"n_gram": 2})


def test_a_built_in_evaluator_is_frozen_and_strict() -> None:
    """Settings cannot change later, and a wrong type is an error at once."""
    with pytest.raises(AttributeError):
        BLEUEvaluator().n_gram = 2  # type: ignore[misc]
    with pytest.raises(ValidationError):
        TcmDiagnosisEvaluator(match_threshold=1.5)


def test_invalid_samples_are_skipped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The count is that of the valid samples, and the log names the others."""
    with caplog.at_level(logging.WARNING):
        result = get_evaluator("bleu").evaluate(["a b", "a b"], [REFERENCES[2], {"answer": 3}])
    assert result["bleu"]["count"] == 1
    assert "sample 1 skipped: invalid" in caplog.text


def test_no_samples_score_zero_with_count_zero() -> None:
    """As documented for a call from Python; only the whole is there, no part."""
    empty = {"score": 0.0, "min": 0.0, "max": 0.0, "count": 0}
    assert get_evaluator("tcm_diagnosis").evaluate([], []) == {"tcm_diagnosis": empty}


def test_as_many_references_as_predictions_are_needed() -> None:
    """The message says how many there are of each."""
    with pytest.raises(ValueError, match=r"1 predictions and 3 references"):
        get_evaluator("bleu").evaluate(["a"], REFERENCES)


# --- the registry ----------------------------------------------------------------------------


def test_an_unknown_name_lists_the_known_ones() -> None:
    """A ValueError, with the nearest name first."""
    with pytest.raises(ValueError, match=r"'acuracy'.*Did you mean 'accuracy'.*bleu.*math"):
        get_evaluator("acuracy")


def test_settings_go_to_those_that_know_them() -> None:
    """One that nobody knows is a TypeError with the nearest name."""
    bleu, tcm = get_evaluators(["bleu", "tcm_diagnosis"], n_gram=2, match_threshold=0.5)
    assert (bleu.kwargs, tcm.kwargs) == ({"n_gram": 2}, {"match_threshold": 0.5})
    with pytest.raises(TypeError, match=r"ngram.*Did you mean 'n_gram'"):
        get_evaluators(["bleu", "tcm_diagnosis"], ngram=2)
    with pytest.raises(TypeError, match=r"match_treshold.*'match_threshold'"):
        get_evaluator("tcm_diagnosis", match_treshold=0.5)


def test_only_evaluators_can_be_registered() -> None:
    """Anything else is a TypeError."""
    for part in (dict, "accuracy", MyCustomEvaluator()):
        with pytest.raises(TypeError, match=r"BaseEvaluator"):
            register_evaluator("no", part)  # type: ignore[arg-type]
    assert "no" not in EVALUATOR_REGISTRY


def test_the_registry_is_a_mapping() -> None:
    """Names to classes, the documented ones among them; others may be added by packages."""
    assert {"accuracy", "bleu", "math", "tcm_diagnosis"} <= set(EVALUATOR_REGISTRY)
    assert EVALUATOR_REGISTRY["bleu"] is BLEUEvaluator


def test_importing_the_evaluators_imports_nothing_heavy() -> None:
    """Listing names needs neither numpy nor nltk."""
    code = (
        "import sys; from xpe.evaluators import list_evaluators; list_evaluators();"
        "print([m for m in ('numpy','nltk','jieba','sacrebleu','torch','math_verify')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- in a run --------------------------------------------------------------------------------


def test_repeats_are_averaged() -> None:
    """Columns over the scored repeats; faults as shares of all; other values side by side."""
    rows: list[dict[str, Any]] = [
        {"a": 1.0, "extracted": "x"},
        {"a": 0.0, "b": 3.0, "extracted": "y"},
        {"timeout": 1},
    ]
    assert averaged(rows) == {
        "a": 0.5,
        "b": 1.5,
        "extracted": ("x", "y", None),
        "timeout": 1 / 3,
    }
    assert averaged([{"timeout": 1}, {"timeout": 1}]) == {"timeout": 1}
    assert averaged([]) == {"invalid": 1}


def test_the_likeliest_choice_can_be_judged() -> None:
    """The prediction is then its id; without choices there is nothing to judge."""
    evaluator = get_evaluator("accuracy")
    right = answer(reference=REFERENCES[0], choices=[-1.0, -2.0])
    wrong = answer(reference=REFERENCES[0], choices=[-2.0, -1.0])
    rows = [evaluator.measure(right), evaluator.measure(wrong)]  # type: ignore[attr-defined]
    name = evaluator.metrics[0].kind.column  # type: ignore[attr-defined]
    assert [row[name] for row in rows] == [1, 0]
    assert BLEUEvaluator().measure(answer(choices=[-1.0])) == {"invalid": 1}


def test_a_custom_evaluator_works_in_a_run() -> None:
    """It is called once on all samples, and says that its values cannot be resampled."""
    adapted = adapt(MyCustomEvaluator())
    assert isinstance(adapted, Adapted)
    (metric,) = adapted.metrics
    rows = [adapted.measure(answer(text)) for text in ("这是正确的文本", "否", "否")]
    assert adapted.measure(answer("x", reference={})) == {"invalid": 1}
    MyCustomEvaluator.calls = 0
    assert isinstance(metric.kind, Items)
    assert not metric.kind.resample
    items = [row[metric.kind.column] for row in rows]
    assert metric.kind.aggregate(items) == metric.kind.aggregate(items) == pytest.approx(1 / 3)
    assert (metric.name, MyCustomEvaluator.calls) == ("my_metric", 1)


class Fussy(BaseEvaluator):
    """Fails on no samples, and gives plain numbers."""

    metric_names = ("first", "absent")

    def evaluate(
        self, predictions: Sequence[str], references: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return shares."""
        n = len(references)
        return {"first": len(predictions) / n, "other": 1.0}


def test_declared_metrics_are_not_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """`metric_names` says them; one that is not returned is NaN, one not declared is logged."""
    first, absent = adapt(Fussy()).metrics
    items = [adapt(Fussy()).measure(answer("a"))["items"]]
    assert isinstance(first.kind, Items)
    assert isinstance(absent.kind, Items)
    assert first.kind.aggregate(items) == 1
    assert math.isnan(absent.kind.aggregate(items))
    assert "also returned other" in caplog.text
