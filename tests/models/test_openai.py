"""The model kind `openai` against a scripted server."""

from __future__ import annotations

import importlib.util
import itertools
import logging
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest

from xpe.converse import converse
from xpe.errors import ConfigError, EngineError, MissingExtraError
from xpe.models.openai import OpenAi
from xpe.store import Store, StoredModel
from xpe.types import Answer, Asked, Exchange, Failure, Generate, Generated, Origin, Sample

sys.path.insert(0, str(Path(__file__).parent))
from fake_server import FakeServer, Said, chat, last_words

KEY = "sk-planted-0123456789abcdef"


def asked(*requests):
    return [Asked(Origin("t", i, 0, 0), request) for i, request in enumerate(requests)]


def replies(model, requests):
    got = {one.origin.doc_id: reply for one, reply in filter(None, model.reply(requests))}
    return [got[i] for i in sorted(got)]


@pytest.fixture
def served():
    """Builds a server from a script and a model that asks it, with tiny waits."""
    open_now = []

    def build(script, **settings):
        server = FakeServer(script).__enter__()
        settings = {
            "model": "m",
            "base_url": server.url,
            "backoff": 0.005,
            "timeout": 60,
        } | settings
        model = OpenAi(**settings)
        open_now.extend([server, model])
        return server, model

    yield build
    for server, model in zip(open_now[::2], open_now[1::2], strict=True):
        model.close()
        server.__exit__()


def echoing(call):
    return Said(chat(f"re: {last_words(call)}"))


# --- the stream ----------------------------------------------------------------------------------


def test_answers_each_request_once_with_its_own_reply(served):
    """Sixty requests, eight under way, replies in any order."""
    server, model = served(
        lambda call: Said(echoing(call).json, delay=int(last_words(call)) % 7 / 500), concurrency=8
    )
    got = list(filter(None, model.reply(asked(*(Generate(str(i)) for i in range(60))))))
    texts = {one.request.prompt: reply.text for one, reply in got}
    assert texts == {str(i): f"re: {i}" for i in range(60)}
    assert len(got) == 60
    assert len(server.posts) == 60
    assert server.most <= 8


def test_pulls_only_while_there_is_room(served):
    """With four under way the fifth request is not pulled before a reply was taken."""
    pulled = itertools.count()
    last = [0]

    def source():
        for one in asked(*(Generate(str(i)) for i in range(40))):
            last[0] = next(pulled) + 1
            yield one

    _, model = served(echoing, concurrency=4)
    for taken, _ in enumerate(filter(None, model.reply(source())), start=1):
        assert last[0] <= taken + 3


def test_yields_none_when_nothing_can_be_asked_and_nothing_is_under_way(served):
    """Others get on, and what they bring up is asked."""
    _, model = served(echoing)
    source = iter([None, *asked(Generate("a")), None, None])
    stream = model.reply(source)
    assert next(stream) is None
    assert [reply.text for _, reply in filter(None, stream)] == ["re: a"]


def test_gives_others_a_turn_while_a_slow_reply_is_under_way(served):
    """A stream that waits for its server yields None in the meantime."""
    _, model = served(lambda call: Said(chat("late"), delay=1.0))
    stream = model.reply(asked(Generate("a")))
    assert next(stream) is None
    assert [reply.text for _, reply in filter(None, stream)] == ["late"]


def test_a_model_and_its_judge_work_side_by_side(served):
    """Thirty dialogues of two turns with two servers, both busy at once with several."""
    at_once = []

    def judging(call):
        at_once.append(asked_server.now)
        return Said(chat("7"), delay=0.3)

    asked_server, model = served(lambda call: Said(chat("said"), delay=0.2), concurrency=8)
    judge_server, judge = served(judging, concurrency=8)

    def dialogue(sample):
        (said,) = yield (Generate(f"q{sample.doc_id}"),)
        (mark,) = yield (Generate(f"judge {said.text} {sample.doc_id}", to="judge"),)
        return Answer(sample, (Exchange(Generate("q"), said), Exchange(Generate("j"), mark)))

    samples = [Sample("t", i, {}, None, {}) for i in range(30)]
    answers = list(
        converse(
            ((sample, dialogue(sample)) for sample in samples),
            {"model": model, "judge": judge},
            torch_seed=1,
            replied=lambda asked, reply: None,
        )
    )
    assert [answer.exchanges[1].reply.text for answer in answers] == ["7"] * 30
    assert min(asked_server.most, judge_server.most) >= 4
    assert max(at_once) >= 4


def test_ending_the_stream_early_cancels_what_is_under_way(served):
    """Closing the generator does not wait for a silent server, and the model works on after."""
    _, model = served(
        lambda call: Said(chat("x"), delay=30 if last_words(call) == "slow" else 0), timeout=60
    )
    stream = model.reply(asked(Generate("slow"), Generate("fast")))
    assert next(filter(None, stream))[1].text == "x"
    began = time.monotonic()
    stream.close()
    assert time.monotonic() - began < 15
    assert replies(model, asked(Generate("fast")))[0].text == "x"


def test_closes_its_thread_and_can_be_asked_again(served):
    """After close no thread of ours is left; the next reply starts a new one."""
    _, model = served(echoing)
    replies(model, asked(Generate("a")))
    model.close()
    assert not [t for t in threading.enumerate() if t.name == "xpe-api"]
    assert replies(model, asked(Generate("b")))[0].text == "re: b"


# --- faults --------------------------------------------------------------------------------------

BROKEN = {
    "rate_limit": Said({"error": {"message": "slow down"}}, status=429),
    "server": Said({"error": {"message": "oops"}}, status=500),
    "connection": Said(reset=True),
    "malformed": Said(raw=b'{"choices": [{"mess'),
    "empty": Said(chat("")),
    "timeout": Said(chat("late"), delay=60),
}
VARIANTS = {
    "unavailable": ("server", Said(status=503, raw=b"<html>busy</html>")),
    "none": ("empty", Said(chat(None))),
    "cut off": ("malformed", Said(chat("x"), short=True)),
    "html": ("malformed", Said(raw=b"<html>", headers={"Content-Type": "text/html"})),
    "list": ("malformed", Said([1, 2])),
    "no choices": ("malformed", Said({"choices": []})),
    "aborted": ("malformed", Said(chat("half", finish="abort"))),
    "error in 200": ("rate_limit", Said({"error": {"message": "quota", "code": 429}})),
}
CASES = {name: (name, said) for name, said in BROKEN.items()} | VARIANTS


@pytest.mark.parametrize("name", CASES)
def test_a_lasting_fault_is_a_failure_of_its_kind_after_three_retries(served, name):
    """The run goes on: the sample beside it is answered."""
    kind, said = CASES[name]
    server, model = served(
        lambda call: said if last_words(call) == "bad" else Said(chat("fine")),
        timeout=1.5 if kind == "timeout" else 60,
    )
    replies(model, asked(Generate("good")))
    bad, good = replies(model, asked(Generate("bad"), Generate("good")))
    assert isinstance(bad, Failure)
    assert bad.kind == kind
    assert good == Generated("fine", tokens=3, prompt_tokens=7)
    assert sum(last_words(call) == "bad" for call in server.posts) == 4
    assert model.usage["failures"] == {kind: 1}
    assert model.usage["retries"] == 3


@pytest.mark.parametrize("name", CASES)
def test_a_passing_fault_is_asked_again_and_answered(served, name):
    """Twice broken, then well: the answer is the answer."""
    kind, said = CASES[name]
    server, model = served(
        lambda call: said if call.nth < 2 else Said(chat("ok")),
        timeout=1.5 if kind == "timeout" else 60,
    )
    assert [reply.text for reply in replies(model, asked(Generate("a")))] == ["ok"]
    assert len(server.posts) == 3
    assert model.usage["retries"] == 2


FINAL = {
    "context": Said(
        {"error": {"message": "This model's maximum context length is 2048 tokens"}}, status=400
    ),
    "refused": Said({"error": {"message": "no", "code": "content_filter"}}, status=400),
    "bad_request": Said({"error": {"message": "unknown field"}}, status=422),
    "auth": Said({"error": {"message": "no"}}, status=403),
    "not_found": Said({"error": {"message": "no such model"}}, status=404),
}


@pytest.mark.parametrize("kind", FINAL)
def test_what_cannot_be_mended_is_not_asked_again(served, kind):
    """One request, one Failure, after another sample was answered."""
    server, model = served(
        lambda call: FINAL[kind] if last_words(call) == "bad" else Said(chat("fine"))
    )
    replies(model, asked(Generate("good")))
    (bad,) = replies(model, asked(Generate("bad")))
    assert (bad.kind, len(server.posts)) == (kind, 2)


def test_what_cannot_be_written_as_json_fails_alone(served):
    """Half a surrogate pair in one prompt does not end the run."""
    _, model = served(echoing)
    good, bad = replies(model, asked(Generate("good"), Generate("\ud800")))
    assert good.text == "re: good"
    assert bad.kind == "bad_request"


@pytest.mark.parametrize(
    ("finish", "message"),
    [("content_filter", {}), ("stop", {"refusal": "I may not"})],
)
def test_a_withheld_answer_is_refused(served, finish, message):
    """Neither a filter's nor a refusal's empty text is an answer, and neither is asked again."""
    server, model = served(lambda call: Said(chat(None, finish=finish, **message)))
    assert [reply.kind for reply in replies(model, asked(Generate("a")))] == ["refused"]
    assert len(server.posts) == 1


@pytest.mark.parametrize(("status", "named"), [(401, "XPE_TEST_KEY"), (404, "'m'")])
def test_a_run_that_cannot_succeed_stops_at_its_first_answer(served, monkeypatch, status, named):
    """A wrong key or model is one clear error, not ten thousand failures."""
    monkeypatch.setenv("XPE_TEST_KEY", KEY)
    said = Said({"error": {"message": f"Incorrect key {KEY}"}}, status=status)
    server, model = served(lambda call: said, api_key_env="XPE_TEST_KEY", concurrency=2)
    with pytest.raises(EngineError) as raised:
        replies(model, asked(*(Generate(str(i)) for i in range(100))))
    assert named in str(raised.value)
    assert len(server.posts) <= 4


def test_nobody_at_the_address_stops_the_run(monkeypatch):
    """The error names the variable that the address came from."""
    monkeypatch.setenv("XPE_TEST_URL", "http://127.0.0.1:9/v1")
    model = OpenAi(model="m", base_url_env="XPE_TEST_URL", backoff=0.001)
    with pytest.raises(EngineError, match="XPE_TEST_URL"):
        replies(model, asked(Generate("a")))
    with pytest.raises(EngineError, match="XPE_TEST_URL"):
        model.identity
    model.close()


def test_waits_as_long_as_the_server_asks(served):
    """Retry-After in seconds, though the backoff is 5 ms."""
    _, model = served(
        lambda call: (
            Said(status=429, headers={"Retry-After": "0.4"}) if call.nth == 0 else Said(chat("ok"))
        )
    )
    began = time.monotonic()
    assert replies(model, asked(Generate("a")))[0].text == "ok"
    assert 0.4 <= time.monotonic() - began < 20


def test_does_not_wait_longer_than_allowed(served):
    """A wait beyond `longest_wait` is a failure that says so."""
    server, model = served(
        lambda call: Said(status=429, headers={"Retry-After": "3600"}), longest_wait=10
    )
    (bad,) = replies(model, asked(Generate("a")))
    assert bad.kind == "rate_limit"
    assert "3600" in bad.message
    assert len(server.posts) == 1


def test_429_narrows_the_window_and_5xx_does_not(served):
    """A server that takes three at a time is asked three or four at a time before long."""

    def crowded(call):
        return Said(status=429) if server.now >= 3 else Said(chat("ok"), delay=0.004)

    server, model = served(crowded, concurrency=16)
    got = replies(model, asked(*(Generate(str(i)) for i in range(120))))
    assert sum(isinstance(reply, Generated) for reply in got) > 60
    assert model._client.window.limit < 12
    assert model.usage["rate_limited"] > 0

    server, model = served(
        lambda call: Said(status=500) if call.nth < 2 else Said(chat("ok")), concurrency=16
    )
    replies(model, asked(*(Generate(str(i)) for i in range(30))))
    assert model._client.window.limit == 16


def test_a_trickle_of_bytes_does_not_outlive_the_timeout(served):
    """The time-out is for the whole request, though a byte comes every fifth of a second."""
    _, model = served(lambda call: Said(chat("x"), drip=0.2), timeout=1, max_retries=0)
    began = time.monotonic()
    assert replies(model, asked(Generate("a")))[0].kind == "timeout"
    assert time.monotonic() - began < 20


def test_keeps_to_requests_per_minute(served):
    """600 a minute let 12 requests through in no less than a tenth of a second each."""
    _, model = served(echoing, requests_per_minute=600)
    began = time.monotonic()
    replies(model, asked(*(Generate(str(i)) for i in range(16))))
    assert time.monotonic() - began > 0.5


def test_faults_of_every_kind_leave_the_other_samples_alone(served):
    """5 % of each fault: all complete, at most three retries each, equal replies elsewhere."""
    sick = [*BROKEN.values(), Said(chat("cut", finish="length")), VARIANTS["unavailable"][1]]

    def script(call):
        i = int(last_words(call))
        return sick[i % 20] if i % 20 < len(sick) else echoing(call)

    server, model = served(script, concurrency=128, timeout=3)
    got = replies(model, asked(*(Generate(str(i)) for i in range(200))))
    assert len(got) == 200
    well = [reply.text for i, reply in enumerate(got) if i % 20 >= len(sick)]
    assert well == [f"re: {i}" for i in range(200) if i % 20 >= len(sick)]
    kinds = [getattr(reply, "kind", None) or reply.finish for reply in got[: len(sick)]]
    assert kinds == [*BROKEN, "length", "server"]
    assert max(call.nth for call in server.calls) == 3
    assert model.usage["failures"] == {kind: 10 + 10 * (kind == "server") for kind in BROKEN}


# --- secrets, settings, identity -----------------------------------------------------------------


def test_the_key_is_sent_and_is_nowhere_else(served, monkeypatch, caplog, tmp_path):
    """Planted in the environment and said back by the server, it is in no text of ours."""
    monkeypatch.setenv("XPE_TEST_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    server, model = served(
        lambda call: (
            Said({"error": {"message": f"bad {KEY}"}}, status=500)
            if last_words(call) == "bad"
            else Said(chat("ok"))
        ),
        api_key_env="XPE_TEST_KEY",
    )
    with Store(tmp_path / "store.sqlite") as store:
        got = list(StoredModel(model, store).reply(asked(Generate("ok"), Generate("bad"))))
    assert all(call.headers["authorization"] == f"Bearer {KEY}" for call in server.calls)
    server.script = lambda call: Said({"error": {"message": f"no {KEY}"}}, status=401)
    fresh = OpenAi(model="m", base_url=server.url, api_key_env="XPE_TEST_KEY")
    with pytest.raises(EngineError) as raised:
        replies(fresh, asked(Generate("x")))
    fresh.close()
    model.close()
    chain = "".join(traceback.format_exception(raised.value))
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    texts = [repr(model), str(dict(model.identity)), str(model.environment), repr(got), chain]
    assert not [text for text in (*texts, caplog.text) if KEY in text]
    assert KEY.encode() not in files
    assert any("***" in reply.message for _, reply in filter(None, got) if hasattr(reply, "kind"))


def test_without_a_key_none_is_taken_from_elsewhere(served, monkeypatch):
    """A key for OpenAI is not sent to whatever server."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server, model = served(echoing)
    replies(model, asked(Generate("a")))
    assert KEY not in server.posts[0].headers["authorization"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"api_key_env": "XPE_TEST_UNSET"}, "XPE_TEST_UNSET"),
        ({"base_url_env": "XPE_TEST_UNSET"}, "XPE_TEST_UNSET"),
        ({"base_url_env": "XPE_TEST_BAD"}, "XPE_TEST_BAD"),
    ],
)
def test_check_names_the_variable_and_not_its_value(monkeypatch, settings, said):
    """Before any data is read, and without asking the server."""
    monkeypatch.setenv("XPE_TEST_BAD", f"localhost?key={KEY}")
    with pytest.raises(ConfigError, match=said) as raised:
        OpenAi(model="m", **settings).check()
    assert KEY not in str(raised.value)


def test_check_names_the_extra_that_is_missing(monkeypatch):
    """Without the package the command that installs it is in the message."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"xperteval\[api\]"):
        OpenAi(model="m").check()


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://a/v1", "http://u:sesame@a/v1", "http://a/v1?k=sesame"]
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(url):
    """It would be written into config.yaml."""
    with pytest.raises(ValueError, match="base_url: ") as raised:
        OpenAi(model="m", base_url=url)
    assert "sesame" not in str(raised.value)


def test_an_address_may_name_the_endpoint(served):
    """QWEN_API_URL often ends in /chat/completions."""
    server, _ = served(echoing)
    other = OpenAi(model="m", base_url=f"{server.url}/chat/completions/")
    assert replies(other, asked(Generate("a")))[0].text == "re: a"
    other.close()


def test_identity_names_what_decides_a_reply_and_no_address(served):
    """The server's own name for the model is in it, its host only as a digest."""
    models = {"data": [{"id": "other", "root": "x"}, {"id": "m", "root": "Qwen/Qwen3-8B"}]}
    _, model = served(lambda call: Said(models), extra_body={"top_k": 5})
    identity = model.identity
    assert identity["served"] == "Qwen/Qwen3-8B"
    assert identity["extra_body"] == {"top_k": 5}
    assert "127.0.0.1" not in str(identity)
    _, local = served(lambda call: Said({"data": [{"id": "m", "root": "/models/mine"}]}))
    assert local.identity["served"] == "mine"


def test_usage_counts_tokens_and_their_price(served):
    """Two answers of 1,000 tokens in (400 cached) and 100 out, by a table of prices."""
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    _, model = served(
        lambda call: Said(chat("x") | {"usage": usage}),
        prices={"input": 1.0, "output": 10.0, "cached": 0.5},
    )
    replies(model, asked(Generate("a"), Generate("b")))
    assert model.environment["usage"] == {
        "requests": 2,
        "answers": 2,
        "retries": 0,
        "rate_limited": 0,
        "input_tokens": 2000,
        "output_tokens": 200,
        "cached_tokens": 800,
        "reasoning_tokens": 60,
        "failures": {},
        "cost": pytest.approx((1200 * 1.0 + 800 * 0.5 + 200 * 10.0) / 1e6),
    }
