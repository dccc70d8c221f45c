"""Requests, replies and answers as JSON, and back.

The store keeps replies in this form, and a line of a sample file is one answer in it, so that a
file is enough to compute every score again. Floats are written by repr and come back equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

from xpe.errors import DataError, DataFileError
from xpe.types import (
    Answer,
    Exchange,
    Failure,
    Generate,
    Generated,
    LogLikelihood,
    Measured,
    Reply,
    Request,
    Retrieve,
    Retrieved,
    Rolling,
    Sample,
    Scored,
)

_TYPES: dict[str, type[Any]] = {
    "generate": Generate,
    "loglikelihood": LogLikelihood,
    "rolling": Rolling,
    "retrieve": Retrieve,
    "generated": Generated,
    "scored": Scored,
    "retrieved": Retrieved,
    "failure": Failure,
}
_NAMES = {part: name for name, part in _TYPES.items()}


def to_json(part: Request | Reply) -> dict[str, Any]:
    """Return `{"type": …}` with every field that is not at its default."""
    plain: dict[str, Any] = {"type": _NAMES[type(part)]}
    for spec in fields(part):
        value = getattr(part, spec.name)
        if spec.default is MISSING or value != spec.default:
            plain[spec.name] = value
    for name in ("extra", "arguments"):
        if plain.get(name) == {}:
            del plain[name]
    return plain


def from_json(plain: Mapping[str, Any], where: str = "record") -> Any:
    """Build the request or reply that `to_json` wrote; `where` is named in errors."""
    part = _TYPES.get(str(plain.get("type")))
    if part is None:
        raise DataError(f"{where}: expected a type among {sorted(_TYPES)}, got {plain!r:.200}")
    values = {name: _tupled(value) for name, value in plain.items() if name != "type"}
    try:
        built = part(**values)
        sound = _SOUND.get(part, bool)(built)
    except TypeError as error:
        raise DataError(f"{where}: not a {plain['type']}: {error}") from error
    if not sound:
        raise DataError(f"{where}: not a {plain['type']}: {plain!r:.200}")
    return built


def _is_sound_score(reply: Scored) -> bool:
    columns = (reply.log_likelihoods, reply.greedy, reply.tokens)
    return (
        all(isinstance(column, tuple) for column in columns)
        and len({*map(len, columns)}) == 1
        and all(type(value) in {int, float} for value in reply.log_likelihoods)
        and all(type(value) is int for value in reply.tokens)
    )


_SOUND: Mapping[type[Any], Callable[[Any], bool]] = {
    Scored: _is_sound_score,
    Generated: lambda reply: isinstance(reply.text, str),
}
"""Whether what was read has the types that scores are computed from."""


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON, as hex."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def record(
    answer: Answer, measured: Mapping[str, Measured], *, log_samples: bool = True
) -> dict[str, Any]:
    """Return one line of a sample file; with `log_samples` off only ids, hashes and numbers.

    `doc_hash` and `target_hash` are the harness's (SHA-256 of the document as indented JSON, of
    the target as text); `prompt_hash` is that of the first prompt.
    """
    sample = answer.sample
    line: dict[str, Any] = {"doc_id": sample.doc_id}
    if log_samples:
        line |= {
            "doc": sample.doc,
            "target": sample.target,
            "reference": sample.reference,
            "requests": [to_json(exchange.request) for exchange in answer.exchanges],
            "replies": [to_json(exchange.reply) for exchange in answer.exchanges],
        }
    if sample.cluster is not None:
        line["cluster"] = sample.cluster
    line["finish"] = [generated.finish for generated in answer.generated]
    line["truncated"] = answer.truncated
    line["measured"] = {name: _loggable(found, log_samples) for name, found in measured.items()}
    line |= {
        "doc_hash": _sha(json.dumps(sample.doc, indent=2, default=str, ensure_ascii=False)),
        "prompt_hash": _sha(_first_prompt(answer)),
        "target_hash": _sha(str(sample.target)),
    }
    return line


class SampleLine(NamedTuple):
    """A line of a sample file: where it stands, what it holds, and the text itself."""

    where: str
    content: Mapping[str, Any]
    text: str


def sample_lines(path: Path, expected: int) -> Iterator[SampleLine]:
    """Yield the lines of a sample file.

    Parameters
    ----------
    path
        `samples/<task>.jsonl` of a run.
    expected
        How many samples the run answered.

    Raises
    ------
    DataFileError
        The file is unreadable, cut, has a document twice, or a line is no object with a doc id.
    """
    seen: set[int] = set()
    for number, text in enumerate(_texts(path), 1):
        where = f"{path}, line {number}"
        try:
            line = json.loads(text)
        except ValueError as error:
            raise DataFileError(f"{where}: not JSON: {error}") from error
        doc_id = line.get("doc_id") if isinstance(line, dict) else None
        if not isinstance(doc_id, int):
            raise DataFileError(f"{where}: expected an object with a number as doc_id")
        if doc_id in seen:
            raise DataFileError(f"{where}: document {doc_id} is there twice")
        seen.add(doc_id)
        yield SampleLine(where, line, text)
    if len(seen) != expected:
        raise DataFileError(
            f"{path}: {len(seen)} samples, but the run answered {expected}; bring back the file "
            "that the run wrote"
        )


def _texts(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as lines:
            yield from lines
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path} is not UTF-8: {error}") from error


def answer_of(line: Mapping[str, Any], task: str, where: str = "record") -> Answer:
    """Build the answer that `record` wrote.

    Raises
    ------
    DataError
        The line was written without texts, or is not what `record` writes; names `where`.
    """
    if "requests" not in line:
        raise DataError(
            f"{where}: no requests and replies; the run was made with log_samples=false, "
            "which keeps hashes only"
        )
    try:
        return _answer_of(line, task, where)
    except DataError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}: not a sample as xpe writes it: {error!r}") from error


def _answer_of(line: Mapping[str, Any], task: str, where: str) -> Answer:
    sample = Sample(
        task=task,
        doc_id=line["doc_id"],
        doc=line["doc"],
        target=line["target"],
        reference=line["reference"],
        cluster=line.get("cluster"),
    )
    pairs = zip(line["requests"], line["replies"], strict=True)
    exchanges = (Exchange(from_json(ask, where), from_json(got, where)) for ask, got in pairs)
    return Answer(sample, tuple(exchanges))


def _loggable(found: Measured, log_samples: bool) -> dict[str, Any]:
    return {k: v for k, v in found.items() if log_samples or isinstance(v, (int, float))}


def _first_prompt(answer: Answer) -> str:
    if not answer.exchanges:
        return ""
    match answer.exchanges[0].request:
        case Generate(prompt=prompt) | LogLikelihood(context=prompt):
            return prompt if isinstance(prompt, str) else canonical(prompt)
        case Rolling(text=text) | Retrieve(query=text):
            return text


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _tupled(value: Any) -> Any:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return tuple(_tupled(item) for item in value) if is_list else value
