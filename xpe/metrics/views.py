"""What a metric sees of one answer, by kind of output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, assert_never, get_args

from xpe.errors import ConfigError
from xpe.types import Answer, LogLikelihood, Rolling, Sample, Scored

OutputType: TypeAlias = Literal[
    "loglikelihood", "loglikelihood_rolling", "multiple_choice", "generate_until"
]
OUTPUT_TYPES: tuple[OutputType, ...] = get_args(OutputType)


@dataclass(frozen=True, slots=True)
class Continuation:
    """One scored continuation: its log likelihood in nats, whether greedy decoding writes it."""

    output_type: ClassVar[OutputType] = "loglikelihood"

    log_likelihood: float
    greedy: bool


@dataclass(frozen=True, slots=True)
class Document:
    """A whole text and its log likelihood in nats."""

    output_type: ClassVar[OutputType] = "loglikelihood_rolling"
    text: str
    log_likelihood: float


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a question. `gold` holds the indices of right ones, empty if none is there.

    `texts` are the continuations without their delimiter; `unconditional` are the log
    likelihoods without the question, where they were asked for.
    """

    output_type: ClassVar[OutputType] = "multiple_choice"
    log_likelihoods: tuple[float, ...]
    greedy: tuple[bool, ...]
    texts: tuple[str, ...]
    gold: tuple[int, ...]
    unconditional: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Texts:
    """What was written, one a repeat, and all texts that count as right."""

    output_type: ClassVar[OutputType] = "generate_until"
    predictions: tuple[str, ...]
    references: tuple[str, ...]


View: TypeAlias = Continuation | Document | Choices | Texts


def output_type_of(answer: Answer) -> OutputType:
    """Return the kind of output that an answer holds."""
    if answer.generated:
        return "generate_until"
    requests = [exchange.request for exchange in answer.exchanges]
    if any(isinstance(request, Rolling) for request in requests):
        return "loglikelihood_rolling"
    asked = [request for request in requests if isinstance(request, LogLikelihood)]
    several = len(asked) > 1 or any(len(request.continuations) > 1 for request in asked)
    return "multiple_choice" if several else "loglikelihood"


def view_of(answer: Answer, output_type: OutputType) -> View | None:
    """Return what metrics of `output_type` see of an answer; None if it holds nothing of it."""
    match output_type:
        case "generate_until":
            texts = tuple(reply.text for reply in answer.generated)
            return Texts(texts, references_of(answer.sample)) if texts else None
        case "multiple_choice":
            return _choices(answer)
        case "loglikelihood":
            found = answer.scored[:1]
            return Continuation(found[0].log_likelihoods[0], found[0].greedy[0]) if found else None
        case "loglikelihood_rolling":
            return _document(answer)
        case _:
            assert_never(output_type)


def references_of(sample: Sample) -> tuple[str, ...]:
    """Return the right texts: the target, or the text of the choice that it numbers."""
    choices = sample.reference.get("choices") or ()
    targets = sample.target if isinstance(sample.target, (list, tuple)) else (sample.target,)
    return tuple(
        str(choices[target].get("text", choices[target]["id"]))
        if _is_index(target) and target < len(choices)
        else str(target)
        for target in targets
    )


def gold_of(sample: Sample) -> tuple[int, ...]:
    """Return the indices of the right choices: from the target, its text, or the answer's id."""
    choices: Sequence[Mapping[str, Any]] = sample.reference.get("choices") or ()
    targets = sample.target if isinstance(sample.target, (list, tuple)) else (sample.target,)
    if targets and all(_is_index(target) for target in targets):
        return tuple(target for target in targets if target < len(choices))
    value = sample.reference.get("answer", {}).get("value")
    ids = value if isinstance(value, (list, tuple)) else (value,)
    by_id = [i for i, choice in enumerate(choices) if choice["id"] in ids]
    by_text = [i for i, choice in enumerate(choices) if choice.get("text") in targets]
    return tuple(by_id or by_text)


def _is_index(target: Any) -> bool:
    return isinstance(target, int) and not isinstance(target, bool) and target >= 0


def _choices(answer: Answer) -> Choices | None:
    """Read one request with all choices, or one request a choice; then those without question."""
    asked = [
        (exchange.request, exchange.reply)
        for exchange in answer.exchanges
        if isinstance(exchange.request, LogLikelihood) and isinstance(exchange.reply, Scored)
    ]
    if not asked:
        return None
    texts = [str(choice.get("text", "")) for choice in answer.sample.reference.get("choices") or ()]
    together = len(asked[0][0].continuations) > 1
    conditional = asked[:1] if together else asked[: len(texts) or len(asked)]
    rest = asked[len(conditional) :]
    continuations = [text for request, _ in conditional for text in request.continuations]
    return Choices(
        log_likelihoods=tuple(v for _, reply in conditional for v in reply.log_likelihoods),
        greedy=tuple(v for _, reply in conditional for v in reply.greedy),
        texts=tuple(_undelimited(continuations, texts) if together else texts or continuations),
        gold=gold_of(answer.sample),
        unconditional=tuple(v for _, reply in rest for v in reply.log_likelihoods),
    )


def _undelimited(continuations: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Take the delimiter off: what stands before the choice's own text, else white space."""
    known = texts if len(texts) == len(continuations) else [""] * len(continuations)
    return [
        text if text and continuation.endswith(text) else continuation.lstrip()
        for continuation, text in zip(continuations, known, strict=True)
    ]


def _document(answer: Answer) -> Document | None:
    for exchange in answer.exchanges:
        if isinstance(exchange.request, Rolling) and isinstance(exchange.reply, Scored):
            return Document(exchange.request.text, sum(exchange.reply.log_likelihoods))
    return None


def unconditional_of(choices: Choices) -> tuple[float, ...]:
    """Return the log likelihoods without the question.

    Raises
    ------
    ConfigError
        If the task did not ask for them.
    """
    if len(choices.unconditional) != len(choices.log_likelihoods):
        raise ConfigError(
            "acc_mutual_info needs the log likelihood of every choice without the question, got"
            f" {len(choices.unconditional)} for {len(choices.log_likelihoods)} choices: the task"
            " must ask for each choice after an empty context as well"
        )
    return choices.unconditional
