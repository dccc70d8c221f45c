"""A model that gives recorded outputs: another system's predictions, or an earlier run's replies.

A line of a predictions file is `{"id": 3, "prediction": "…"}`: `prediction` is a list where a
document is asked several times, `log_likelihoods` (one a choice) stands in its place where
choices are scored, `task` says which task it belongs to where a file holds several. `doc_id` is
another name for `id`, the number of the document, counted from 0.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.errors import DataError, FieldTypeError, MissingFieldError, retrieves_nothing
from xpe.models.recordings import Line, Recordings
from xpe.records import from_json, to_json
from xpe.registry import STRICT
from xpe.text.reasoning import MARKERS, split_reasoning
from xpe.types import (
    Asked,
    Failure,
    Generate,
    Generated,
    LogLikelihood,
    Origin,
    Reply,
    Request,
    Retrieve,
    Retrieved,
    Rolling,
    Scored,
)

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Replay:
    """Answers by where a request comes from: task, document, turn and repeat.

    Parameters
    ----------
    path
        A JSONL of predictions, the folder of an earlier run, or its samples (folder or file).
    by
        `id`: a line names its document; `order`: line n is document n.
    reasoning
        Pairs of markers around reasoning, which is taken out of a prediction. Stop strings are
        not applied: what another system wrote is taken to be all that it meant to write.
    """

    recorded = True
    """Recorded outputs need no store around them."""

    path: str = Field(min_length=1)
    by: Literal["id", "order"] = "id"
    reasoning: tuple[tuple[str, str], ...] = MARKERS

    def check(self) -> None:
        """Read through all files once.

        Raises
        ------
        DataFileError
            There is no such file.
        DataError
            A line is broken, has no id, or an id that another line has; names file and line.
        """
        _ = self._recordings

    def close(self) -> None:
        """Close the files."""
        if (recordings := self.__dict__.pop("_recordings", None)) is not None:
            recordings.close()

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `types.Model`: the digest of all that is recorded."""
        return {
            "backend": "replay",
            "digest": self._recordings.digest,
            "by": self.by,
            "reasoning": [list(pair) for pair in self.reasoning],
        }

    def reply(self, asked: Iterable[Asked | None], /) -> Iterator[tuple[Asked, Reply] | None]:
        """Answer each request as it is pulled; see `types.Model`.

        Raises
        ------
        DataError
            Nothing, or too little, or the wrong kind of thing is recorded for a request.
        """
        places = _Places()
        for one in asked:
            if one is None:
                yield None
            else:
                line = self._recordings.line(one.origin)
                yield one, self._reply(one, line, places.of(one.origin))

    @cached_property
    def _recordings(self) -> Recordings:
        return Recordings.read(Path(self.path).expanduser(), by_order=self.by == "order")

    @cached_property
    def _warned(self) -> set[str]:
        """The tasks whose recorded prompts were found to differ."""
        return set()

    def _reply(self, asked: Asked, line: Line, place: int) -> Reply:
        if "replies" in line.content:
            recorded, reply = _kept(asked, line, place)
            if asked.origin.task not in self._warned and _is_other(recorded, asked.request):
                self._warned.add(asked.origin.task)
                log.warning(
                    "%s answers another prompt than this run's; its replies are taken all the same",
                    line.where,
                )
            return reply
        if isinstance(asked.request, Generate):
            return self._predicted(_nth(line, "prediction", place), line)
        if isinstance(asked.request, Retrieve):
            raise retrieves_nothing("a file of predictions")
        return _scored(asked.request, line, place)

    def _predicted(self, text: Any, line: Line) -> Reply:
        if text is None:
            return Failure("recorded", f"{line.where}: the prediction is null")
        if not isinstance(text, (str, int, float)):
            raise FieldTypeError(
                f"{line.where}: prediction must be text, got {type(text).__name__}"
            )
        split = split_reasoning(str(text), markers=self.reasoning)
        finish: Literal["stop", "length"] = "stop" if split.finished else "length"
        return Generated(split.answer, finish, split.reasoning)


class _Places:
    """Which of a document's replies is asked for: turns follow each other in the record."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, int, int]] = {}

    def of(self, origin: Origin) -> int:
        key = (origin.task, origin.doc_id)
        turn, before, most = self._seen.get(key, (0, 0, 0))
        if origin.turn > turn:
            turn, before, most = origin.turn, before + most, 0
        self._seen[key] = (turn, before, max(most, origin.repeat + 1))
        return before + origin.repeat


def _kept(asked: Asked, line: Line, place: int) -> tuple[Mapping[str, Any], Reply]:
    """Return request and reply of an earlier run; those of a judge are not the model's."""
    mine = [pair for pair in _pairs(line) if pair[0].get("to", "model") == asked.request.to]
    if place >= len(mine):
        raise _too_few(line, place, len(mine))
    recorded, plain = mine[place]
    reply: Reply = from_json(plain, line.where)
    wanted = _replied_by(asked.request)
    if not isinstance(reply, (wanted, Failure)):
        raise FieldTypeError(
            f"{line.where}: reply {place} is a {type(reply).__name__}, but the task asks for a "
            f"{wanted.__name__}; was it recorded with another kind of task?"
        )
    if isinstance(reply, Scored) and isinstance(asked.request, LogLikelihood | Rolling):
        _check_count(asked.request, len(reply.log_likelihoods), line)
    return recorded, reply


def _pairs(line: Line) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    requests, replies = line.content.get("requests"), line.content["replies"]
    if (
        not isinstance(requests, list)
        or not isinstance(replies, list)
        or len(requests) != len(replies)
        or not all(isinstance(part, dict) for part in (*requests, *replies))
    ):
        raise FieldTypeError(
            f"{line.where}: requests and replies must be lists of objects, as many of one as of "
            f"the other, got {requests!r:.60} and {replies!r:.60}"
        )
    return list(zip(requests, replies, strict=True))


def _is_other(recorded: Mapping[str, Any], request: Request) -> bool:
    """Whether the recorded request read other text than this one; settings may differ."""
    asked = json.loads(json.dumps(to_json(request), default=str))
    return any(
        recorded.get(name) != asked.get(name)
        for name in ("prompt", "context", "continuations", "text")
    )


def _replied_by(request: Request) -> type[Generated | Scored | Retrieved]:
    if isinstance(request, Generate):
        return Generated
    return Retrieved if isinstance(request, Retrieve) else Scored


def _scored(request: LogLikelihood | Rolling, line: Line, place: int) -> Scored:
    values = line.content.get("log_likelihoods")
    if isinstance(values, list) and values and isinstance(values[0], list):
        values = _nth(line, "log_likelihoods", place)
    elif place:
        raise _too_few(line, place, 1)
    if values is None:
        raise MissingFieldError(
            f"{line.where}: no log_likelihoods, but the task scores choices; a prediction fits "
            "generation tasks only"
        )
    values = values if isinstance(values, list) else [values]
    if not all(type(value) in {int, float} for value in values):
        raise FieldTypeError(f"{line.where}: log_likelihoods must be numbers, got {values!r:.80}")
    _check_count(request, len(values), line)
    greedy = _beside(line, "greedy", bool, len(values))
    tokens = _beside(line, "tokens", int, len(values))
    return Scored(tuple(map(float, values)), tuple(greedy), tuple(tokens))


def _beside(line: Line, name: str, of: type[T], n: int) -> list[T]:
    """Return what stands beside log likelihoods, one for each."""
    values = line.content.get(name) or [of()] * n
    if not (isinstance(values, list) and len(values) == n and {*map(type, values)} <= {of}):
        raise FieldTypeError(
            f"{line.where}: {name} must be a list of {n} {of.__name__}, got {values!r:.80}"
        )
    return values


def _check_count(request: Any, found: int, line: Line) -> None:
    wanted = len(request.continuations) if isinstance(request, LogLikelihood) else 1
    if found != wanted:
        raise DataError(f"{line.where}: {found} log likelihoods, but {wanted} are asked for")


def _nth(line: Line, name: str, place: int) -> Any:
    if name not in line.content:
        raise MissingFieldError(f"{line.where}: no field {name!r}, got {sorted(line.content)}")
    value = line.content[name]
    several = value if isinstance(value, list) else [value]
    if place >= len(several):
        raise _too_few(line, place, len(several))
    return several[place]


def _too_few(line: Line, place: int, found: int) -> DataError:
    return DataError(
        f"{line.where}: reply {place + 1} of this document is asked for, but {found} are "
        "recorded; a list in `prediction` holds one for each repeat"
    )
