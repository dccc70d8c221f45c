"""Recorded outputs are given back by task, document, turn and repeat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xpe.errors import DataError, DataFileError, FieldTypeError, MissingFieldError
from xpe.models.replay import Replay
from xpe.records import record
from xpe.types import (
    Answer,
    Asked,
    Exchange,
    Failure,
    Generate,
    Generated,
    LogLikelihood,
    Origin,
    Reply,
    Request,
    Rolling,
    Sample,
    Scored,
)


def _write(path: Path, *lines: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return str(path)


def _asked(doc_id: int, request: Request | None = None, *, turn: int = 0, repeat: int = 0) -> Asked:
    return Asked(Origin("t", doc_id, turn, repeat), request or Generate("q"))


def _replies(model: Replay, *asked: Asked) -> list[Reply]:
    try:
        return [pair[1] for pair in model.reply(asked) if pair is not None]
    finally:
        model.close()


def test_by_id(tmp_path: Path) -> None:
    """Lines may come in any order, and ids under either name, as numbers or digits."""
    path = _write(
        tmp_path / "p.jsonl",
        {"doc_id": 1, "prediction": "b"},
        {"id": "0", "prediction": "a"},
        "",
        {"id": 2, "prediction": 7},
    )
    got = _replies(Replay(path=path), _asked(0), _asked(1), _asked(2))
    assert got == [Generated("a"), Generated("b"), Generated("7")]


def test_by_order(tmp_path: Path) -> None:
    """Line n is document n, whatever ids are there."""
    path = _write(tmp_path / "p.jsonl", {"id": "x", "prediction": "a"}, {"prediction": "b"})
    assert _replies(Replay(path=path, by="order"), _asked(1), _asked(0)) == [
        Generated("b"),
        Generated("a"),
    ]


def test_repeats_and_turns(tmp_path: Path) -> None:
    """A list holds the repeats of a turn, and then those of the next."""
    path = _write(tmp_path / "p.jsonl", {"id": 0, "prediction": ["a", "b", "c"]})
    asked = (_asked(0), _asked(0, repeat=1), _asked(0, turn=1))
    assert [r.text for r in _replies(Replay(path=path), *asked) if isinstance(r, Generated)] == [
        "a",
        "b",
        "c",
    ]
    with pytest.raises(DataError, match=r"p\.jsonl:1: reply 4 .* 3 are recorded"):
        _replies(Replay(path=path), _asked(0, repeat=3))


def test_a_task_of_its_own_goes_first(tmp_path: Path) -> None:
    """A line that names its task answers that task only."""
    path = _write(
        tmp_path / "p.jsonl",
        {"task": "t", "id": 0, "prediction": "mine"},
        {"task": "u", "id": 0, "prediction": "other"},
    )
    assert _replies(Replay(path=path), _asked(0)) == [Generated("mine")]


def test_reasoning_and_null(tmp_path: Path) -> None:
    """Reasoning is split off; a null prediction is a failed request and not an empty answer."""
    path = _write(
        tmp_path / "p.jsonl",
        {"id": 0, "prediction": "<think>x</think>y"},
        {"id": 1, "prediction": "<think>x"},
        {"id": 2, "prediction": None},
    )
    first, second, third = _replies(Replay(path=path), _asked(0), _asked(1), _asked(2))
    assert first == Generated("y", reasoning="x")
    assert second == Generated("", finish="length", reasoning="x")
    assert isinstance(third, Failure)
    assert third.kind == "recorded"


SCORED = {
    "type": "scored",
    "log_likelihoods": [-1.0, -2.0],
    "greedy": [True, False],
    "tokens": [1, 1],
}
ASKED = {"type": "loglikelihood", "context": "q", "continuations": ["a", "b"]}


@pytest.mark.parametrize(
    "line",
    [
        {"log_likelihoods": [-1, -2], "tokens": "ab"},
        {"log_likelihoods": [-1, -2], "tokens": [1]},
        {"log_likelihoods": [-1, -2], "greedy": [1, 0]},
        {"log_likelihoods": [True, -2]},
        {"log_likelihoods": {"a": -1}},
        {"replies": []},
        {"replies": 3, "requests": [ASKED]},
        {"replies": [SCORED], "requests": [3]},
        {"replies": [SCORED], "requests": []},
        {"replies": [SCORED | {"log_likelihoods": "ab"}], "requests": [ASKED]},
        {"replies": [SCORED | {"tokens": 3}], "requests": [ASKED]},
        {"replies": [SCORED | {"tokens": [1]}], "requests": [ASKED]},
        {"replies": [SCORED | {"log_likelihoods": [None, -1.0]}], "requests": [ASKED]},
        {"replies": [{"type": "score"}], "requests": [ASKED]},
    ],
    ids=str,
)
def test_a_malformed_recording_is_named(tmp_path: Path, line: dict[str, Any]) -> None:
    """Each kind of damage is one error with file and line, not a wrong number or a traceback."""
    path = _write(tmp_path / "p.jsonl", {"id": 0, **line})
    with pytest.raises(DataError, match=r"p\.jsonl:1: "):
        _replies(Replay(path=path), _asked(0, LogLikelihood("q", ("a", "b"))))


def test_log_likelihoods(tmp_path: Path) -> None:
    """Recorded log likelihoods answer choices and texts; their number must fit."""
    path = _write(
        tmp_path / "p.jsonl",
        {"id": 0, "log_likelihoods": [-1.5, -2], "greedy": [True, False], "tokens": [1, 2]},
        {"id": 1, "log_likelihoods": [-3.25]},
        {"id": 2, "prediction": "a"},
        {"id": 3, "log_likelihoods": [[-1, -2], [-3, -4]]},
    )
    choices = LogLikelihood("q", ("a", "b"))
    got = _replies(
        Replay(path=path),
        _asked(0, choices),
        _asked(1, Rolling("x")),
        _asked(3, choices, repeat=1),
    )
    assert got[0] == Scored((-1.5, -2.0), (True, False), (1, 2))
    assert got[1] == Scored((-3.25,), (False,), (0,))
    assert got[2] == Scored((-3.0, -4.0), (False, False), (0, 0))
    with pytest.raises(DataError, match=r":2: 1 log likelihoods, but 2 are asked"):
        _replies(Replay(path=path), _asked(1, choices))
    with pytest.raises(MissingFieldError, match=r":3: no log_likelihoods"):
        _replies(Replay(path=path), _asked(2, choices))


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        (['{"id": 0', {"id": 1}], DataError, r"p\.jsonl:1: not JSON"),
        ([{"id": 0}, [1]], FieldTypeError, r"p\.jsonl:2: expected an object, got list"),
        ([{"prediction": "a"}], MissingFieldError, r"p\.jsonl:1: no field id"),
        ([{"id": "q7"}], FieldTypeError, r"p\.jsonl:1: id must be the number .* 'q7'"),
        ([{"id": 4}, {"id": 5}, {"id": 4}], DataError, r"p\.jsonl:3: id 4 .*p\.jsonl:1"),
    ],
)
def test_bad_lines(tmp_path: Path, lines: list[Any], error: type[DataError], message: str) -> None:
    """A wrong line is found by `check`, before anything is asked, and is named."""
    path = _write(tmp_path / "p.jsonl", *lines)
    with pytest.raises(error, match=message):
        Replay(path=path).check()


def test_missing(tmp_path: Path) -> None:
    """A missing file, an empty folder and a missing id are errors that name them."""
    with pytest.raises(DataFileError, match="no such file"):
        Replay(path=str(tmp_path / "none.jsonl")).check()
    with pytest.raises(DataFileError, match=r"no \*\.jsonl"):
        Replay(path=str(tmp_path)).check()
    path = _write(tmp_path / "p.jsonl", {"id": 0, "prediction": "a"})
    with pytest.raises(DataError, match="nothing is recorded for id 3 of task t"):
        _replies(Replay(path=path), _asked(3))


def test_samples_of_a_run(tmp_path: Path) -> None:
    """The sample files of a run give the same replies again; a judge's are passed over."""
    choices = LogLikelihood("q", ("a", "b"))
    exchanges = (
        Exchange(Generate("q"), Generated("one", tokens=3)),
        Exchange(Generate("j", to="judge"), Generated("10 points")),
        Exchange(choices, Scored((-0.1, -2.0), (True, False), (1, 1))),
        Exchange(Generate("q2"), Failure("server", "gone")),
    )
    answer = Answer(Sample("t", 4, {"x": 1}, "a", {}), exchanges)
    _write(tmp_path / "run" / "samples" / "t.jsonl", record(answer, {}))
    asked = (_asked(4), _asked(4, choices, turn=1), _asked(4, turn=2))
    wanted = [exchanges[i].reply for i in (0, 2, 3)]
    for path in ("run", "run/samples", "run/samples/t.jsonl"):
        assert _replies(Replay(path=str(tmp_path / path)), *asked) == wanted
    with pytest.raises(FieldTypeError, match="reply 0 is a Generated"):
        _replies(Replay(path=str(tmp_path / "run")), _asked(4, choices))


def test_streams(tmp_path: Path) -> None:
    """A request is answered before the next one is pulled."""
    path = _write(tmp_path / "p.jsonl", *({"id": i, "prediction": str(i)} for i in range(9)))
    pulled: list[int] = []

    def source() -> Iterator[Asked | None]:
        for i in range(9):
            pulled.append(i)
            yield _asked(i)
        yield None

    model = Replay(path=path)
    stream = model.reply(source())
    next(stream)
    assert pulled == [0]
    assert list(stream)[-1] is None
    model.close()


def test_identity_follows_the_content(tmp_path: Path) -> None:
    """Another prediction is another identity; another place is not."""
    first = Replay(path=_write(tmp_path / "a.jsonl", {"id": 0, "prediction": "a"}))
    same = Replay(path=_write(tmp_path / "b.jsonl", {"id": 0, "prediction": "a"}))
    other = Replay(path=_write(tmp_path / "c.jsonl", {"id": 0, "prediction": "b"}))
    assert first.identity == same.identity
    assert first.identity != other.identity
    for model in (first, same, other):
        model.close()
