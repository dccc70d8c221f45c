"""The values that flow through a run, and the protocols of its parts.

All values are frozen: every step returns new ones. Axes in array names: N answers, K columns,
B bootstrap replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from xpe.errors import DataError

Float: TypeAlias = NDArray[np.float64]
Message: TypeAlias = Mapping[str, Any]
"""One chat message, as the chat APIs spell it: `role`, `content`, and `tool_calls` where made."""
Prompt: TypeAlias = str | tuple[Message, ...]
"""Plain text, or messages that the model renders with its own chat template."""
Measured: TypeAlias = Mapping[str, Any]
"""What one evaluator found in one answer: named numbers (absent = 0); objects for `Items`."""

FAULTS = ("failed", "invalid", "timeout")
"""Columns of `Measured` that say why an answer has no score. A row of nothing else is unscored."""
FLAGS = ("unparsed", "truncated")
"""Columns of `Measured` that describe an answer which is scored all the same."""


# --- what is asked ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """One document of a task, with its place and what is right.

    `reference` is the documented mapping `{answer: {type, value}, choices: [{id, text}]}`, where
    `answer.values` holds all right answers if there are several, and `value` the first;
    `target` is the gold as the task states it (a string, an index, a list);
    `cluster` names what the sample shares chance with (a passage, a patient), else None.
    """

    task: str
    doc_id: int
    doc: Mapping[str, Any]
    target: Any
    reference: Mapping[str, Any]
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask for text. `max_tokens` in tokens; temperature 0 is greedy; `seed` only when sampled."""

    prompt: Prompt
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    to: str = "model"


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """Ask for the log likelihood of each continuation of one context."""

    context: Prompt
    continuations: tuple[str, ...]
    to: str = "model"


@dataclass(frozen=True, slots=True)
class Rolling:
    """Ask for the log likelihood of a whole text, window by window."""

    text: str
    to: str = "model"


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Ask a retrieval service for the `top_k` best matches of a query.

    `arguments` are those of the call that a model made of it, for a service that takes them.
    """

    query: str
    top_k: int = 5
    arguments: Mapping[str, Any] = field(default_factory=dict)
    to: str = "retrieval"


Request: TypeAlias = Generate | LogLikelihood | Rolling | Retrieve


class Origin(NamedTuple):
    """Where a request comes from: not part of the store's key, but what `replay` answers by."""

    task: str
    doc_id: int
    turn: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A request on its way to a model."""

    origin: Origin
    request: Request


# --- what is answered ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Generated:
    """Text, cut before its stop string and freed of reasoning.

    `finish` says why it ended; `reasoning` is what was taken out; `prompt_truncated` says that
    the prompt lost its beginning because it did not fit. `tokens` counts the generated ones.
    """

    text: str
    finish: Literal["stop", "length", "tool_calls"] = "stop"
    reasoning: str = ""
    tokens: int = 0
    prompt_tokens: int = 0
    prompt_truncated: bool = False
    tool_calls: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """Log likelihoods in nats, one a continuation (one for `Rolling`).

    `greedy[i]` says that every token of continuation i was the most likely one;
    `tokens[i]` counts its tokens.
    """

    log_likelihoods: tuple[float, ...]
    greedy: tuple[bool, ...]
    tokens: tuple[int, ...]
    prompt_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The names of what was found, best first."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer. `kind` is one word (timeout, rate_limit, server, context, memory …)."""

    kind: str
    message: str


Reply: TypeAlias = Generated | Scored | Retrieved | Failure


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came back."""

    request: Request
    reply: Reply


@dataclass(frozen=True, slots=True)
class Answer:
    """All that was said about one sample, in the order in which it was asked."""

    sample: Sample
    exchanges: tuple[Exchange, ...]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Failures of the model under test; those of a judge are the judge's."""
        return tuple(
            e.reply
            for e in self.exchanges
            if isinstance(e.reply, Failure) and e.request.to == "model"
        )

    @property
    def generated(self) -> tuple[Generated, ...]:
        """What the model under test wrote: one for each repeat of a single question."""
        return tuple(
            e.reply
            for e in self.exchanges
            if isinstance(e.reply, Generated) and e.request.to == "model"
        )

    @property
    def scored(self) -> tuple[Scored, ...]:
        """The log likelihoods that were asked for, one reply a request."""
        return tuple(e.reply for e in self.exchanges if isinstance(e.reply, Scored))

    @property
    def truncated(self) -> bool:
        """Whether a prompt lost its beginning or a generation met its token limit."""
        return any(
            (isinstance(e.reply, Generated) and (e.reply.finish == "length"))
            or (isinstance(e.reply, (Generated, Scored)) and e.reply.prompt_truncated)
            for e in self.exchanges
        )


Dialogue: TypeAlias = Generator[tuple[Request, ...], tuple[Reply, ...], Answer]
"""Yields requests that can be asked now, is sent their replies in order, returns an Answer."""


# --- what is measured ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean of `column` over the answers with `of` > 0 (None: over all that are scored)."""

    column: str
    of: str | None = None


@dataclass(frozen=True, slots=True)
class Ratio:
    """Sum of `numerator` over sum of `denominator`."""

    numerator: str
    denominator: str


@dataclass(frozen=True, slots=True)
class Sums:
    """A function of summed rows: `score` maps (..., K) sums of `columns` to (...) values."""

    columns: tuple[str, ...]
    score: Callable[[Float], Float]


@dataclass(frozen=True, slots=True)
class Order:
    """A quantile of `column` over the scored answers (0.5: the median)."""

    column: str
    quantile: float = 0.5


@dataclass(frozen=True, slots=True)
class Items:
    """A function of the list of values of `column`, which may be any objects. Slow to resample.

    `resample` False: no error bar, because `aggregate` gives no per-sample values.
    """

    column: str
    aggregate: Callable[[Sequence[Any]], float]
    resample: bool = True


Kind: TypeAlias = Mean | Ratio | Sums | Order | Items


@dataclass(frozen=True, slots=True)
class Metric:
    """A name for a number, how it is made of rows, and which way is better.

    `higher_is_better` is None for a count, of which neither is better.
    `signature` names everything that moves the number (tokenizer, smoothing, version).
    `limits` are the lowest and highest value that one answer can have, where both are known.
    `failed` names a column that counts what this metric alone lacks, where an answer holds
    several things; such an answer has no `failed` of its own. `absent` says why there is no
    value where there is nothing to make it of.
    """

    name: str
    kind: Kind
    higher_is_better: bool | None = True
    signature: str | None = None
    limits: tuple[float, float] | None = None
    failed: str = "failed"
    absent: str = "no samples"


@dataclass(frozen=True)
class Table:
    """What one evaluator measured on one task: a row an answer, in the order of doc ids.

    `scored_N` is False where nothing was scored; such rows are 0. `items` holds the values of
    columns that are not numbers, aligned with the rows.
    """

    columns: tuple[str, ...]
    rows_NK: Float
    doc_ids: tuple[int, ...]
    scored_N: NDArray[np.bool_]
    clusters: tuple[str | None, ...]
    items: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, n_columns = self.rows_NK.shape
        sides = (self.doc_ids, self.scored_N, self.clusters, *self.items.values())
        lengths = [len(side) for side in sides]
        if set(lengths) != {n} or n_columns != len(self.columns):
            raise DataError(
                f"a table of {n} rows and {n_columns} columns needs as many names, documents, "
                f"marks, clusters and items, got {len(self.columns)} names and {lengths}"
            )

    def column(self, name: str) -> Float:
        """Return one column, (N,); zeros where no answer had it."""
        if name not in self.columns:
            return np.zeros(len(self.rows_NK))
        return self.rows_NK[:, self.columns.index(name)]


@dataclass(frozen=True)
class Estimate:
    """A number with its error bar. None means undefined, and `why` says the reason.

    `n` counts all samples of the task, `count` those behind `value`. `bounds` is given when some
    are missing: the value if all missing ones were at their worst, and at their best.
    """

    value: float | None
    stderr: float | None
    ci: tuple[float, float] | None
    ci_method: str | None
    n: int
    count: int
    min: float | None = None
    max: float | None = None
    n_failed: int = 0
    n_invalid: int = 0
    n_timeout: int = 0
    n_unparsed: int = 0
    n_truncated: int = 0
    partial: bool = False
    bounds: tuple[float, float] | None = None
    higher_is_better: bool | None = True
    signature: str | None = None
    why: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskResult:
    """The estimates of one task by result key (`metric`, or `metric,filter`)."""

    name: str
    estimates: Mapping[str, Estimate]
    n_original: int
    n_effective: int


@dataclass(frozen=True)
class Result:
    """A whole run."""

    tasks: Mapping[str, TaskResult]
    groups: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    group_subtasks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Whether any number lacks samples."""
        return any(e.partial for t in self.tasks.values() for e in t.estimates.values())


# --- the parts -------------------------------------------------------------------------------


@runtime_checkable
class Model(Protocol):
    """Whoever answers: a language model, a judge, a retrieval service, recorded outputs."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that decides a reply: backend, weights digest or revision, dtype, tokenizer and
        template digests, engine version. JSON values only, no secrets, no paths.
        """

    def reply(self, asked: Iterable[Asked | None], /) -> Iterator[tuple[Asked, Reply] | None]:
        """Answer each request once, in any order, as replies finish.

        `asked` is pulled while there is room. It gives None when nothing can be asked until a
        reply has been yielded: then work on what is there, yield, and pull again. With nothing
        under way either, yield None, so that others can get on.
        """


@runtime_checkable
class Batched(Protocol):
    """A model whose replies depend, in the last digits, on what is computed together."""

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def plan(self, asked: Sequence[Asked], /) -> Sequence[tuple[Asked, ...]]:
        """Deal requests into batches: a pure function of the requests and the settings."""

    def run(self, batch: tuple[Asked, ...], /) -> tuple[Reply, ...]:
        """Answer one batch whole, in its order."""


class Task(Protocol):
    """Yields samples and a dialogue for each. Never holds a model."""

    @property
    def name(self) -> str: ...
    @property
    def n_original(self) -> int:
        """Number of documents before `limit` and `samples`."""

    def samples(self) -> Sequence[Sample]:
        """Return the documents to evaluate, in the order of doc ids; loaded once."""

    def dialogue(self, sample: Sample, /) -> Dialogue: ...


class Evaluator(Protocol):
    """Measures answers; its metrics score the sums of what it measured."""

    @property
    def name(self) -> str: ...
    @property
    def metrics(self) -> Sequence[Metric]: ...
    @property
    def filter(self) -> str:
        """Name of the filter that answers go through first; `none` for none."""

    def measure(self, answer: Answer, /) -> Measured:
        """Measure one answer that has no failures. Never raises on what a model wrote."""


@runtime_checkable
class Asks(Protocol):
    """An evaluator that asks somebody (a judge) before it measures."""

    def ask(self, answer: Answer, /) -> Dialogue:
        """Ask about a finished answer; returns it with the new exchanges appended."""


class Watcher(Protocol):
    """Sees a run as it happens: progress, live metrics, sample files. Changes nothing."""

    def task_started(self, task: Task, n_samples: int, /) -> None: ...
    def replied(self, asked: Asked, reply: Reply, /) -> None: ...
    def answered(self, answer: Answer, measured: Mapping[str, Measured], /) -> None:
        """See an answer and what each evaluator (by `name,filter`) measured in it."""

    def task_finished(self, result: TaskResult, /) -> None: ...
