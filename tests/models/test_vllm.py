"""The vLLM engine with the real small model, beside the same model in transformers."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from xpe.errors import ConfigError, EngineError, UnknownNameError
from xpe.models.smollm2 import SmolLM2
from xpe.models.vllm import Vllm
from xpe.models.vllm_scores import Offers, Way
from xpe.types import (
    Asked,
    Failure,
    Generate,
    Generated,
    LogLikelihood,
    Origin,
    Reply,
    Request,
    Rolling,
    Scored,
)

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

L = 256
HEADER = "\n\n".join(
    f"Question: Which river flows through town {i}?\nA. Seine\nB. Tiber\nAnswer: {'AB'[i % 2]}"
    for i in range(5)
)
LETTERS = [
    LogLikelihood(f"{HEADER}\n\nQuestion: Is {i} even?\nA. yes\nB. no\nAnswer:", (" A", " B"))
    for i in range(4)
]
NAMES = [
    LogLikelihood(
        f"{HEADER}\n\nQuestion: What is the capital of country {i}?\nAnswer:",
        (" New York", " New York City in the state of New York", " Paris", " 巴黎，法国的首都"),
    )
    for i in range(3)
]
OTHERS = [
    LogLikelihood("", ("Paris is a city", "巴黎")),
    LogLikelihood("The capital of France is ", ("Paris", "")),
    LogLikelihood("word " * 300, (" Paris", " the city of Paris")),
]


@pytest.fixture(scope="module")
def path(smol: SmolLM2) -> str:
    return str(smol.source.path)


@pytest.fixture(scope="module")
def hf() -> Iterator[SmolLM2]:
    """The same weights and the same L in transformers."""
    model = SmolLM2(max_length=L)
    yield model
    model.close()


@pytest.fixture(scope="module")
def model(path: str) -> Iterator[Vllm]:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    model = Vllm(path=path, max_length=L)
    model.load()
    yield model
    model.close()


@pytest.fixture
def serving(model: Vllm) -> Iterator[Any]:
    """What serves the model, with an empty prefix cache; what a test sets is set back."""
    serving = model._serving
    serving._engine.reset_prefix_cache()
    ways, offers = serving.ways, serving.offers
    yield serving
    serving.ways, serving.offers = ways, offers


class Counted:
    """Notes what the engine is sent."""

    def __init__(self, serving: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.prompts: list[list[int]] = []
        self.params: list[Any] = []
        add = serving._engine.add_request

        def noting(name: str, prompt: Any, params: Any, **more: Any) -> Any:
            self.prompts.append(prompt["prompt_token_ids"])
            self.params.append(params)
            return add(name, prompt, params, **more)

        monkeypatch.setattr(serving._engine, "add_request", noting)


@pytest.fixture
def sent(serving: Any, monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(serving, monkeypatch)


def close_to(found: Sequence[Reply], wanted: Sequence[Reply]) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert isinstance(a, Scored)
        assert isinstance(b, Scored)
        assert a.log_likelihoods == pytest.approx(b.log_likelihoods, abs=1e-3)
        assert (a.greedy, a.tokens, a.prompt_truncated) == (b.greedy, b.tokens, b.prompt_truncated)


# --- log likelihoods -----------------------------------------------------------------------------


def test_the_fastest_way_is_chosen(model: Vllm) -> None:
    """This engine reads shared prefixes from its cache, and that has been proved right."""
    assert model._serving._engine.vllm_config.cache_config.enable_prefix_caching
    assert model._serving.ways == (Way.CACHED, Way.READS, Way.WHOLE)
    assert model.environment["log_likelihoods"] == "cached prompt"


@pytest.mark.parametrize("way", list(Way))
def test_every_way_equals_transformers(
    model: Vllm, hf: SmolLM2, serving: Any, ask: Any, way: Way
) -> None:
    """Letters, names, no context, an empty continuation and a cut context, each way: 1e-3."""
    serving.ways = (way, Way.WHOLE)
    requests = [*LETTERS, *NAMES, *OTHERS]
    close_to(ask(model, *requests), ask(hf, *requests))


def test_an_engine_without_token_ids_gives_the_same(
    model: Vllm, hf: SmolLM2, serving: Any, ask: Any, sent: Counted
) -> None:
    """The twenty likeliest tokens, and the whole prompt for what is not among them: 1e-3."""
    serving.offers = Offers(token_ids=False, cache_with_prompt=False, flat=False)
    serving.ways = (Way.WHOLE,)
    requests = [*LETTERS, *NAMES, LogLikelihood("The capital of France is", (" Paris", " zx"))]
    close_to(ask(model, *requests), ask(hf, *requests))
    assert all(params.logprob_token_ids is None for params in sent.params)


def test_one_request_a_context(model: Vllm, ask: Any, sent: Counted) -> None:
    """However many single-token choices there are, the engine reads a context once."""
    ask(model, *LETTERS)
    assert len(sent.prompts) == len(LETTERS)
    assert all(params.max_tokens == 1 for params in sent.params)


def test_more_choices_than_the_engine_reads_at_once(
    model: Vllm, hf: SmolLM2, ask: Any, sent: Counted
) -> None:
    """200 one-letter choices are two requests; the scores are those of transformers."""
    tokens = [t for t in range(1000, 1400) if len(hf.prompts.encode_bare([one(hf, t)])[0]) == 1]
    choices = tuple(dict.fromkeys(one(hf, t) for t in tokens if one(hf, t).startswith(" ")))[:140]
    assert len(choices) > 128
    request = LogLikelihood("The capital of France is", choices)
    close_to(ask(model, request), ask(hf, request))
    assert len(sent.prompts) == 2


def one(model: SmolLM2, token: int) -> str:
    return str(model.prompts.tokenizer.decode([token]))


def test_requests_are_sorted_by_their_tokens(model: Vllm, ask: Any, sent: Counted) -> None:
    """Contexts that begin alike reach the engine side by side."""
    other = [LogLikelihood(f"Another text {i} is", (" A",)) for i in range(4)]
    ask(model, *(one for pair in zip(LETTERS, other, strict=True) for one in pair))
    assert sent.prompts == sorted(sent.prompts)


def test_a_continuation_that_stands_in_the_cache(
    model: Vllm, ask: Any, serving: Any, sent: Counted
) -> None:
    """Asked again, when the cache holds the continuation too, the scores are the same."""
    long = " and then she went home by train" * 6
    request = LogLikelihood(f"{HEADER} Once", (long, long + " again"))
    first = ask(model, request)
    before = len(sent.prompts)
    close_to(ask(model, request), first)
    assert len(sent.prompts) - before > before / 2, "nothing had to be asked again"


def test_rolling(model: Vllm, hf: SmolLM2, ask: Any, sent: Counted) -> None:
    """A text of several windows, all of them sent at once, scores as in transformers."""
    request = Rolling("The quick brown fox jumps over the lazy dog. 天下大势，分久必合。" * 30)
    (a,), (b,) = ask(model, request), ask(hf, request)
    assert isinstance(a, Scored)
    assert isinstance(b, Scored)
    assert a.tokens == b.tokens
    assert a.tokens[0] > 2 * L
    assert a.log_likelihoods[0] == pytest.approx(b.log_likelihoods[0], abs=1e-5 * a.tokens[0])
    assert len(sent.prompts) == -(-a.tokens[0] // L)


def test_no_room(model: Vllm, hf: SmolLM2, ask: Any) -> None:
    """What does not fit fails with the message that transformers models give, the rest goes on."""
    requests: list[Request] = [
        LogLikelihood("x", (" word" * (L + 1),)),
        Generate("x", max_tokens=L),
        *LETTERS[:1],
    ]
    found = ask(model, *requests)
    assert [reply.kind for reply in found[:2]] == ["context", "context"]
    assert found[:2] == ask(hf, *requests)[:2]
    assert isinstance(found[2], Scored)


# --- texts ---------------------------------------------------------------------------------------

TEXTS = [
    Generate("Once upon a time", max_tokens=20),
    Generate("Once upon a time", max_tokens=60, stop=(".", "\n")),
    Generate("问：法国的首都是哪里？\n答：", max_tokens=24, stop=("\n",)),
    Generate("word " * 300, max_tokens=8),
    Generate(({"role": "user", "content": "Say hello."},), max_tokens=40),
    Generate("", max_tokens=5),
]


def test_greedy_texts_equal_transformers(model: Vllm, hf: SmolLM2, ask: Any) -> None:
    """Text, reason of the end, token counts and the mark of a cut prompt are all equal."""
    assert ask(model, *TEXTS) == ask(hf, *TEXTS)


def test_stop_strings_apply_after_the_reasoning(path: str, hf: SmolLM2, model: Vllm) -> None:
    """A stop string inside the reasoning ends nothing: the text goes on where it was."""
    markers = (("time", "."),)
    request = Generate("Once upon a time", max_tokens=60, stop=(",", "\n"))
    pair = []
    for part in (SmolLM2(max_length=L, reasoning=markers), _with_markers(model, markers)):
        (found,) = [got for got in part.reply([Asked(Origin("t", 0, 0, 0), request)]) if got]
        pair.append(found[1])
    assert pair[0] == pair[1]
    assert "," in pair[1].reasoning
    assert "," not in pair[1].text


def _with_markers(model: Vllm, markers: tuple[tuple[str, str], ...]) -> Vllm:
    """The same engine behind other markers."""
    other = replace(model, reasoning=markers)
    other.__dict__["_serving"] = replace(model._serving, markers=markers)
    return other


def test_seeds(model: Vllm, ask: Any) -> None:
    """A sampled text is its seed's, whatever else is under way; repeats draw their own."""
    drawn = [Generate("Once upon a time", 16, temperature=1.0, seed=s) for s in (7, 8, 9)]
    together = ask(model, *drawn, *TEXTS)[:3]
    alone = [ask(model, request)[0] for request in reversed(drawn)][::-1]
    assert together == alone
    assert len({reply.text for reply in together}) == 3


def test_settings_of_the_engine(model: Vllm, ask: Any) -> None:
    """Sampling parameters that only this engine has are passed on; unknown ones get a hint."""
    (reply,) = ask(model, Generate("One two", 8, extra={"min_tokens": 8}))
    assert isinstance(reply, Generated)
    assert reply.tokens == 8
    with pytest.raises(UnknownNameError, match="'min_tokens'"):
        ask(model, Generate("One two", 8, extra={"min_token": 8}))
    (refused,) = ask(model, Generate("One two", 8, temperature=99.0, seed=1))
    assert isinstance(refused, Failure)
    assert refused.kind == "refused"


# --- the stream ----------------------------------------------------------------------------------


def test_replies_come_as_they_finish(model: Vllm) -> None:
    """Short texts are there before a long one that was asked first."""
    long = Generate("Once upon a time", max_tokens=200, extra={"ignore_eos": True})
    asked = [Asked(Origin("t", 0, 0, 0), long)]
    asked += [Asked(Origin("t", i, 0, 0), TEXTS[0]) for i in range(1, 5)]
    order = [got[0].origin.doc_id for got in model.reply(asked) if got is not None]
    assert order[-1] == 0
    assert sorted(order) == list(range(5))


def test_a_turn_that_waits_for_a_reply(model: Vllm) -> None:
    """A request that comes up by a reply is asked in the same stream; None is no end."""
    done: list[str] = []

    def source() -> Iterator[Asked | None]:
        for turn in range(3):
            while len(done) < turn:
                yield None
            yield Asked(Origin("t", 0, turn, 0), Generate("One two", 4))

    for got in model.reply(source()):
        if got is not None:
            done += [got[1].text]
    assert len(done) == 3


def test_what_nobody_waits_for_is_taken_back(model: Vllm) -> None:
    """A stream that is closed leaves no request in the engine."""
    asked = [Asked(Origin("t", i, 0, 0), Generate("One", 200)) for i in range(8)]
    stream = model.reply([*asked, Asked(Origin("t", 9, 0, 0), Generate("Two", 1))])
    next(got for got in stream if got is not None)
    stream.close()
    assert not model._serving._pending
    assert not model._serving._engine.has_unfinished_requests()


# --- what it is, and how it ends -----------------------------------------------------------------


def test_identity(model: Vllm, path: str) -> None:
    """The identity names engine version and weights, and no path; resources are not in it."""
    other = Vllm(path=path, max_length=L, engine={"gpu_memory_utilization": 0.5})
    assert other.identity == model.identity
    assert model.identity["vllm"]
    assert path not in str(model.identity)
    assert Vllm(path=path, engine={"kv_cache_dtype": "fp8"}).identity != model.identity


def test_arguments_with_a_setting_of_their_own(path: str) -> None:
    """They are refused under `engine`, and the setting is named."""
    with pytest.raises(ConfigError, match=r"model\.max_length"):
        Vllm(path=path, engine={"max_model_len": 2}).check()


def test_the_death_of_the_engine(path: str, model: Vllm) -> None:
    """Its process killed by pid: an error that says so, replies up to then are there.

    Closed, it leaves no process. The last test of this file: it ends the engine of all others.
    """
    asked = [Asked(Origin("t", i, 0, 0), Generate(f"Number {i}", 100)) for i in range(40)]
    asked[0] = Asked(Origin("t", 0, 0, 0), Generate("One", 2))
    stream = model.reply(asked)
    got: list[Any] = [next(one for one in stream if one is not None)]
    os.kill(model._serving.started.children[0].pid, signal.SIGKILL)
    with pytest.raises(EngineError, match="the engine died") as error:
        got.extend(one for one in stream if one is not None)
    assert error.value.exit_code == 1
    assert len(got) < 40
    model.close()
    assert not multiprocessing.active_children()
    assert "_serving" not in model.__dict__, "the next request has to start it again"
