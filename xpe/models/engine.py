"""A loaded model: tokens in, replies out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, assert_never

from xpe.errors import retrieves_nothing
from xpe.models.decoding import Decoder
from xpe.models.endings import Ending
from xpe.models.loading import decoder, ending_tokens
from xpe.models.prompts import Prompts
from xpe.models.scoring import Score, Scorer
from xpe.models.windows import Row
from xpe.text.reasoning import Markers, opened_by
from xpe.types import Failure, Generate, LogLikelihood, Reply, Request, Retrieve, Rolling, Scored


@dataclass(frozen=True)
class Engine:
    """Answers requests of one kind as one batch."""

    prompts: Prompts
    scorer: Scorer
    decoder: Decoder
    markers: Markers

    @classmethod
    def of(cls, prompts: Prompts, scorer: Scorer, markers: Markers) -> Self:
        """Build the decoder of the scorer's model beside it."""
        model = scorer.model
        eos = ending_tokens(model, prompts.tokenizer)
        decode = decoder(prompts.tokenizer, {mark for pair in markers for mark in pair})
        return cls(prompts, scorer, Decoder(model, decode, eos, scorer.shares), markers)

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer requests that are all of the first one's kind, in their order."""
        match requests[0]:
            case LogLikelihood():
                choices = [one for one in requests if isinstance(one, LogLikelihood)]
                rows = self.prompts.choice_rows(choices)
                return self._scored(rows, "the longest continuation", by_continuation)
            case Rolling():
                texts = [one for one in requests if isinstance(one, Rolling)]
                return self._scored(self.prompts.text_rows(texts), "a window", as_one)
            case Generate():
                return self._generated([one for one in requests if isinstance(one, Generate)])
            case Retrieve():
                raise retrieves_nothing("a language model")
            case never:
                assert_never(never)

    def _scored(
        self, groups: Sequence[Sequence[Row | None]], what: str, form: Callable[..., Scored]
    ) -> list[Reply]:
        replies: list[Reply] = [self.prompts.no_room(what)] * len(groups)
        fit = {i: rows for i, group in enumerate(groups) if len(rows := _all(group)) == len(group)}
        found = self.scorer.scores(list(fit.values()))
        for (i, rows), scores in zip(fit.items(), found, strict=True):
            failed = [score for score in scores if isinstance(score, Failure)]
            replies[i] = failed[0] if failed else form(rows, scores)
        return replies

    def _generated(self, requests: Sequence[Generate]) -> list[Reply]:
        rows = self.prompts.generation_rows(requests)
        replies: list[Reply] = [
            self.prompts.no_room(f"a prompt and {requests[0].max_tokens} more")
        ] * len(requests)
        fit = [(i, row) for i, row in enumerate(rows) if row is not None]

        def texts(part: Sequence[tuple[int, Row]]) -> Sequence[Reply]:
            asked = [requests[i] for i, _ in part]
            return self.decoder.texts(
                asked, [row for _, row in part], [self._ending(one) for one in asked]
            )

        if fit:
            for (i, _), reply in zip(fit, self.scorer.halving(texts, fit), strict=True):
                replies[i] = reply
        return replies

    def _ending(self, request: Generate) -> Ending:
        prompt = self.prompts.render(request.prompt, request.tools)
        return Ending(request.stop, self.markers, opened_by(prompt, self.markers))


def _all(rows: Sequence[Row | None]) -> list[Row]:
    return [row for row in rows if row is not None]


def by_continuation(rows: Sequence[Row], scores: Sequence[Score]) -> Scored:
    """Make a reply of rows that are one continuation each."""
    return Scored(
        tuple(score.log_likelihood for score in scores),
        tuple(score.greedy for score in scores),
        tuple(len(row.tokens) - row.start for row in rows),
        any(row.truncated for row in rows),
    )


def as_one(rows: Sequence[Row], scores: Sequence[Score]) -> Scored:
    """Make a reply of the windows of one text."""
    return Scored(
        (math.fsum(score.log_likelihood for score in scores),),
        (all(score.greedy for score in scores),),
        (sum(len(row.tokens) - row.start for row in rows),),
    )
