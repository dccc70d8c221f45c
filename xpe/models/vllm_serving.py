"""The stream of requests through vLLM: pulled while there is room, answered as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, assert_never

from xpe.errors import EngineError, XpeError, retrieves_nothing
from xpe.models.endings import Ending
from xpe.models.engine import as_one, by_continuation
from xpe.models.loading import decoder
from xpe.models.prompts import Prompts
from xpe.models.scoring import Score
from xpe.models.vllm_scores import Call, Offers, Scoring, Way, proved
from xpe.models.vllm_start import Started, stepping
from xpe.models.vllm_texts import Writing, check_extra
from xpe.models.windows import Row
from xpe.text.reasoning import Markers, opened_by
from xpe.types import (
    Asked,
    Failure,
    Generate,
    LogLikelihood,
    Reply,
    Request,
    Retrieve,
    Rolling,
    Scored,
)

_CHUNK = 128
"""Requests that are encoded and sorted together before the engine gets them."""
_PATIENCE = 32
"""How often in a row nothing may come before the engine is waited for."""


class _Work(Protocol):
    reply: Reply | None

    def calls(self) -> list[Call]: ...
    def take(self, call: Call, output: Any, /) -> list[Call]: ...


class _Pending(NamedTuple):
    asked: Asked | None
    work: _Work
    call: Call


@dataclass
class Serving:
    """A started engine with the tokenizer that feeds it.

    Parameters
    ----------
    started
        The engine.
    prompts
        The tokenizer and L.
    markers
        Pairs of markers around reasoning.
    dtype
        In which the engine computes.
    lora
        The adapter that every request names.
    ways, for_texts
        How continuations are scored, and the windows of texts; `prove` finds out.
    """

    started: Started
    prompts: Prompts
    markers: Markers
    dtype: str
    lora: Any = None
    ways: tuple[Way, ...] = (Way.WHOLE,)
    for_texts: tuple[Way, ...] = (Way.WHOLE,)
    _pending: dict[str, _Pending] = field(default_factory=dict)
    _open: int = 0
    _count: int = 0
    _more: bool = False

    def __post_init__(self) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        self._engine = self.started.llm.llm_engine
        self._params = SamplingParams
        self.offers = Offers.of(SamplingParams)
        self._always: dict[str, Any] = {"output_kind": RequestOutputKind.FINAL_ONLY}
        if "skip_clone" in SamplingParams.__struct_fields__:
            # Every request has parameters of its own.
            self._always["skip_clone"] = True
        settings = self._engine.vllm_config
        self.block = int(settings.cache_config.block_size)
        self.room = max(2 * int(settings.scheduler_config.max_num_seqs), _CHUNK)
        tokenizer = self.prompts.tokenizer
        marks = {mark for pair in self.markers for mark in pair}
        self._decode = decoder(tokenizer, marks)
        if marks & set(tokenizer.all_special_tokens):
            self._always["skip_special_tokens"] = False
        self._ends = _ending_tokens(settings.model_config, tokenizer)
        if not self.offers.token_ids:
            # Then a row's last token is part of the prompt, which holds L tokens and no more.
            self.prompts = replace(self.prompts, length=self.prompts.length - 1)

    def prove(self) -> None:
        """Find out which ways to log likelihoods are right here, fastest first."""
        if self.lora is None or not self.offers.token_ids:
            run = self._through
            self.ways = proved(run, self.offers, self.block, self.prompts.length, self.dtype)
        else:
            # Log probabilities of a prompt with an adapter end the engine of vLLM 0.32.
            self.ways = self.for_texts = (Way.READS,)

    # --- the stream -------------------------------------------------------------------------

    def stream(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        """See `types.Model`."""
        source = iter(asked)
        self._more = True
        try:
            while self._more or self._open:
                chunk: list[Asked] = []
                for _ in self._pull(source, chunk):
                    yield None
                yield from self._begin(chunk)
                if self._open and (len(chunk) < _CHUNK or len(self._pending) >= self.room):
                    yield from self._finished()
        finally:
            self._abandon()

    def _pull(self, source: Iterator[Asked | None], chunk: list[Asked]) -> Iterator[None]:
        """Fill a chunk. Yields when nothing can be asked now, so that others can get on."""
        nones = 0
        while nones < _PATIENCE and len(chunk) < min(_CHUNK, self.room - len(self._pending)):
            try:
                one = next(source)
            except StopIteration:
                self._more = False
                return
            if one is None:
                nones += 1
                yield
            else:
                nones = 0
                chunk.append(one)

    def _begin(self, chunk: Sequence[Asked]) -> Iterator[tuple[Asked, Reply]]:
        """Send a chunk to the engine, sorted so that shared prefixes meet."""
        begun: list[tuple[Asked, _Work, list[Call]]] = []
        for one, work in self._works(chunk):
            if isinstance(work, Failure):
                yield one, work
                continue
            calls = work.calls()
            if work.reply is not None:
                yield one, work.reply
            else:
                begun.append((one, work, calls))
        for one, work, calls in sorted(begun, key=lambda item: item[2][0].prompt):
            self._open += 1
            failure = self._send(one, work, calls)
            if failure is not None:
                self._open -= 1
                yield one, failure

    def _finished(self) -> Iterator[tuple[Asked, Reply]]:
        """Wait for the engine once; yield what is complete."""
        for pending in self._step():
            if pending.asked is not None:
                self._open -= 1
                assert pending.work.reply is not None
                yield pending.asked, pending.work.reply

    def _step(self) -> list[_Pending]:
        """Let the engine go one step; return the works that are complete."""
        complete: list[_Pending] = []
        for output in stepping(self.started, self._engine.step):
            if not output.finished or output.request_id not in self._pending:
                continue
            pending = self._pending.pop(output.request_id)
            more = pending.work.take(pending.call, output)
            failure = self._send(pending.asked, pending.work, more)
            if failure is not None:
                pending.work.reply = failure
            if pending.work.reply is not None:
                complete.append(pending)
        return complete

    def _send(self, asked: Asked | None, work: _Work, calls: Sequence[Call]) -> Failure | None:
        """Give calls to the engine; a Failure where it refuses one."""
        for call in calls:
            name = str(self._count)
            self._count += 1
            try:
                params = self._params(**self._always, **call.params)
                prompt = {"prompt_token_ids": list(call.prompt)}
                stepping(self.started, partial(self._add, name, prompt, params))
            except XpeError:
                raise
            except Exception as error:  # noqa: BLE001 - each version refuses with a class of its own
                self._forget(work)
                return Failure("refused", f"the engine refuses the request: {error}")
            self._pending[name] = _Pending(asked, work, call)
        return None

    def _add(self, name: str, prompt: Any, params: Any) -> None:
        lora = {} if self.lora is None else {"lora_request": self.lora}
        self._engine.add_request(name, prompt, params, **lora)

    def _through(self, work: Scoring) -> Any:
        """Send one work through the engine on its own."""
        failure = self._send(None, work, work.calls())
        if failure is not None:
            raise EngineError(f"model=vllm: {failure.message}")
        while work.reply is None:
            self._step()
        return work.reply

    def _forget(self, work: _Work) -> None:
        names = [name for name, pending in self._pending.items() if pending.work is work]
        for name in names:
            del self._pending[name]
        if names:
            self._engine.abort_request(names)

    def _abandon(self) -> None:
        """Take back what nobody waits for any more."""
        names, self._open = list(self._pending), 0
        self._pending.clear()
        if names and not self.started.dead:
            # After an interrupt the engine may be ending too; that must not hide the interrupt.
            with suppress(Exception):
                self._engine.abort_request(names)

    # --- works ------------------------------------------------------------------------------

    def _works(self, chunk: Sequence[Asked]) -> Iterator[tuple[Asked, _Work | Failure]]:
        """Encode the requests of a chunk, those of one kind together."""
        for kind in (LogLikelihood, Rolling, Generate, Retrieve):
            some = [one for one in chunk if isinstance(one.request, kind)]
            if some:
                yield from zip(some, self._of_kind([one.request for one in some]), strict=True)

    def _of_kind(self, requests: Sequence[Any]) -> list[_Work | Failure]:
        first: Request = requests[0]
        match first:
            case LogLikelihood():
                groups = self.prompts.choice_rows(requests)
                return [
                    self._scoring(g, "the longest continuation", by_continuation, self.ways)
                    for g in groups
                ]
            case Rolling():
                windows = self.prompts.text_rows(requests)
                return [self._scoring(g, "a window", as_one, self.for_texts) for g in windows]
            case Generate():
                rows = self.prompts.generation_rows(requests)
                return [self._writing(*pair) for pair in zip(requests, rows, strict=True)]
            case Retrieve():
                raise retrieves_nothing("a language model")
            case never:
                assert_never(never)

    def _scoring(
        self,
        rows: Sequence[Row | None],
        what: str,
        form: Callable[[Sequence[Row], Sequence[Score]], Scored],
        ways: tuple[Way, ...],
    ) -> Scoring | Failure:
        fitting = [row for row in rows if row is not None]
        if len(fitting) < len(rows):
            return self.prompts.no_room(what)
        return Scoring(fitting, form, ways, self.offers, self.block)

    def _writing(self, request: Generate, row: Row | None) -> Writing | Failure:
        check_extra(request, self._params)
        if row is None:
            return self.prompts.no_room(f"a prompt and {request.max_tokens} more")
        text = self.prompts.render(request.prompt, request.tools)
        ending = Ending(request.stop, self.markers, opened_by(text, self.markers))
        return Writing(request, row, ending, self._decode, self._ends)


def _ending_tokens(config: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end a text, by the generation config and the tokenizer."""
    named = (config.try_get_generation_config() or {}).get("eos_token_id")
    ids = [*(named if isinstance(named, (list, tuple)) else [named]), tokenizer.eos_token_id]
    ids.append(getattr(config.hf_text_config, "eos_token_id", None))
    return frozenset(i for i in ids if isinstance(i, int))
