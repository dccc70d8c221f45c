"""`xpe validate`: config and data checked, the first prompts shown, no model loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from xpe._job import read
from xpe.config import RunConfig, compose
from xpe.errors import DataError, MissingExtraError, WeightsError
from xpe.evaluators.base import TextEvaluator
from xpe.models.tokenized import Tokenized
from xpe.types import (
    Evaluator,
    Generate,
    LogLikelihood,
    Model,
    Prompt,
    Request,
    Retrieve,
    Rolling,
    Sample,
)

SHOWN = 2000


def validate(words: Sequence[str]) -> int:
    """Compose, load the data and print what the model would be asked first, for each task."""
    config = compose(read(words, multirun=False))
    for task in config.leaves:
        for line in _about(config, task):
            print(line)
    print(f"\nvalid. fingerprint {config.fingerprint}")
    return 0


def _about(config: RunConfig, task: Any) -> Iterator[str]:
    task.check()
    samples = task.samples()
    if not samples:
        raise DataError(f"task.{task.name}: the data holds no document to evaluate")
    yield f"\n=== {task.name}: {len(samples)} of {task.n_original} documents"
    yield f"scored by {', '.join(config.evaluators[task.name]) or 'nothing'}"
    first = samples[0]
    requests = next(task.dialogue(first))
    yield f"--- doc {first.doc_id}, target {_cut(repr(first.target), 200)}"
    for request in requests[:1]:
        yield from _shown(request, config.model)
    if len(requests) > 1:
        yield f"(and {len(requests) - 1} more requests)"
    if any(isinstance(request, Generate) for request in requests):
        for name, evaluator in config.evaluators[task.name].items():
            yield from _unusable(name, evaluator, samples)


def _unusable(name: str, evaluator: Evaluator, samples: Sequence[Sample]) -> Iterator[str]:
    """Say which right answers this evaluator cannot compare with: a run counts them as invalid."""
    if not isinstance(evaluator, TextEvaluator):
        return
    bad = [s for s in samples if evaluator.judge_text("", s.reference) == {"invalid": 1}]
    if bad:
        shown = ", ".join(f"doc {s.doc_id} ({_cut(repr(s.target), 40)})" for s in bad[:3])
        yield (
            f"!!! {name} cannot use the target of {len(bad)} of {len(samples)} documents: {shown};"
            " correct them, or choose another evaluator"
        )


def _shown(request: Request, model: Model) -> Iterator[str]:
    match request:
        case Generate():
            yield from _prompt(request.prompt, model, request.tools)
            yield f"--- generate up to {request.max_tokens} tokens, stop {list(request.stop)!r}"
        case LogLikelihood():
            yield from _prompt(request.context, model)
            yield "--- log likelihood of"
            yield from (f"  {continuation!r}" for continuation in request.continuations)
        case Rolling():
            yield from _prompt(request.text, model)
            yield "--- log likelihood of the whole text"
        case Retrieve():
            yield f"--- retrieve the best {request.top_k} for {request.query!r}"
        case _:
            assert_never(request)


def _prompt(prompt: Prompt, model: Model, tools: Sequence[Mapping[str, Any]] = ()) -> Iterator[str]:
    if isinstance(prompt, str):
        yield _cut(prompt)
        return
    if isinstance(model, Tokenized):
        try:
            yield _cut(model.render(prompt, tools))
        except (MissingExtraError, WeightsError) as error:
            yield f"(messages, for want of a tokenizer to render them: {error})"
        else:
            return
    for message in prompt:
        yield f"[{message['role']}] {_cut(str(message['content']))}"


def _cut(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
