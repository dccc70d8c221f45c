"""The parts of the vLLM model that need no engine, fed with outputs written by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from xpe.errors import MissingExtraError
from xpe.models.endings import Ending
from xpe.models.scoring import Score
from xpe.models.vllm import Vllm
from xpe.models.vllm_scores import Call, Offers, Scoring, Way, proved
from xpe.models.vllm_start import cause_in
from xpe.models.vllm_texts import Writing
from xpe.models.windows import Row
from xpe.types import Generate, Generated

ALL = Offers(token_ids=True, cache_with_prompt=True, flat=False)
NEITHER = Offers(token_ids=False, cache_with_prompt=False, flat=False)


def test_without_vllm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message names the extra that brings vLLM."""
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtraError, match=r"xperteval\[vllm\]"):
        Vllm(path=str(tmp_path)).check()


def test_the_cause_in_a_log() -> None:
    """The last error of the engine, not what its parent says of it."""
    import io

    log = (
        "(EngineCore pid=1) ERROR [core.py] Traceback (most recent call last):\n"
        "(EngineCore pid=1) ERROR [core.py] ValueError: 0.3 GiB KV cache is needed.\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    assert cause_in(io.BytesIO(log.encode())) == "ValueError: 0.3 GiB KV cache is needed."
    assert cause_in(io.BytesIO(b"nothing")) == ""


# --- log likelihoods: an engine of a table ---------------------------------------------------

V = 50


def chance(seen: Sequence[int], token: int) -> float:
    """A log probability for a token after others; the likeliest is what 7 x their sum gives."""
    if token == likeliest(seen):
        return -0.5
    return -1.0 - ((hash(tuple(seen)) + 31 * token) % 997) / 100


def likeliest(seen: Sequence[int]) -> int:
    return (7 * sum(seen)) % V


class TableEngine:
    """Answers calls as the engine does: with a prefix cache in blocks, and padded ids."""

    def __init__(self, block: int = 4, wrong: frozenset[Way] = frozenset()) -> None:
        self.block, self.wrong = block, wrong
        self.cache: set[tuple[int, ...]] = set()
        self.calls: list[Call] = []

    def run(self, work: Scoring) -> Any:
        self.way = work.ways[0]
        todo = work.calls()
        while todo:
            call = todo.pop(0)
            todo += work.take(call, self.answer(call))
        return work.reply

    def answer(self, call: Call) -> Any:
        self.calls.append(call)
        prompt, params = call.prompt, call.params
        skip = params.get("skip_reading_prefix_cache", "prompt_logprobs" in params)
        cached = 0
        blocks = range(self.block, len(prompt), self.block)
        for end in () if skip else blocks:
            if prompt[:end] in self.cache:
                cached = end
        self.cache |= {prompt[:end] for end in blocks}
        # What was not computed holds what stood there before, as memory does.
        table = [None] + [
            {t: SimpleNamespace(logprob=chance(prompt[:p], t) if p > cached else -99.0,
                                rank=1 if likeliest(prompt[:p]) == t else 5)}
            for p, t in enumerate(prompt) if p
        ]  # fmt: skip
        ids = (
            params.get("logprob_token_ids")
            or sorted(range(V), key=lambda t: -chance(prompt, t))[: params.get("logprobs", 0)]
        )
        off = 1.0 if self.way in self.wrong else 0.0
        last = {t: SimpleNamespace(logprob=chance(prompt, t) + off) for t in ids}
        drawn = SimpleNamespace(token_ids=[likeliest(prompt)], logprobs=[last])
        return SimpleNamespace(
            outputs=[drawn],
            num_cached_tokens=cached,
            prompt_logprobs=table if "prompt_logprobs" in params else None,
        )


ROWS = [
    Row((1, 2, 3, 4, 5, 6, 7), 6),
    Row((1, 2, 3, 4, 5, 6, 8), 6),
    Row((1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13), 6),
    Row((1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14), 6),
    Row((1, 2, 3, 4, 5, 6), 6),
    Row((1, likeliest([1]), likeliest([1, likeliest([1])])), 1),
]


def wanted(row: Row) -> Score:
    places = range(row.start, len(row.tokens))
    return Score(
        sum(chance(row.tokens[:p], row.tokens[p]) for p in places),
        all(likeliest(row.tokens[:p]) == row.tokens[p] for p in places),
    )


@pytest.mark.parametrize("offers", [ALL, NEITHER])
@pytest.mark.parametrize("way", list(Way))
def test_scores_by_every_way(way: Way, offers: Offers) -> None:
    """Sums and greediness are the table's, cold and when the cache holds the continuations."""
    if way is Way.READS and offers is NEITHER:
        pytest.skip("such an engine reads no single tokens")
    engine = TableEngine()
    for _ in range(2):
        scores = engine.run(Scoring(ROWS, lambda _, s: tuple(s), (way, Way.WHOLE), offers, 4))
        for score, row in zip(scores, ROWS, strict=True):
            assert score.log_likelihood == pytest.approx(wanted(row).log_likelihood)
            assert score.greedy == wanted(row).greedy


def test_siblings_are_one_call() -> None:
    """Rows that differ in their last token are one call; the cache is left to be read."""
    engine = TableEngine()
    engine.run(Scoring(ROWS[:2], lambda _, s: tuple(s), (Way.CACHED,), ALL, 4))
    (call,) = engine.calls
    assert call.params["logprob_token_ids"] == [7, 8]
    assert "prompt_logprobs" not in call.params


def test_a_way_that_is_wrong_is_not_taken() -> None:
    """Only what agrees with the slow way is chosen."""
    both = proved(TableEngine().run, ALL, 4, 100, "float32")
    one = proved(TableEngine(wrong=frozenset({Way.CACHED})).run, ALL, 4, 100, "float32")
    assert both == (Way.CACHED, Way.READS, Way.WHOLE)
    assert one == (Way.READS, Way.WHOLE)
    assert proved(TableEngine().run, NEITHER, 4, 100, "float32") == (Way.WHOLE,)


# --- texts -----------------------------------------------------------------------------------


def written(text: str, finish: str, stop: str | int | None = None) -> Any:
    """One output of an engine whose tokens are characters."""
    drawn = SimpleNamespace(
        token_ids=[ord(c) for c in text], finish_reason=finish, stop_reason=stop
    )
    return SimpleNamespace(outputs=[drawn])


def writing(stop: tuple[str, ...], *, opened: str = "", seed: int | None = None) -> Writing:
    ending = Ending(stop, (("<think>", "</think>"),), opened)
    request = Generate("p", 40, stop, temperature=0.0 if seed is None else 1.0, seed=seed)
    return Writing(request, Row((1, 2), 2), ending, lambda t: "".join(map(chr, t)), frozenset({0}))


def test_a_stop_string_in_the_reasoning_goes_on() -> None:
    """The engine is asked to go on until the reasoning is closed, then with the stop strings."""
    work = writing(("\n",))
    (first,) = work.calls()
    assert first.params["stop"] == ["\n"]
    (second,) = work.take(first, written("<think>a\n", "stop", "\n"))
    assert second.prompt == (1, 2, *map(ord, "<think>a\n"))
    assert second.params["stop"] == ["</think>"]
    assert second.params["max_tokens"] == 31
    (third,) = work.take(second, written("b</think>", "stop", "</think>"))
    assert third.params["stop"] == ["\n"]
    assert work.take(third, written("42\nx", "stop", "\n")) == []
    assert work.reply == Generated("42", "stop", "a\nb", tokens=22, prompt_tokens=2)


def test_a_template_that_opens_the_reasoning() -> None:
    """Then only the end marker stops the engine at first."""
    (call,) = writing(("\n",), opened="<think>").calls()
    assert call.params["stop"] == ["</think>"]


@pytest.mark.parametrize(
    ("output", "reply"),
    [
        (written("hi\0", "stop"), Generated("hi", "stop", tokens=2, prompt_tokens=2)),
        (written("hi", "length"), Generated("hi", "length", tokens=2, prompt_tokens=2)),
        (written("a\nb", "stop", "\n"), Generated("a", "stop", tokens=3, prompt_tokens=2)),
    ],
)
def test_why_a_text_ended(output: Any, reply: Generated) -> None:
    """The end token belongs to no text; a stop string cuts; else the limit ended it."""
    work = writing(("\n",))
    (call,) = work.calls()
    assert work.take(call, output) == []
    assert work.reply == reply


def test_a_text_that_goes_on_draws_other_numbers() -> None:
    """The seed of a later part is another one, and the same each time."""
    parts = []
    for _ in range(2):
        work = writing(("\n",), seed=5)
        (first,) = work.calls()
        (second,) = work.take(first, written("<think>a\n", "stop", "\n"))
        parts.append((first.params["seed"], second.params["seed"]))
    assert parts[0] == parts[1]
    assert parts[0][0] == 5
    assert parts[0][1] != 5
