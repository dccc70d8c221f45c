"""Drive the dialogues of a task: the only step that talks to models."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from xpe.errors import EngineError, unknown
from xpe.seeds import derive
from xpe.types import (
    Answer,
    Asked,
    Dialogue,
    Failure,
    Generate,
    Model,
    Origin,
    Reply,
    Request,
    Sample,
    Scored,
)

Talk = tuple[Sample, Dialogue]


def converse(
    talks: Iterable[Talk],
    models: Mapping[str, Model],
    *,
    torch_seed: int,
    replied: Callable[[Asked, Reply], object],
) -> Iterator[Answer]:
    """Advance all dialogues without a turn barrier, and yield answers as they finish.

    A dialogue is started when the model under test has room for its requests. Requests go to
    the model that they name; a model that pulls everything at once (`hf`) gets the requests of
    all samples in one wave, one that streams gets them as it asks.

    Parameters
    ----------
    talks
        A sample and its fresh dialogue each; consumed lazily.
    models
        Who answers, by the name in `request.to`; `model` is the one under test.
    torch_seed
        The seed of a sampled request is a function of this and its origin.
    replied
        Sees each reply as it arrives.

    Raises
    ------
    EngineError
        A model ended without answering all that it took.
    UnknownNameError
        A request names somebody who takes no part in this run.
    """
    desk = _Desk(iter(talks), {name: deque() for name in models}, torch_seed)
    streams = {name: model.reply(desk.feed(name)) for name, model in models.items()}
    while streams:
        for name, stream in list(streams.items()):
            try:
                got = next(stream)
            except StopIteration:
                del streams[name]
                continue
            if got is not None:
                asked, reply = got[0], _finite(got[1])
                replied(asked, reply)
                desk.deliver(asked, reply)
            yield from desk.finished()
    yield from desk.finished()
    if desk.open:
        raise EngineError(f"{desk.open} dialogues were left without a reply by their model")


def _finite(reply: Reply) -> Reply:
    """Turn log likelihoods that are no numbers into a failure.

    Weights that overflow in half precision give NaN: scored, it would count as a wrong choice.
    """
    if isinstance(reply, Scored) and not all(map(math.isfinite, reply.log_likelihoods)):
        return Failure("not_finite", f"log likelihoods {list(reply.log_likelihoods)}")
    return reply


@dataclass
class _Pending:
    """A dialogue that waits for `missing` of the replies of its present turn."""

    sample: Sample
    dialogue: Dialogue
    turn: int = 0
    replies: list[Reply | None] = field(default_factory=list)
    missing: int = 0


class _Desk:
    """Where requests wait to be pulled, and replies find their dialogue."""

    def __init__(self, talks: Iterator[Talk], queues: dict[str, deque[Asked]], seed: int) -> None:
        self.open = 0
        self._talks = talks
        self._more = True
        self._queues = queues
        self._seed = seed
        self._pending: dict[tuple[str, int], _Pending] = {}
        self._finished: deque[Answer] = deque()

    def feed(self, name: str) -> Iterator[Asked | None]:
        """Yield requests for one model, None when there is none now, and end when none can come.

        Only the model under test starts new dialogues; others answer what those bring up.
        """
        queue = self._queues[name]
        while True:
            if queue:
                yield queue.popleft()
            elif name == "model" and self._more:
                self._start()
            elif self.open or self._more:
                yield None
            else:
                return

    def deliver(self, asked: Asked, reply: Reply) -> None:
        """Hand a reply to its dialogue, which goes on once all of its turn are there."""
        origin = asked.origin
        pending = self._pending[origin.task, origin.doc_id]
        pending.replies[origin.repeat] = reply
        pending.missing -= 1
        if not pending.missing:
            replies = tuple(reply for reply in pending.replies if reply is not None)
            pending.turn += 1
            self._advance(pending, replies)

    def finished(self) -> Iterator[Answer]:
        """Yield the answers that are complete, each once; some dialogues ask nothing at all."""
        while self._finished:
            yield self._finished.popleft()

    def _start(self) -> None:
        talk = next(self._talks, None)
        if talk is None:
            self._more = False
            return
        sample, dialogue = talk
        self.open += 1
        self._advance(_Pending(sample, dialogue), None)

    def _advance(self, pending: _Pending, replies: tuple[Reply, ...] | None) -> None:
        place = (pending.sample.task, pending.sample.doc_id)
        try:
            while not (
                requests := next(pending.dialogue)
                if replies is None
                else pending.dialogue.send(replies)
            ):
                replies = ()
        except StopIteration as end:
            self.open -= 1
            self._pending.pop(place, None)
            self._finished.append(end.value)
            return
        pending.replies = [None] * len(requests)
        pending.missing = len(requests)
        self._pending[place] = pending
        for repeat, request in enumerate(requests):
            self._ask(Origin(*place, pending.turn, repeat), request)

    def _ask(self, origin: Origin, request: Request) -> None:
        if request.to not in self._queues:
            raise unknown("addressee of a request", request.to, self._queues)
        if isinstance(request, Generate) and request.temperature > 0 and request.seed is None:
            request = replace(request, seed=derive(self._seed, *origin))
        self._queues[request.to].append(Asked(origin, request))
