"""Syndromes, diseases and treatments of traditional Chinese medicine, compared as sets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.evaluators.base import TextEvaluator, golds_of
from xpe.registry import STRICT
from xpe.text.reasoning import MARKERS, split_reasoning
from xpe.text.tcm import (
    KINDS,
    LONGEST_ANSWER,
    Kind,
    Lexicon,
    denied_terms,
    general_terms,
    gold_terms,
    named_by,
    named_terms,
    stated,
    table,
)
from xpe.types import Mean, Measured, Metric


@dataclass(frozen=True, config=STRICT)
class TcmDiagnosisEvaluator(TextEvaluator):
    """Compares the terms that an answer names with those of the gold, under canonical names.

    The score is `keywords_weight` of F1 and the rest of Jaccard's index. An answer that names
    nothing scores 0 and is `unparsed`. Answers of type `syndrome`, `disease` and `treatment` have
    a metric each.

    Parameters
    ----------
    match_threshold
        A sample with at least this score is a match: the second metric is their share.
    exact_match
        Whether only the same terms score, and then 1.
    partial_credit
        Whether terms in common score; else Jaccard's index alone, and for a disease nothing.
    keywords_weight
        Weight of F1, 0–1.
    normalize_tcm_terms
        Whether names stand for their canonical terms.
    synonyms
        Canonical term to its other names, beside the table that ships.
    """

    match_threshold: Annotated[float, Field(ge=0, le=1)] = 0.7
    exact_match: bool = False
    partial_credit: bool = True
    keywords_weight: Annotated[float, Field(ge=0, le=1)] = 0.6
    normalize_tcm_terms: bool = True
    synonyms: dict[str, list[str]] = Field(default_factory=dict)

    fits: ClassVar[frozenset[str]] = frozenset({"generation"})

    @property
    def metrics(self) -> Sequence[Metric]:
        """`tcm_diagnosis`, `tcm_match`, and the score by type of answer."""
        return (
            Metric("tcm_diagnosis", Mean("score"), limits=(0.0, 1.0)),
            Metric("tcm_match", Mean("match"), limits=(0.0, 1.0)),
            *(Metric(kind, Mean("score", of=kind), limits=(0.0, 1.0)) for kind in KINDS),
        )

    def judge_text(self, prediction: str, reference: Mapping[str, Any]) -> Measured:
        """Compare the terms that the answer states with those of the gold."""
        answer = reference["answer"]
        gold = "、".join(map(str, golds_of(reference)))
        kind: Kind | None = answer.get("type") if answer.get("type") in KINDS else None
        lexicon, wanted = self._read(gold, kind)
        if not wanted:
            return {"invalid": 1}
        groups = self._named(prediction, kind, lexicon)
        named = {
            term for group in groups for term in _as_one(_as_general_as(group, wanted), wanted)
        }
        score = self.similarity(named, wanted, kind)
        return {
            "score": score,
            "match": float(score >= self.match_threshold),
            "unparsed": float(not named),
            "extracted": "、".join(sorted(set().union(*groups))),
            **({kind: 1.0} if kind else {}),
        }

    def similarity(
        self, named: Collection[str], wanted: Collection[str], kind: Kind | None = None
    ) -> float:
        """Return the likeness of two sets of terms, 0–1."""
        common = len(set(named) & set(wanted))
        if set(named) == set(wanted):
            return 1.0
        if not common or self.exact_match or (kind == "disease" and not self.partial_credit):
            return 0.0
        jaccard = common / len(set(named) | set(wanted))
        if not self.partial_credit:
            return jaccard
        f1 = 2 * common / (len(named) + len(wanted))
        return self.keywords_weight * f1 + (1 - self.keywords_weight) * jaccard

    def _named(self, prediction: str, kind: Kind | None, lexicon: Lexicon) -> list[set[str]]:
        text = split_reasoning(prediction, markers=MARKERS).answer
        part, how = stated(text, kind)
        return named_terms(part, lexicon, how) or named_terms(
            text[-LONGEST_ANSWER:], lexicon, "text"
        )

    @cached_property
    def _read(self) -> Any:
        """Return the reader of golds: lexicon and terms. Golds repeat, so it remembers them."""

        @lru_cache(maxsize=4096)
        def read(gold: str, kind: Kind | None) -> tuple[Lexicon, frozenset[str]]:
            lexicon = self._table(kind)
            names = gold_terms(gold, lexicon)
            lexicon = lexicon.with_names(names)
            return lexicon, frozenset(names.values()) - denied_terms(gold, lexicon)

        return read

    def _table(self, kind: Kind | None) -> Lexicon:
        known = table(kind).with_names(named_by(self.synonyms))
        if self.normalize_tcm_terms:
            return known
        return Lexicon.of({name: name for name in known.canonical}, known.symptoms)


def _as_general_as(group: Collection[str], wanted: Collection[str]) -> set[str]:
    """Return the terms of a piece, a more special or general one as the gold has it."""
    general = general_terms()
    special = {general[term]: term for term in wanted if term in general}
    likes = {term: {general.get(term), special.get(term)} & set(wanted) for term in group}
    return {
        term if term in wanted or not likes[term] else str(min(likes[term], key=str))
        for term in group
    }


def _as_one(group: Collection[str], wanted: Collection[str]) -> set[str]:
    """Return the terms of a piece; one without any right term is a single wrong one."""
    right = not group or set(group) & set(wanted)
    return set(group) if right else {"".join(sorted(group))}
