"""Tool-calling conversations: the documented metrics of calls, recall and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

from pydantic.dataclasses import dataclass

from xpe.evaluators.call_scores import CallScore, Matching, score_calls, within_schema
from xpe.evaluators.judge import Judging, rated, text_of
from xpe.evaluators.verdicts import DIMENSIONS, Case
from xpe.registry import STRICT
from xpe.tasks.recall import FIRST, calls_made, gold_calls, retrievals
from xpe.text.tools import tools_in
from xpe.types import (
    Answer,
    Dialogue,
    Exchange,
    Failure,
    Generate,
    Generated,
    Items,
    Measured,
    Metric,
    Ratio,
    Retrieved,
)

_CALLS = ("pair1", "pair2", "pair2_recall", "overall")


class _Pair(NamedTuple):
    """A pair of the reference and what became of it; `recalled` is None where nobody looked."""

    gold: Mapping[str, Any]
    exchange: Exchange
    score: CallScore | None
    unparsed: bool
    recalled: bool | None
    recall_failed: bool

    @property
    def name(self) -> str:
        return f"pair{self.gold['kind']}"

    @property
    def failed(self) -> bool:
        return isinstance(self.exchange.reply, Failure)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class ToolCallEvaluator(Judging):
    """Scores calls by name and arguments, retrieval by what it finds, answers by a judge.

    Parameters
    ----------
    argument_match
        `share`: the share of argument names whose values agree; `exact`: all or nothing; `bfcl`:
        all or nothing, where the file lists the allowed values of each argument.
    retrieves
        Whether somebody can be asked to retrieve; set by the run.
    """

    fits: ClassVar[frozenset[str]] = frozenset({"tool_call"})
    measures_failures: ClassVar[bool] = True

    name: str = "tool_call"
    filter: str = "none"
    argument_match: Matching = "share"
    retrieves: bool = False

    @cached_property
    def metrics(self) -> Sequence[Metric]:
        """The documented metrics, and the dimensions that the answer score is the mean of."""
        made = (
            _total("total_conversations", "conversations"),
            _total("total_pairs", "overall_n"),
            *self._call_metrics("pair1", "pair1"),
            *self._call_metrics("pair2", "pair2"),
            *self._call_metrics("pair2_consider_recall", "pair2_recall"),
            _total("pair3.total", "pair3_n"),
            *self._answer_metrics("pair3"),
            *self._recall_metrics(),
            *self._call_metrics("overall", "overall"),
            *self._answer_metrics("overall", dimensions=False),
            *self.agreement_metrics("pair3_failed"),
        )
        prefix = "" if self.name == "tool_call" else f"{self.name}_"
        return tuple(replace(metric, name=f"{prefix}{metric.name}") for metric in made)

    def _call_metrics(self, name: str, column: str) -> Iterator[Metric]:
        depends = column == "pair2_recall" and not self.retrieves
        made = partial(
            Metric,
            signature=f"arguments:{self.argument_match}",
            failed=f"{column}_failed",
            absent="no retrieval" if depends else "no samples",
        )
        yield _total(f"{name}.total", f"{column}_n")
        yield made(f"{name}.accuracy", Ratio(f"{column}_score", f"{column}_scored"))
        yield made(f"{name}.precision@1", Ratio(f"{column}_hits", f"{column}_scored"))

    def _answer_metrics(self, name: str, *, dimensions: bool = True) -> Iterator[Metric]:
        columns = {"answer_score": "score"}
        if dimensions:
            columns |= {dimension: dimension for dimension in DIMENSIONS}
        for metric, column in columns.items():
            kind = Ratio(f"pair3_{column}", "pair3_judged")
            yield Metric(f"{name}.{metric}", kind, failed="pair3_failed", absent=self.no_score)

    def _recall_metrics(self) -> Iterator[Metric]:
        yield _total("recall_metrics.total_pairs", "recall_n")
        yield _total(f"recall_metrics.recall@{FIRST}_1", "recall_hits")
        yield _total(f"recall_metrics.recall@{FIRST}_0", "recall_misses")
        yield Metric(
            "recall_metrics.recall_rate",
            Ratio("recall_hits", "recall_n"),
            failed="recall_failed",
            absent="no samples" if self.retrieves else "no retrieval",
        )

    # --- asking and measuring ----------------------------------------------------------------

    def ask(self, answer: Answer, /) -> Dialogue:
        """Ask the judges about each answer to a pair 3; see `types.Asks`."""
        cases = [case for case in _cases(answer) if case is not None and case.answer]
        exchanges = yield from self.consult(cases)
        return replace(answer, exchanges=answer.exchanges + exchanges)

    def measure(self, answer: Answer) -> Measured:
        """Count and sum over the pairs of one conversation; a pair that failed is counted apart."""
        pairs = tuple(_pairs(answer, self.argument_match))
        columns: Counter[str] = Counter({"conversations": 1, "overall_n": len(pairs)})
        for pair in pairs:
            columns.update(_counts(pair))
        columns.update(_considering_recall(pairs))
        columns.update(self._judged(answer))
        return {
            **{name: columns[name] for name in (*_TOTALS, "truncated")},
            **columns,
            "pairs": [_told(pair) for pair in pairs],
        }

    def _judged(self, answer: Answer) -> Counter[str]:
        columns: Counter[str] = Counter()
        cases = [case for case in _cases(answer) if case is not None] if self.judges else []
        found = [(case, rated(self, case, answer.exchanges)) for case in cases]
        for case, opinion in found:
            if opinion is None:
                columns["pair3_failed"] += 1
                continue
            columns["unparsed"] += not case.answer
            columns.update({"pair3_judged": 1, "pair3_score": opinion.score})
            columns.update({f"pair3_{name}": one for name, one in opinion.dimensions.items()})
        columns.update(self.agreement([one for case, one in found if case.answer and one]))
        return columns


def _total(name: str, column: str) -> Metric:
    return Metric(name, Items(column, _sum, resample=False), higher_is_better=None)


def _sum(values: Sequence[float]) -> float:
    return float(sum(values))


_TOTALS = (
    "conversations",
    "pair3_n",
    "recall_n",
    "recall_hits",
    "recall_misses",
    *(f"{name}_n" for name in _CALLS),
)


# --- one conversation ------------------------------------------------------------------------


def _pairs(answer: Answer, matching: Matching) -> Iterator[_Pair]:
    """Yield the pairs with their scores, in the order of the reference."""
    golds = answer.sample.reference["pairs"]
    tools = tools_in(answer.sample.doc.get("tools")) if matching == "bfcl" else ()
    exchanges = _asked_of_model(answer)
    made = [calls_made(one.reply) for one in exchanges]
    found = [one.reply for one in answer.exchanges if one.request.to == "retrieval"]
    looked = dict(zip(retrievals(answer.sample.reference, made), found, strict=True))
    for place, (gold, exchange, calls) in enumerate(zip(golds, exchanges, made, strict=True)):
        wanted = gold_calls(gold) if gold["kind"] != 3 else None
        reply = looked.get(place)
        recalled = None
        if isinstance(reply, Retrieved):
            next_calls = gold_calls(golds[gold["next"]]) or ()
            recalled = {call.name for call in next_calls} <= set(reply.names[:FIRST])
        score = None
        if wanted is not None and calls is not None:
            if matching == "bfcl":
                wanted = within_schema(wanted, tools)
            score = score_calls(calls.calls, wanted, matching)
        yield _Pair(
            gold=gold,
            exchange=exchange,
            score=score,
            unparsed=score is not None and calls is not None and calls.unparsed,
            recalled=recalled,
            recall_failed=isinstance(reply, Failure),
        )


def _asked_of_model(answer: Answer) -> list[Exchange]:
    return [one for one in answer.exchanges if one.request.to == "model"]


def _counts(pair: _Pair) -> Mapping[str, int]:
    reply = pair.exchange.reply
    cut = isinstance(reply, Generated) and (reply.finish == "length" or reply.prompt_truncated)
    columns: dict[str, Any] = {f"{pair.name}_n": 1, "truncated": int(cut)}
    if pair.gold["kind"] == 3:
        return {**columns, "pair3_failed": 1} if pair.failed else columns
    columns["unparsed"] = int(pair.unparsed)
    if pair.recalled is not None:
        columns["recall_n"] = 1
        columns["recall_hits" if pair.recalled else "recall_misses"] = 1
    if pair.recall_failed:
        columns["recall_failed"] = 1
    if pair.gold["calls"] is None:
        return {**columns, "invalid": 1}
    return {**columns, **_scored(pair, pair.name), **_scored(pair, "overall")}


def _scored(pair: _Pair, name: str) -> dict[str, Any]:
    if pair.score is None:
        return {f"{name}_failed": 1}
    return {
        f"{name}_scored": 1,
        f"{name}_score": pair.score.accuracy,
        f"{name}_hits": int(pair.score.hit),
    }


def _considering_recall(pairs: Sequence[_Pair]) -> Counter[str]:
    """Count pairs 2 whose tool was found for the pair 1 before them."""
    columns: Counter[str] = Counter()
    for pair in pairs:
        if pair.recalled:
            columns["pair2_recall_n"] += 1
            columns.update(_scored(pairs[pair.gold["next"]], "pair2_recall"))
    return columns


def _cases(answer: Answer) -> Iterator[Case | None]:
    """Yield what a judge is asked about each pair 3; None where the model failed."""
    golds = answer.sample.reference["pairs"]
    for gold, one in zip(golds, _asked_of_model(answer), strict=True):
        if gold["kind"] != 3 or not isinstance(one.request, Generate):
            continue
        answered = isinstance(one.reply, Generated)
        yield Case(one.request.prompt, gold["answer"], text_of(one.reply)) if answered else None  # type: ignore[arg-type]


def _told(pair: _Pair) -> dict[str, Any]:
    """Return what the sample file says about a pair."""
    told: dict[str, Any] = {"kind": pair.gold["kind"]}
    calls = calls_made(pair.exchange.reply)
    if isinstance(pair.exchange.reply, Failure):
        return {**told, "failed": pair.exchange.reply.kind}
    if pair.score is not None and calls is not None:
        told |= {
            "made": [call._asdict() for call in calls.calls],
            "accuracy": pair.score.accuracy,
            "precision@1": int(pair.score.hit),
        }
    if pair.recalled is not None:
        told["recall"] = int(pair.recalled)
    return told
