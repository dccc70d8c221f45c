"""Was the answer right? Choices, texts and numbers, each compared in its own way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from pydantic import NonNegativeFloat
from pydantic.dataclasses import dataclass

from xpe.errors import DataError
from xpe.evaluators.base import TextEvaluator, golds_of
from xpe.registry import STRICT
from xpe.text.choice import Question, Rule, chosen
from xpe.text.labels import Labels, alphabet, fold, labels_of
from xpe.text.normalise import plain
from xpe.text.numbers import Number, answer_number, number_of
from xpe.text.options import Options
from xpe.text.reasoning import MARKERS, split_reasoning
from xpe.types import Mean, Measured, Metric

logger = logging.getLogger(__name__)

Verdict: TypeAlias = tuple[float, str]
"""1 or 0, and the extracted answer; an empty one could not be parsed."""

_METRICS = (
    Metric("accuracy", Mean("accuracy"), limits=(0.0, 1.0)),
    Metric("choice_accuracy", Mean("choice_accuracy", of="choice_n"), limits=(0.0, 1.0)),
    Metric("text_accuracy", Mean("text_accuracy", of="text_n"), limits=(0.0, 1.0)),
    Metric("number_accuracy", Mean("number_accuracy", of="number_n"), limits=(0.0, 1.0)),
)


@dataclass(frozen=True, config=STRICT)
class AccuracyEvaluator(TextEvaluator):
    """Share of right answers, over all samples and by type of answer.

    The reference's `answer.type` is `choice`, `text` or `number`; without one it is a choice
    where there are `choices`, a number where the value is one, else a text. Several right texts
    or numbers (a list as `value`, or `values`) are alternatives. Several right choices must all
    be named where `value` is a list or `several` is true, else one of `values` is enough.
    Reasoning is taken out first; a block of it that never ends leaves no answer.

    Parameters
    ----------
    exact_match
        Texts must be equal.
    case_sensitive
        Texts are compared as they are, not in lower case.
    allow_partial
        A text may contain the other; only without `exact_match`.
    numeric_tolerance
        Largest absolute difference of two numbers that agree.
    extract
        How choices and numbers are found: `auto`, `last`, `first`, `tag` (behind the last
        【答案】 or the like; of numbers as `auto`), `strict` (the answer is nothing else).
    normalise_text
        Texts are compared in the form NFKC and without Unicode punctuation.
    """

    exact_match: bool = True
    case_sensitive: bool = False
    allow_partial: bool = False
    numeric_tolerance: NonNegativeFloat = 0.0001
    extract: Rule = "auto"
    normalise_text: bool = False

    @property
    def metrics(self) -> Sequence[Metric]:
        """Accuracy over all samples, then over those of each type."""
        return _METRICS

    def judge_text(self, prediction: str, reference: Mapping[str, Any]) -> Measured:
        """Measure `accuracy`, the accuracy of the type, `unparsed`, and the text `extracted`."""
        answer = reference["answer"]
        kind = answer.get("type") or _kind(answer["value"], reference)
        kind, judge = (kind, _JUDGES[kind]) if kind in _JUDGES else ("text", _judge_text)
        reasoned = split_reasoning(prediction, markers=MARKERS)
        try:
            score, extracted = judge(self, reasoned.answer, reference)
        except DataError as error:
            logger.debug("invalid reference: %s", error)
            return {"invalid": 1}
        return {
            "accuracy": score,
            f"{kind}_accuracy": score,
            f"{kind}_n": 1,
            "unparsed": int(not extracted),
            "extracted": extracted,
        }


def _judge_choice(settings: AccuracyEvaluator, text: str, reference: Mapping[str, Any]) -> Verdict:
    rights, question = _read_choices(reference)
    found = chosen(text, question, settings.extract)
    separator = "" if all(len(label) == 1 for label in found) else ","
    return float(found in rights), separator.join(found)


def _judge_text(settings: AccuracyEvaluator, text: str, reference: Mapping[str, Any]) -> Verdict:
    said, *golds = (
        plain(one, case_sensitive=settings.case_sensitive, normalise=settings.normalise_text)
        for one in (text, *map(str, golds_of(reference)))
    )
    if not any(golds):
        raise DataError("a text needs a right answer, got none in answer.value")
    right = said in golds
    if settings.allow_partial and not settings.exact_match:
        right = right or any(gold in said or said in gold for gold in golds if gold)
    return float(right and said != ""), text.strip()


def _judge_number(settings: AccuracyEvaluator, text: str, reference: Mapping[str, Any]) -> Verdict:
    rule = "auto" if settings.extract == "tag" else settings.extract
    said = answer_number(text, rule)
    golds = [value for gold in golds_of(reference) for value in _values(number_of(str(gold)))]
    if not golds:
        raise DataError(f"answer.value must be a number, got {reference['answer']['value']!r:.200}")
    if said is None:
        return 0.0, ""
    # The slack is for tolerances that decimal fractions meet exactly: 0.3 and 0.2 at 0.1.
    near = settings.numeric_tolerance * (1 + 1e-9)
    right = any(
        gold == value or abs(gold - value) <= near for value in _values(said) for gold in golds
    )
    return float(right), f"{said.value:.15g}"


def _values(number: Number | None) -> Sequence[float]:
    return [value for value, _ in number.meanings] if number else ()


_JUDGES: Mapping[str, Callable[[AccuracyEvaluator, str, Mapping[str, Any]], Verdict]] = {
    "choice": _judge_choice,
    "text": _judge_text,
    "number": _judge_number,
}


def _read_choices(reference: Mapping[str, Any]) -> tuple[Collection[tuple[str, ...]], Question]:
    """Return what may be named, each a tuple of labels, and the question.

    Choices are `{id, text}`, or texts for A, B, C …

    Raises
    ------
    DataError
        If choices lack an id, or the gold is none of them.
    """
    answer, choices = reference["answer"], reference.get("choices") or ()
    golds = tuple(map(str, golds_of(reference)))
    several = bool(answer.get("several"))
    together = isinstance(answer["value"], (list, tuple)) or (several and len(golds) > 1)
    try:
        if choices and isinstance(choices[0], str):
            options = tuple((chr(ord("A") + index), said) for index, said in enumerate(choices))
        else:
            options = tuple([(choice["id"], choice.get("text", "")) for choice in choices])
        if together:
            right, question = _question(golds, several, options)
            return (right,), question
        read = [_question(gold, several, options) for gold in golds]
        return [right for right, _ in read], read[0][1]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"choices must be {{id, text}}, got {choices!r:.200}") from error


@lru_cache(maxsize=8192)
def _question(
    golds: str | tuple[str, ...], several: bool, choices: tuple[tuple[Any, Any], ...]
) -> tuple[tuple[str, ...], Question]:
    """Return the right labels in the order of the choices, and what may be answered."""
    several = several or isinstance(golds, tuple)
    golds = golds if isinstance(golds, tuple) else (golds,)
    if not golds or not all(map(fold, golds)):
        raise DataError("a choice needs a right label, got none in answer.value")
    options = Options({str(label): str(text) for label, text in choices})
    labels = labels_of(tuple(options.texts) or alphabet(golds[0]), several=several)
    right = {label for gold in golds for label in _right(gold, labels, options)}
    if len(right) > 1:
        labels = labels_of(labels.ids, several=True)
    return tuple(label for label in labels.ids if label in right), Question(labels, options)


def _right(gold: str, labels: Labels, options: Options) -> Sequence[str]:
    """Return the labels that a gold value names: one, or several (`ABD`), or an option's text."""
    if label := labels.by_key.get(fold(gold)):
        return (label,)
    several = labels_of(labels.ids, several=True).whole(gold)
    if found := several or options.whole(gold):
        return found
    raise DataError(f"answer.value {gold!r} is no label of {', '.join(labels.ids)}")


def _kind(value: Any, reference: Mapping[str, Any]) -> str:
    if reference.get("choices"):
        return "choice"
    return "number" if isinstance(value, (int, float)) else "text"
