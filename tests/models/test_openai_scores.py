"""Log likelihoods over an API, against a server whose language model is a hand-made table.

Its tokens are words with the space before them; a token of n letters at place i (from 0) has
the log probability -n - i / 10 and is the most likely one if n is even.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from xpe.errors import ConfigError, EngineError
from xpe.models.openai import OpenAi
from xpe.types import Asked, Failure, Generate, LogLikelihood, Origin, Rolling, Scored

sys.path.insert(0, str(Path(__file__).parent))
from fake_server import FakeServer, Said, chat

IDS: dict[str, int] = {}
NO = Said({"error": {"message": "unknown field"}}, status=400)


def tokens(text, bos):
    words = re.findall(r" ?[^ ]+", text)
    return ["<s>", *words] if bos else words


def log_prob(token, place):
    return -len(token) - place / 10


def entries(words):
    """vLLM's form; the most likely token stands second where it is another."""
    return [
        None,
        *(
            {
                str(IDS.setdefault(word, 100 + len(IDS))): {
                    "logprob": log_prob(word, i),
                    "rank": 1 if len(word) % 2 == 0 else 2,
                    "decoded_token": word,
                }
            }
            for i, word in enumerate(words)
            if i > 0
        ),
    ]


def echoed(words):
    """The form of the old OpenAI API, with one generated token at the end."""
    return {
        "tokens": [*words, " new"],
        "token_logprobs": [None, *(log_prob(w, i) for i, w in enumerate(words) if i), -1.0],
        "top_logprobs": [
            None,
            *(
                {w: log_prob(w, i)} | ({} if len(w) % 2 == 0 else {"other": -0.1})
                for i, w in enumerate(words)
                if i
            ),
            {" new": -1.0},
        ],
    }


def completions(*, offers, bos=False):
    def script(call):
        body = call.body
        if call.method == "GET":
            return Said({"data": []})
        if "prompt_logprobs" in body and "prompt_logprobs" in offers:
            made = [{"prompt_logprobs": entries(tokens(p, bos))} for p in body["prompt"]]
        elif body.get("echo") and "echo" in offers:
            made = [{"logprobs": echoed(tokens(p, bos))} for p in body["prompt"]]
        elif body.get("logprobs") and not body.get("echo") and "top_logprobs" in offers:
            made = [{"logprobs": {"top_logprobs": [{" A": -0.5, " B": -1.5, "C": -2.5}]}}]
        else:
            return NO
        # Servers may answer the prompts of one request in any order.
        choices = [
            {"index": i, "text": "x", "finish_reason": "length"} | m for i, m in enumerate(made)
        ]
        return Said({"choices": choices[::-1]})

    return script


@pytest.fixture
def model():
    """Builds a model in front of a scripted server."""
    made = []

    def build(script, **settings):
        server = FakeServer(script).__enter__()
        settings = {"api": "completions", "backoff": 0.001, "timeout": 5} | settings
        one = OpenAi(model="m", base_url=server.url, **settings)
        made.append((server, one))
        return one

    yield build
    for server, one in made:
        one.close()
        server.__exit__()


def reply(model, request):
    ((_, got),) = filter(None, model.reply([Asked(Origin("t", 0, 0, 0), request)]))
    return got


@pytest.mark.parametrize("way", ["prompt_logprobs", "echo"])
@pytest.mark.parametrize("bos", [False, True])
def test_continuations_are_summed_over_their_tokens(model, way, bos):
    """By hand: ` is` at place 2 and ` blue` at 3, or ` red` at 2; one more with a BOS."""
    one = model(completions(offers={way}, bos=bos))
    got = reply(one, LogLikelihood("the sky", (" is blue", " red", " ruby")))
    at = 2 + bos
    assert got.log_likelihoods == pytest.approx(
        (-3 - at / 10 - 5 - (at + 1) / 10, -4 - at / 10, -5 - at / 10)
    )
    assert got.greedy == (False, True, False)
    assert got.tokens == (2, 1, 1)
    assert one.environment["logprobs"] == way


def test_space_at_the_end_of_a_context_goes_to_the_continuation(model):
    """As in the other backends; the answer is that of the text without it."""
    one = model(completions(offers={"prompt_logprobs"}))
    moved = reply(one, LogLikelihood("the sky ", ("is", "was")))
    assert moved == reply(one, LogLikelihood("the sky", (" is", " was")))


def test_a_token_that_reaches_over_the_border_counts_to_the_continuation(model):
    """`ski` + `ing` is one token: the cut goes back to the last one that both agree on."""
    one = model(completions(offers={"prompt_logprobs"}))
    got = reply(one, LogLikelihood("we ski", ("ing",)))
    assert got == Scored((-7 - 1 / 10,), (False,), (1,))


@pytest.mark.parametrize("way", ["prompt_logprobs", "echo"])
def test_whole_texts_are_scored_after_the_servers_first_token(model, way):
    """`<s> a bb`: places 1 and 2."""
    got = reply(model(completions(offers={way}, bos=True)), Rolling("a bb"))
    assert got.log_likelihoods == pytest.approx((-1 - 0.1 - 3 - 0.2,))
    assert got.tokens == (2,)


def test_whole_texts_without_a_first_token_need_a_prefix(model):
    """The error names the setting; with it the prefix is context."""
    with pytest.raises(ConfigError, match=r"model\.prefix"):
        reply(model(completions(offers={"echo"})), Rolling("a bb"))
    got = reply(model(completions(offers={"echo"}), prefix="<|end|>"), Rolling(" a bb"))
    assert got.log_likelihoods == pytest.approx((-2 - 0.1 - 3 - 0.2,))


def test_top_log_probabilities_serve_labels_of_one_token(model):
    """Exact tokens first, then those that differ by space; what is not there is a failure."""
    one = model(completions(offers={"top_logprobs"}))
    got = reply(one, LogLikelihood("Answer:", (" A", " B", " C")))
    assert got == Scored((-0.5, -1.5, -2.5), (True, False, False), (1, 1, 1))
    missing = reply(one, LogLikelihood("Answer:", (" A", " D")))
    assert isinstance(missing, Failure)
    assert missing.kind == "logprobs"
    with pytest.raises(ConfigError, match="whole texts"):
        one.check_log_likelihoods(whole_texts=True)


def test_chat_scores_the_beginning_of_the_assistants_turn(model):
    """vLLM's fields: the context with a new turn opened, then continued with each choice."""

    def script(call):
        body = call.body
        said = "".join(m["content"] for m in body["messages"])
        assert body.get("continue_final_message", False) == (
            body["messages"][-1]["role"] == "assistant"
        )
        return Said(chat("x") | {"prompt_logprobs": entries(tokens(said, bos=True))})

    one = model(script, api="chat")
    got = reply(one, LogLikelihood(({"role": "user", "content": "the sky"},), (" is blue", " red")))
    assert got.log_likelihoods == pytest.approx((-3 - 0.3 - 5 - 0.4, -4 - 0.3))


def test_chat_reads_the_most_likely_first_tokens(model):
    """OpenAI's form of top log probabilities."""
    tops = [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2.0}]

    def script(call):
        if "prompt_logprobs" in call.body:
            return NO
        assert call.body["top_logprobs"] == 20
        payload = chat("A", finish="length")
        payload["choices"][0]["logprobs"] = {"content": [{"token": "A", "top_logprobs": tops}]}
        return Said(payload)

    got = reply(model(script, api="chat"), LogLikelihood("q", ("A", " B")))
    assert got.log_likelihoods == (-0.1, -2.0)


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_server_without_log_probabilities_is_refused_before_anything_is_asked(model, api):
    """The check asks the server small questions only, and says what it tried."""
    answer = Said(chat("hi") | {"choices": [{**chat("hi")["choices"][0], "text": "hi"}]})
    one = model(lambda call: answer, api=api)
    with pytest.raises(ConfigError, match="top_logprobs"):
        one.check_log_likelihoods()
    with pytest.raises(ConfigError, match="no log likelihoods"):
        reply(one, LogLikelihood("a", (" b",)))
    assert reply(one, Generate("q")).text == "hi"


def test_none_refuses_without_asking(model):
    """`logprobs=none` is for servers that are known not to give them."""
    asked = []
    one = model(lambda call: asked.append(call) or NO, logprobs="none")
    with pytest.raises(ConfigError, match="logprobs=none"):
        one.check_log_likelihoods()
    assert not asked


def test_a_server_that_fails_the_probe_is_not_taken_for_one_that_cannot(model):
    """A wrong key is told as such."""
    one = model(lambda call: Said(status=401))
    with pytest.raises(EngineError, match="401"):
        one.check_log_likelihoods()
