"""A retrieval service over HTTP: what is sent, what is read, what is tried again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from xpe.errors import ConfigError
from xpe.models._api_faults import Fault
from xpe.models.retrieval_http import Http, names_in
from xpe.types import Asked, Failure, Origin, Reply, Retrieve, Retrieved

sys.path.insert(0, str(Path(__file__).parent))
from fake_server import FakeServer, Said

ARGUMENTS = {"query": "收入", "top_k": 5, "user_id": 1}
ANSWER = [{"name": "a", "description": "x"}, {"name": "b", "description": "y"}]


def ask(script: Any, *, times: int = 1, **settings: Any) -> tuple[list[Reply], list[Any]]:
    """Ask a scripted service; returns its replies and the calls that it saw."""
    with FakeServer(script) as server:
        service = Http(url=f"{server.url}/retrieve", backoff=0.001, **settings)
        asked = [
            Asked(Origin("t", n, 1, 0), Retrieve("收入", 5, {**ARGUMENTS, "n": n}))
            for n in range(times)
        ]
        replies = [got[1] for got in service.reply(asked) if got]
        service.close()
        return replies, server.calls


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({}, {**ARGUMENTS, "n": 0}),
        ({"body": "query"}, {"query": "收入", "top_k": 5}),
        ({"body": "call", "tool": "r"}, {"name": "r", "arguments": {**ARGUMENTS, "n": 0}}),
    ],
)
def test_the_arguments_are_posted(settings: dict[str, Any], sent: dict[str, Any]) -> None:
    """As they are, as a call, or the query alone."""
    replies, calls = ask(lambda call: Said(ANSWER), **settings)

    assert replies == [Retrieved(("a", "b"))]
    assert [(call.method, call.path, call.body) for call in calls] == [
        ("POST", "/v1/retrieve", sent)
    ]


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER,
        ["a", "b"],
        {"results": ANSWER},
        {"code": 0, "data": ["a", "b"]},
        [{"type": "function", "function": one} for one in ANSWER],
        [{"name": "a", "score": 1, "price": 2}, {"name": "b"}],
    ],
)
def test_names_in_every_form(answer: Any) -> None:
    """Lists of tools, of objects with a name, of names; at the top or below it."""
    assert names_in(json.dumps(answer)) == ("a", "b")


@pytest.mark.parametrize("text", ["", "oops", '{"message": "ok"}', "3"])
def test_what_is_no_list_is_a_fault(text: str) -> None:
    """It must not pass for an empty result."""
    with pytest.raises(Fault):
        names_in(text)


@pytest.mark.parametrize(
    "first",
    [
        Said({}, status=500),
        Said({}, status=429, headers={"Retry-After": "0"}),
        Said(raw=b"[", status=200),
        Said(reset=True),
    ],
)
def test_what_may_pass_is_tried_again(first: Said) -> None:
    """At most three times; the answer counts."""
    replies, calls = ask(lambda call: Said(ANSWER) if call.nth == 3 else first)

    assert replies == [Retrieved(("a", "b"))]
    assert len(calls) == 4


def test_retries_end() -> None:
    """After three the request is a failure with its kind, and the others are answered."""

    def script(call: Any) -> Said:
        return Said({}, status=503) if call.body["n"] == 1 else Said(ANSWER)

    replies, calls = ask(script, times=3)
    failures = [reply for reply in replies if isinstance(reply, Failure)]

    assert len(calls) == 6
    assert [failure.kind for failure in failures] == ["server"]
    assert "attempt 4" in failures[0].message


def test_what_cannot_pass_is_not_tried_again() -> None:
    """A wrong address, a silence longer than the limit once there are no retries."""
    (reply,), calls = ask(lambda call: Said({}, status=404))
    assert (reply.kind, len(calls)) == ("not_found", 1)

    (reply,), _ = ask(lambda call: Said(ANSWER, delay=60), timeout=0.1, max_retries=0)
    assert reply.kind == "timeout"


def test_the_key_is_sent_and_told_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from the environment and stands in neither identity nor settings."""
    monkeypatch.setenv("XPE_TEST_KEY", "planted-key")
    _, calls = ask(lambda call: Said(ANSWER), api_key_env="XPE_TEST_KEY")
    echo = Said({"error": "no Bearer planted-key here"}, status=400)
    (failed,), _ = ask(lambda call: echo, api_key_env="XPE_TEST_KEY")
    service = Http(url="http://h/x", api_key_env="XPE_TEST_KEY")

    assert "Bearer planted-key" in calls[0].headers.values()
    assert "no Bearer ***" in failed.message
    assert "planted-key" not in f"{service} {service.identity} {failed}"


def test_what_is_wrong_is_said_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address, a variable that is not set, a password in an address."""
    monkeypatch.delenv("XPE_TEST_URL", raising=False)
    with pytest.raises(ConfigError, match="give the address"):
        Http().check()
    with pytest.raises(ConfigError, match="XPE_TEST_URL is not set"):
        Http(url_env="XPE_TEST_URL").check()
    monkeypatch.setenv("XPE_TEST_URL", "http://u:secret@h/x")
    with pytest.raises(ConfigError, match="may hold no user") as caught:
        Http(url_env="XPE_TEST_URL").check()
    assert "secret" not in str(caught.value)
