"""Log likelihoods by vLLM: which engine requests give them, and how they are read.

A row's last token is read where the next token would be drawn (`logprob_token_ids`), the ones
before it from the log probabilities of the prompt. Choices that differ in their last token only
(`A`, `B`, `C`, `D`) are one request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from xpe.models.scoring import NOTHING, Score
from xpe.models.windows import Row
from xpe.types import Reply

log = logging.getLogger(__name__)

MOST_IDS = 128
"""Token ids that the engine reads at one place."""
_TOP = 20
_TOLERANCE = {"float32": 1e-3}
_LOW_PRECISION = 0.25
_SHORTEST = 16
"""L from which on there is room for a trial."""

Place = tuple[int, int]
"""Row and position of a token in it."""


class Way(Enum):
    """How the tokens before a row's last one are scored, fastest first.

    CACHED: from the prompt, the shared prefix out of the prefix cache. READS: a request a token,
    each on the cached prefix. WHOLE: from the prompt, all of it computed anew.
    """

    CACHED = "cached prompt"
    READS = "one read a token"
    WHOLE = "whole prompt"


@dataclass(frozen=True)
class Offers:
    """What the installed engine offers."""

    token_ids: bool
    cache_with_prompt: bool
    flat: bool

    @classmethod
    def of(cls, params: type) -> Offers:
        """Look at the fields of its SamplingParams."""
        names = set(params.__struct_fields__)  # type: ignore[attr-defined]
        return cls(
            "logprob_token_ids" in names,
            "skip_reading_prefix_cache" in names,
            "flat_logprobs" in names,
        )


class Call(NamedTuple):
    """One request to the engine: tokens, sampling parameters, and what is read from it."""

    prompt: tuple[int, ...]
    params: dict[str, Any]
    prompt_places: tuple[int, ...] = ()
    """Positions in the prompt whose log probability is wanted."""
    rows: tuple[int, ...] = ()
    last: tuple[tuple[int, int], ...] = ()
    """Row and token that are read behind the prompt."""


@dataclass
class Scoring:
    """The rows of one request on their way through the engine.

    Parameters
    ----------
    rows
        What is scored.
    form
        Makes a reply of rows and scores.
    ways
        Those that are right here, fastest first; what the cache left out is asked the next way.
    offers
        What the engine can do.
    block
        Tokens of a block of the prefix cache.
    """

    rows: Sequence[Row]
    form: Callable[[Sequence[Row], Sequence[Score]], Reply]
    ways: tuple[Way, ...]
    offers: Offers
    block: int = 16
    reply: Reply | None = None
    _found: dict[Place, Score] = field(default_factory=dict)
    _open: int = 0

    def calls(self) -> list[Call]:
        """Return the engine requests of all rows, those that begin alike side by side."""
        return self._asked(self._calls(range(len(self.rows)), self.ways[0]))

    def take(self, call: Call, output: Any) -> list[Call]:
        """Read what a request gave; return the requests that are needed beyond it.

        Sets `reply` when all is known.
        """
        self._open -= 1
        more = [*self._read_prompt(call, output), *self._read_last(call, output)]
        return self._asked(more)

    def _asked(self, calls: list[Call]) -> list[Call]:
        self._open += len(calls)
        if not self._open:
            self.reply = self.form(self.rows, [self._score(r) for r in range(len(self.rows))])
        return calls

    def _score(self, r: int) -> Score:
        row = self.rows[r]
        scores = [self._found[r, p] for p in range(row.start, len(row.tokens))]
        if not scores:
            return NOTHING
        return Score(
            sum(score.log_likelihood for score in scores), all(score.greedy for score in scores)
        )

    # --- requests ---------------------------------------------------------------------------

    def _calls(self, which: Iterable[int], way: Way) -> list[Call]:
        ends: dict[tuple[int, ...], list[Place]] = {}
        whole: list[Call] = []
        for r in which:
            row = self.rows[r]
            if not self.offers.token_ids and len(row.tokens) - row.start > 1:
                whole.append(self._whole_row(r))
                continue
            first = row.start if way is Way.READS else len(row.tokens) - 1
            for p in range(max(first, row.start), len(row.tokens)):
                ends.setdefault(row.tokens[:p], []).append((r, p))
        calls = [call for seen, places in ends.items() for call in self._at(seen, places, way)]
        return calls + whole

    def _at(self, seen: tuple[int, ...], places: Sequence[Place], way: Way) -> list[Call]:
        """Return the requests that read the tokens behind `seen`, and those within it."""
        last = tuple((r, self.rows[r].tokens[p]) for r, p in places)
        ids = list(dict.fromkeys(token for _, token in last))
        starts = [self.rows[r].start for r, _ in places]
        within = () if way is Way.READS else tuple(range(min(starts), len(seen)))
        rows = tuple(r for r, _ in places)
        calls: list[Call] = []
        for low in range(0, len(ids), MOST_IDS):
            part = ids[low : low + MOST_IDS]
            params = self._params(within and not low, way)
            if self.offers.token_ids:
                params["logprob_token_ids"] = part
            else:
                params["logprobs"] = _TOP
            read = tuple(pair for pair in last if pair[1] in set(part))
            calls.append(Call(seen, params, () if low else within, rows, read))
        return calls

    def _whole_row(self, r: int) -> Call:
        """Score a row, its last token too, from the prompt; for engines without token ids."""
        row = self.rows[r]
        places = tuple(range(row.start, len(row.tokens)))
        return Call(row.tokens, self._params(True, Way.WHOLE), places, (r,))

    def _params(self, within: Any, way: Way) -> dict[str, Any]:
        params: dict[str, Any] = {"temperature": 0.0, "max_tokens": 1, "detokenize": False}
        if self.offers.flat:
            params["flat_logprobs"] = True
        if within:
            params["prompt_logprobs"] = 0
            if self.offers.cache_with_prompt:
                params["skip_reading_prefix_cache"] = way is not Way.CACHED
        return params

    # --- replies ----------------------------------------------------------------------------

    def _read_prompt(self, call: Call, output: Any) -> list[Call]:
        if not call.prompt_places:
            return []
        cached = 0
        if call.params.get("skip_reading_prefix_cache") is False:
            known = output.num_cached_tokens
            cached = len(call.prompt) if known is None else known
        missing: set[int] = set()
        for p in call.prompt_places:
            # The row that predicts p was computed at p - 1.
            score = None if p - 1 < cached else at(output.prompt_logprobs, p, call.prompt[p])
            for r in call.rows:
                if p < self.rows[r].start:
                    continue
                if score is None:
                    missing.add(r)
                else:
                    self._found[r, p] = score
        return self._again(sorted(missing))

    def _again(self, rows: Sequence[int]) -> list[Call]:
        """Ask once more for what stood in the cache, the cheaper way."""
        reads: list[int] = []
        whole: list[int] = []
        for r in rows:
            row = self.rows[r]
            few = (len(row.tokens) - row.start) * self.block < len(row.tokens)
            (reads if few and Way.READS in self.ways else whole).append(r)
        return [*self._calls(reads, Way.READS), *self._calls(whole, Way.WHOLE)]

    def _read_last(self, call: Call, output: Any) -> list[Call]:
        if not call.last:
            return []
        (drawn,) = output.outputs
        most_likely = drawn.token_ids[0]
        # Turned round: shorter requests are padded at the end with token 0.
        table = dict(reversed(entries(drawn.logprobs, 0)))
        missing: list[int] = []
        for r, token in call.last:
            if token in table:
                place = (r, len(call.prompt))
                self._found[place] = Score(table[token], token == most_likely)
            else:
                missing.append(r)
        return [self._whole_row(r) for r in missing]


def at(table: Any, position: int, token: int) -> Score | None:
    """Return the score of the prompt's token at a position; None where it was not computed."""
    if table is None or position >= len(table):
        return None
    if hasattr(table, "start_indices"):
        i = table.start_indices[position]
        if i == table.end_indices[position] or table.token_ids[i] != token:
            return None
        return Score(table.logprobs[i], table.ranks[i] == 1)
    found = (table[position] or {}).get(token)
    return None if found is None else Score(found.logprob, found.rank == 1)


def entries(table: Any, position: int) -> list[tuple[int, float]]:
    """Return the tokens and log probabilities that are known at a position."""
    if hasattr(table, "start_indices"):
        part = slice(table.start_indices[position], table.end_indices[position])
        return list(zip(table.token_ids[part], table.logprobs[part], strict=True))
    return [(token, found.logprob) for token, found in table[position].items()]


def proved(
    run: Callable[[Scoring], Any], offers: Offers, block: int, length: int, dtype: str
) -> tuple[Way, ...]:
    """Score a few rows each way; return those that agree with the slow one, fastest first.

    `run` sends a Scoring through the engine and returns its reply.
    """
    if length < _SHORTEST:
        return (Way.WHOLE,)
    rows = _trial(block, length)
    wanted = run(Scoring(rows, _as_scores, (Way.WHOLE,), offers, block))
    possible = (Way.CACHED, Way.READS) if offers.token_ids else ()
    ways: list[Way] = []
    for way in possible:
        if way is Way.CACHED and not offers.cache_with_prompt:
            continue
        if _agree(run(Scoring(rows, _as_scores, (way,), offers, block)), wanted, dtype):
            ways.append(way)
        else:
            log.warning("log likelihoods by %s differ from the slow ones here", way.value)
    return (*ways, Way.WHOLE)


def _trial(block: int, length: int) -> list[Row]:
    lead = tuple(7 + i % 50 for i in range(min(2 * block + 5, length - 8)))
    return [Row((*lead, 11, *tail), len(lead) + 1) for tail in ((20, 21, 22), (31, 32), (40,))]


def _as_scores(_: Sequence[Row], scores: Sequence[Score]) -> Any:
    return tuple(scores)


def _agree(found: Any, wanted: Any, dtype: str) -> bool:
    most = _TOLERANCE.get(dtype, _LOW_PRECISION)
    return all(
        abs(a.log_likelihood - b.log_likelihood) <= most for a, b in zip(found, wanted, strict=True)
    )
