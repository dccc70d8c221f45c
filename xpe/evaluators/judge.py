"""Another model's opinion of what was written."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.evaluators.verdicts import (
    DIMENSIONS,
    HIGHEST,
    KAPPA,
    Case,
    kappa_sums,
    question,
    verdict,
    weighted_kappa,
)
from xpe.registry import STRICT
from xpe.types import (
    Answer,
    Dialogue,
    Exchange,
    Failure,
    Generate,
    Generated,
    Measured,
    Metric,
    Ratio,
    Reply,
    Request,
    Sums,
)

_REFUSED = "bad_request"


class Opinion(NamedTuple):
    """The ratings of an answer: one row a judge and position, in the order of asking."""

    ratings: tuple[tuple[float, ...], ...]

    @property
    def dimensions(self) -> Mapping[str, float]:
        """Mean rating of each dimension, 0–1."""
        means = (sum(column) / len(column) for column in zip(*self.ratings, strict=True))
        return {name: mean / HIGHEST for name, mean in zip(DIMENSIONS, means, strict=True)}

    @property
    def score(self) -> float:
        """Mean of all dimensions, 0–1."""
        return sum(self.dimensions.values()) / len(DIMENSIONS)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Judging:
    """How judges are asked.

    Parameters
    ----------
    swap
        Whether each judge is asked twice, with the answer before the reference and after it.
    structured
        Whether a server that can is held to the form of a verdict.
    max_tokens
        Of a verdict.
    language
        Of the question; `auto`: that of request and reference.
    judges
        One entry a judge, whether it takes a JSON schema; set by the run.
    """

    swap: bool = False
    structured: bool = True
    max_tokens: int = Field(default=512, ge=16)
    language: Literal["auto", "en", "zh"] = "auto"
    judges: tuple[bool, ...] = ()

    def consult(
        self, cases: Sequence[Case]
    ) -> Generator[tuple[Request, ...], tuple[Reply, ...], tuple[Exchange, ...]]:
        """Ask about all cases at once; where a server refuses the form, again without it."""
        asked = tuple(one for case in cases for one in self._questions(case))
        if not asked:
            return ()
        replies = yield asked
        exchanges = list(map(Exchange, asked, replies))
        again = tuple(
            replace(one.request, extra={})
            for one in exchanges
            if isinstance(one.request, Generate) and one.request.extra and _is_refusal(one.reply)
        )
        if again:
            found = yield again
            exchanges += map(Exchange, again, found)
        return tuple(exchanges)

    def opinion(self, case: Case, exchanges: Sequence[Exchange]) -> Opinion | None:
        """Return what was said about a case; None where a judge failed or gave no verdict."""
        said = [_said(one, exchanges) for one in self._questions(case)]
        ratings = tuple(one for one in said if one is not None)
        return Opinion(ratings) if len(ratings) == len(said) else None

    @property
    def no_score(self) -> str:
        """Why there is no score where nothing was judged."""
        return "no samples" if self.judges else "no judge"

    def agreement(self, opinions: Sequence[Opinion]) -> dict[str, float]:
        """Return the sums that kappas are made of, by column."""
        columns: dict[str, float] = {}
        for name, pairs in self._compared(opinions).items():
            columns |= zip(_kappa_columns(name), kappa_sums(pairs), strict=True)
        return columns

    def agreement_metrics(self, failed: str = "failed") -> Iterator[Metric]:
        """Yield `position_kappa` with `swap`, `judge_kappa` for several judges."""
        for name in self._compared(()):
            kind = Sums(_kappa_columns(name), weighted_kappa)
            yield Metric(name, kind, signature="weights:quadratic", failed=failed)

    def _compared(self, opinions: Sequence[Opinion]) -> dict[str, list[tuple[float, float]]]:
        """Pair the ratings of one dimension of one answer, by what they differ in."""
        found: dict[str, list[tuple[float, float]]] = {}
        size = 1 + self.swap
        if self.swap:
            found["position_kappa"] = [
                pair
                for opinion in opinions
                for one, other in zip(opinion.ratings[::2], opinion.ratings[1::2], strict=True)
                for pair in zip(one, other, strict=True)
            ]
        if len(self.judges) > 1:
            found["judge_kappa"] = [
                pair
                for opinion in opinions
                for place in range(size)
                for one, other in combinations(opinion.ratings[place::size], 2)
                for pair in zip(one, other, strict=True)
            ]
        return found

    def _questions(self, case: Case) -> Iterator[Generate]:
        for number, takes_schema in enumerate(self.judges, 1):
            for swapped in (False, True)[: 1 + self.swap]:
                yield question(
                    case,
                    to="judge" if number == 1 else f"judge.{number}",
                    swapped=swapped,
                    structured=self.structured and takes_schema,
                    max_tokens=self.max_tokens,
                    language=self.language,
                )


@dataclass(frozen=True, config=STRICT, kw_only=True)
class JudgeEvaluator(Judging):
    """Rates what was written in four dimensions, 0–10 each; `answer_score` is their mean / 10.

    A judge that fails or gives no verdict counts as failed, never as 0. An empty answer is 0.
    """

    fits: ClassVar[frozenset[str]] = frozenset({"generation"})

    name: str = "judge"
    filter: str = "none"

    @cached_property
    def metrics(self) -> Sequence[Metric]:
        """`answer_score`, its dimensions, and agreement where there is something to compare."""
        named = {"answer_score": "score", **{name: name for name in DIMENSIONS}}
        return (
            *(
                Metric(self._named(name), Ratio(column, "judged"), absent=self.no_score)
                for name, column in named.items()
            ),
            *(replace(one, name=self._named(one.name)) for one in self.agreement_metrics()),
        )

    def ask(self, answer: Answer, /) -> Dialogue:
        """Ask about each text that is not empty; see `types.Asks`."""
        exchanges = yield from self.consult([case for case in _cases(answer) if case.answer])
        return replace(answer, exchanges=answer.exchanges + exchanges)

    def measure(self, answer: Answer) -> Measured:
        """Measure an answer: means over its repeats that have a verdict."""
        if not self.judges:
            return {}
        cases = _cases(answer)
        found = [rated(self, case, answer.exchanges) for case in cases]
        good = [one for one in found if one is not None]
        if not good:
            return {"failed": 1} if cases else {"invalid": 1}
        columns = {
            name: sum(one.dimensions[name] for one in good) / len(good) for name in DIMENSIONS
        }
        return {
            "judged": 1,
            "score": sum(one.score for one in good) / len(good),
            **columns,
            **self.agreement(
                [one for case, one in zip(cases, found, strict=True) if case.answer and one]
            ),
            **({"failed": 1} if len(good) < len(cases) else {}),
            **({"unparsed": 1} if not all(case.answer for case in cases) else {}),
        }

    def _named(self, metric: str) -> str:
        return metric if self.name == "judge" else f"{self.name}_{metric}"


def rated(judging: Judging, case: Case, exchanges: Sequence[Exchange]) -> Opinion | None:
    """Return the opinion of a case; an empty answer is 0 in every dimension, without asking."""
    if not case.answer:
        return Opinion(((0.0,) * len(DIMENSIONS),))
    return judging.opinion(case, exchanges)


def text_of(reply: Generated) -> str:
    """Return what a judge reads of a reply: its text, else the calls that it made instead."""
    if reply.text.strip() or not reply.tool_calls:
        return reply.text.strip()
    return json.dumps([call.get("function", call) for call in reply.tool_calls], ensure_ascii=False)


def _cases(answer: Answer) -> list[Case]:
    reference: Mapping[str, Any] = answer.sample.reference.get("answer") or {}
    values = reference.get("values") or [reference.get("value") or ""]
    right = "\n".join(map(str, values))
    return [
        Case(one.request.prompt, right, text_of(one.reply))
        for one in answer.exchanges
        if one.request.to == "model"
        and isinstance(one.request, Generate)
        and isinstance(one.reply, Generated)
    ]


def _said(asked: Generate, exchanges: Sequence[Exchange]) -> tuple[float, ...] | None:
    """Return the verdict that a question got, or the same question without a form."""
    for one in (asked, replace(asked, extra={})):
        reply = next((each.reply for each in exchanges if each.request == one), None)
        if isinstance(reply, Generated):
            return verdict(reply.text)
    return None


def _is_refusal(reply: Reply) -> bool:
    return isinstance(reply, Failure) and reply.kind == _REFUSED


def _kappa_columns(name: str) -> tuple[str, ...]:
    return tuple(f"{name}_{part}" for part in KAPPA)
