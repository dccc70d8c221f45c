"""Small parts for tests: tasks and models that are played by hand, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xpe.types import (
    Answer,
    Asked,
    Dialogue,
    Exchange,
    Generate,
    Generated,
    Mean,
    Measured,
    Metric,
    Reply,
    Sample,
)


def sample(doc_id: int, task: str = "toy") -> Sample:
    """A sample whose right answer is its own number."""
    reference = {"answer": {"type": "text", "value": str(doc_id)}}
    return Sample(task, doc_id, {"question": f"q{doc_id}"}, str(doc_id), reference)


@dataclass
class ToyTask:
    """Asks each sample `turns` times, `repeats` requests a turn."""

    n: int = 5
    turns: int = 1
    repeats: int = 1
    name: str = "toy"
    temperature: float = 0.0

    @property
    def n_original(self) -> int:
        return self.n

    def samples(self) -> Sequence[Sample]:
        return [sample(i, self.name) for i in range(self.n)]

    def dialogue(self, one: Sample) -> Dialogue:
        exchanges: list[Exchange] = []
        for turn in range(self.turns):
            requests = tuple(
                Generate(f"{one.doc_id}:{turn}:{repeat}", temperature=self.temperature)
                for repeat in range(self.repeats)
            )
            replies = yield requests
            exchanges += map(Exchange, requests, replies)
        return Answer(one, tuple(exchanges))


@dataclass
class StreamingModel:
    """Answers one request at a time with the document's number; keeps what it was asked."""

    asked: list[Asked] = field(default_factory=list)
    fails: Mapping[int, Reply] = field(default_factory=dict)
    name: str = "streaming"

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"backend": self.name}

    def answer(self, one: Asked) -> Reply:
        self.asked.append(one)
        return self.fails.get(one.origin.doc_id, Generated(str(one.origin.doc_id)))

    def reply(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        for one in asked:
            yield None if one is None else (one, self.answer(one))


@dataclass
class BatchedModel(StreamingModel):
    """Answers in batches of `size`; its replies tell how large the batch was."""

    size: int = 2
    batches: list[tuple[Asked, ...]] = field(default_factory=list)
    dies_after: int | None = None

    def plan(self, asked: Sequence[Asked]) -> Sequence[tuple[Asked, ...]]:
        return [tuple(asked[i : i + self.size]) for i in range(0, len(asked), self.size)]

    def run(self, batch: tuple[Asked, ...]) -> tuple[Reply, ...]:
        if self.dies_after is not None and len(self.batches) >= self.dies_after:
            raise KeyboardInterrupt
        self.batches.append(batch)
        return tuple(self.answer(one) for one in batch)

    def answer(self, one: Asked) -> Reply:
        self.asked.append(one)
        # Floats that depend on the batch, as real log likelihoods do in the last digits.
        return Generated(str(one.origin.doc_id), tokens=len(self.batches))


@dataclass(frozen=True)
class Exact:
    """Scores 1 for a text equal to the target."""

    name: str = "exact"
    filter: str = "none"
    metrics: tuple[Metric, ...] = (Metric("exact", Mean("exact")),)

    def measure(self, answer: Answer) -> Measured:
        return {"exact": float(answer.generated[0].text == answer.sample.target)}


class Silent:
    """A watcher that keeps what it sees."""

    def __init__(self) -> None:
        self.replies: list[tuple[Asked, Reply]] = []
        self.answers: list[Answer] = []
        self.results: list[Any] = []

    def task_started(self, task: Any, n_samples: int) -> None: ...

    def replied(self, asked: Asked, reply: Reply) -> None:
        self.replies.append((asked, reply))

    def answered(self, answer: Answer, measured: Mapping[str, Measured]) -> None:
        self.answers.append(answer)

    def task_finished(self, result: Any) -> None:
        self.results.append(result)
