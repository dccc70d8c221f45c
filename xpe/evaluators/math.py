"""Is the result right? Numbers with units, collections of numbers, and formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import NonNegativeFloat, PositiveFloat
from pydantic.dataclasses import dataclass

from xpe.evaluators.algebra import compare
from xpe.evaluators.base import TextEvaluator, golds_of
from xpe.registry import STRICT
from xpe.text.formulas import (
    Collection,
    collection_of,
    collections_equal,
    formula_of,
    is_algebra,
    latex_of,
    squashed,
)
from xpe.text.normalise import plain
from xpe.text.numbers import Number, agree, answer_number, close
from xpe.text.reasoning import MARKERS, split_reasoning
from xpe.types import Mean, Measured, Metric

Rule: TypeAlias = Literal["auto", "last", "first"]

_METRICS = (Metric("math_accuracy", Mean("math_accuracy"), limits=(0.0, 1.0)),)
_SIGNS = ("\\", "√", "π", "^", "²", "³", "sqrt(", "log_", "log(", "ln(", "sin(", "cos(", "tan(")


class Verdict(NamedTuple):
    """Whether one answer is right, what was extracted ("" if unparsed), and if time ran out."""

    right: bool
    extracted: str
    timeout: bool = False


_UNPARSED = Verdict(right=False, extracted="")


class Gold(NamedTuple):
    """A gold answer as it is compared: as a number, as a collection, or as a formula."""

    text: str
    formula: str
    number: Number | None
    collection: Sequence[Collection] | None
    is_algebra: bool


@dataclass(frozen=True, config=STRICT)
class MathEvaluator(TextEvaluator):
    r"""Share of right results.

    A gold that is a number, or a text that ends with one, is compared as a number: with what the
    answer announces (\boxed{}, ####, 答案是, "the answer is", "A: 18"), else with its last
    number. Any other gold is a formula. Formulas that are not plainly equal are compared by
    math-verify in a process of its own; a comparison that takes too long is a time-out, which
    is counted apart and not scored. A list of golds holds alternatives.

    Parameters
    ----------
    tolerance
        Largest relative error; absolute for golds below it.
    normalize
        Full-width forms, Chinese minus signs and simple LaTeX are rewritten before numbers are
        read.
    require_units
        Units must agree too, by the table of equivalents: 1.5 km is 1500 m.
    strict_format
        The whole answer must be the number (or the formula).
    extract
        `auto` as above; `last` or `first` takes that number of the text.
    time_limit
        Seconds for one comparison of formulas.
    """

    tolerance: NonNegativeFloat = 1e-6
    normalize: bool = True
    require_units: bool = False
    strict_format: bool = False
    extract: Rule = "auto"
    time_limit: PositiveFloat = 5.0

    @property
    def metrics(self) -> Sequence[Metric]:
        """The mean of right results."""
        return _METRICS

    def judge_text(self, prediction: str, reference: Mapping[str, Any]) -> Measured:
        """Measure `math_accuracy`, `unparsed` and the text `extracted`."""
        golds = [_gold(str(one).strip(), self.normalize) for one in golds_of(reference)]
        if not golds or not all(gold.formula or gold.number for gold in golds):
            return {"invalid": 1}
        reasoned = split_reasoning(prediction, markers=MARKERS)
        verdict = self._best(reasoned.answer, golds)
        if verdict.timeout:
            return {"timeout": 1}
        return {
            "math_accuracy": float(verdict.right),
            "unparsed": int(not verdict.extracted),
            "extracted": verdict.extracted,
        }

    def _best(self, text: str, golds: Sequence[Gold]) -> Verdict:
        """Return the first verdict that is right, else one that took too long, else the last."""
        best = _UNPARSED
        for gold in golds if text.strip() else ():
            verdict = self._verdict(text, gold)
            if verdict.right:
                return verdict
            # Whatever was read into the two, an answer that is the gold itself is right.
            if text.strip() == gold.text:
                return Verdict(right=True, extracted=gold.text)
            best = best if best.timeout else verdict
        return best

    def _verdict(self, text: str, gold: Gold) -> Verdict:
        if gold.number is None:
            return self._of_formula(text, gold)
        if self.extract == "auto" and any(sign in text for sign in _SIGNS):
            formula = text if self.strict_format else formula_of(text)
            # 3 is not the answer 3\sqrt{2}, nor 3+5 the number 5.
            if is_algebra(formula) and (verdict := self._by_algebra(gold, formula)).extracted:
                return verdict
        rule = "strict" if self.strict_format else self.extract
        said = answer_number(text, rule, normalise=self.normalize)
        if said is None:
            return _UNPARSED
        right = agree(said, gold.number, self.tolerance, units=self.require_units)
        return Verdict(right, f"{said.value:.15g}{said.unit and ' '}{said.unit}")

    def _of_formula(self, text: str, gold: Gold) -> Verdict:
        formula = text.strip() if self.strict_format else formula_of(text)
        if not formula or squashed(formula) == squashed(gold.formula):
            return Verdict(bool(formula), formula)
        said = collection_of(formula) if gold.collection else None
        if gold.collection and said:
            return Verdict(collections_equal(said, gold.collection, self.tolerance), formula)
        if not gold.is_algebra:
            same = plain(formula, normalise=True) == plain(gold.formula, normalise=True)
            return Verdict(same, formula)
        return self._by_algebra(gold, formula)

    def _by_algebra(self, gold: Gold, formula: str) -> Verdict:
        right, said = latex_of(gold.formula), latex_of(formula)
        if right is None or not said:
            return _UNPARSED
        found = compare(right, said, self.time_limit)
        if found is None:
            return Verdict(right=False, extracted=formula, timeout=True)
        near = (
            found.value is not None
            and found.gold_value is not None
            and close(found.value, found.gold_value, self.tolerance)
        )
        return Verdict(found.equal or near, formula if found.parsed else "")


@lru_cache(maxsize=8192)
def _gold(text: str, normalise: bool) -> Gold:
    formula = formula_of(text)
    whole = answer_number(text, "strict", normalise=normalise)
    whole = whole or answer_number(formula, "strict", normalise=normalise)
    if whole:
        return Gold(text, formula, whole, None, is_algebra=False)
    collection, algebra = collection_of(formula), is_algebra(formula)
    number = None if collection or algebra else answer_number(text, normalise=normalise)
    return Gold(text, formula, number, collection, algebra)
