"""Sample files of lm-evaluation-harness: its lines to requests, replies and answers of ours."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from xpe.errors import DataError, DataFileError
from xpe.types import (
    Answer,
    Exchange,
    Generate,
    Generated,
    LogLikelihood,
    Reply,
    Request,
    Rolling,
    Sample,
    Scored,
)

Line = Mapping[str, Any]
_KEYS = frozenset({"doc_id", "doc", "target", "arguments", "resps", "filter", "metrics"})


def lines_of(path: Path) -> Iterator[tuple[Line, str]]:
    """Yield each line of a sample file, and where it stands.

    Raises
    ------
    DataFileError
        If the file cannot be read, or a line is no sample of the harness.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            for number, text in enumerate(lines, 1):
                where = f"{path}, line {number}"
                try:
                    line = json.loads(text)
                except ValueError as error:
                    raise DataFileError(f"{where}: not JSON: {error}") from error
                if not _is_sample(line):
                    raise DataFileError(  # noqa: TRY301
                        f"{where}: expected a sample of lm-evaluation-harness "
                        f"with {', '.join(sorted(_KEYS))}"
                    )
                yield line, where
    except DataFileError:
        raise
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror}") from error


def _is_sample(line: Any) -> bool:
    return isinstance(line, dict) and line.keys() >= _KEYS


def answer_of(line: Line, task: str, where: str) -> Answer:
    """Build the answer that a line holds; texts of choices are those that were scored.

    Raises
    ------
    DataError
        If requests and replies do not fit each other; says where.
    """
    requests = tuple(requests_of(line))
    replies = replies_of(requests, line["resps"], where)
    pairs = zip(requests, replies, strict=True)
    target, reference = _gold(line, requests)
    sample = Sample(task, int(line["doc_id"]), line["doc"], target, reference)
    return Answer(sample, tuple(Exchange(ask, got) for ask, got in pairs))


def requests_of(line: Line) -> Iterator[Request]:
    """Yield what was asked; choices of one context are one request."""
    asked = [tuple(one) for one in _arguments(line["arguments"])]
    for (_, several), group in groupby(asked, key=lambda one: (one[0], len(one))):
        arguments = list(group)
        if several == 1:
            yield from (Rolling(text) for (text,) in arguments)
        elif isinstance(arguments[0][1], Mapping):
            for place, (context, kwargs) in enumerate(arguments):
                n = len(line["resps"][place])
                until = kwargs.get("until") or ()
                stop = (until,) if isinstance(until, str) else tuple(until)
                yield from (Generate(context, stop=stop) for _ in range(n))
        else:
            yield LogLikelihood(arguments[0][0], tuple(text for _, text in arguments))


def replies_of(
    requests: Sequence[Request], resps: Sequence[Sequence[Any]], where: str
) -> tuple[Reply, ...]:
    """Deal the harness's responses, by instance and repeat, to requests of ours.

    Parameters
    ----------
    resps
        One list of repeats an instance; values, or their texts as in a file.

    Raises
    ------
    DataError
        If there are too few or too many.
    """
    repeats = [one for instance in resps for one in instance]
    texts = isinstance(requests[0], Generate) if requests else False
    left = iter(repeats if texts else [instance[0] for instance in resps])
    try:
        replies = tuple(_reply(request, left) for request in requests)
    except StopIteration:
        raise DataError(f"{where}: too few responses for {len(requests)} requests") from None
    if next(left, None) is not None:
        raise DataError(f"{where}: more responses than the {len(requests)} requests ask for")
    return replies


def _reply(request: Request, left: Iterator[Any]) -> Reply:
    if isinstance(request, Generate):
        return Generated(str(next(left)))
    if isinstance(request, LogLikelihood):
        pairs = [next(left) for _ in request.continuations]
        values = tuple(float(value) for value, _ in pairs)
        greedy = tuple(str(is_greedy) == "True" for _, is_greedy in pairs)
        return Scored(values, greedy, (0,) * len(pairs))
    value = next(left)
    value = value[0] if isinstance(value, (list, tuple)) else value
    return Scored((float(value),), (False,), (0,))


def _arguments(stated: Any) -> list[Any]:
    """Return the arguments of each request, whether from a file or from memory."""
    if not isinstance(stated, Mapping):
        return list(stated)
    return [[part[f"arg_{i}"] for i in range(len(part))] for part in stated.values()]


def _gold(line: Line, requests: Sequence[Request]) -> tuple[Any, dict[str, Any]]:
    target = line["target"]
    first = requests[0] if requests else None
    if not isinstance(first, LogLikelihood):
        several = _literal(target)
        found = several if isinstance(several, list) else str(target)
        return found, {"answer": {"type": "text", "value": found}}
    scored = [r for r in requests if isinstance(r, LogLikelihood) and r.context]
    together = len(first.continuations) > 1
    texts = first.continuations if together else tuple(str(r.context) for r in scored)
    stripped = [text.strip() for text in texts]
    choices = [{"id": str(place), "text": text} for place, text in enumerate(stripped)]
    golds = _literal(target)
    if str(target).strip() in stripped:
        golds = stripped.index(str(target).strip())
    answer = {"type": "choice", "value": [str(g) for g in golds] if _many(golds) else str(golds)}
    return golds, {"answer": answer, "choices": choices}


def _many(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _literal(text: Any) -> Any:
    """Read a number or list that was written as text."""
    if not isinstance(text, str):
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
