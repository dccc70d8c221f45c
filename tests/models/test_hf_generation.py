"""Generation by the real small model, against transformers' own, and sampling by seed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpe.errors import ConfigError, UnknownNameError
from xpe.models.decoding import Decoder, drawn
from xpe.models.smollm2 import SmolLM2
from xpe.types import Asked, Failure, Generate, Generated, LogLikelihood, Origin, Rolling

PROMPTS = (
    "The capital of France is",
    "Once upon a time, in a land far away, there lived a",
    "从前有座山，山里有座庙，",
)


@pytest.mark.model
def test_greedy_equals_transformers(smol: SmolLM2, reference: Any, ask: Any) -> None:
    """Three prompts of unlike length in one batch write what each writes alone."""
    replies = ask(smol, *(Generate(prompt, max_tokens=12) for prompt in PROMPTS))
    for prompt, reply in zip(PROMPTS, replies, strict=True):
        assert reply.text == reference.generated(prompt, 12)
        assert reply.prompt_tokens == len(reference.tokenizer(prompt)["input_ids"])


@pytest.mark.model
def test_a_shared_header(smol: SmolLM2, reference: Any, ask: Any) -> None:
    """Prompts behind one long header write what each writes alone."""
    header = "".join(f"{i} plus {i} is {2 * i}.\n" for i in range(8))
    prompts = [f"{header}{i} plus {i} is" for i in (3, 12)]
    replies = ask(smol, *(Generate(prompt, max_tokens=4) for prompt in prompts))
    for prompt, reply in zip(prompts, replies, strict=True):
        assert reply.text == reference.generated(prompt, 4)


@pytest.mark.model
def test_sampled_alone_and_in_a_batch(smol: SmolLM2, ask: Any) -> None:
    """A sampled text follows from its own seed, whatever it shares a batch with."""
    requests = [
        Generate(PROMPTS[i % 2], max_tokens=8, temperature=0.9, top_p=0.95, top_k=50, seed=i)
        for i in range(4)
    ]
    together = ask(smol, *requests)
    assert ask(smol, requests[2]) == [together[2]]
    assert len({reply.text for reply in together}) == 4


@pytest.mark.model
def test_stop_strings(smol: SmolLM2, reference: Any, ask: Any) -> None:
    """A text ends before its first stop string, also one over several tokens."""
    text = reference.generated(PROMPTS[1], 12)
    stop = text[8:14]
    stopped, free = ask(
        smol,
        Generate(PROMPTS[1], max_tokens=12, stop=(stop, "never seen")),
        Generate(PROMPTS[1], max_tokens=12),
    )
    assert stopped.text == text[: text.index(stop)]
    assert stopped.finish == "stop"
    assert stopped.tokens < 12
    assert free.finish == "length"
    assert free.tokens == 12


@pytest.mark.model
def test_chat_ends_by_itself(smol: SmolLM2, ask: Any) -> None:
    """An assistant's turn ends at its end token, which is not part of the text."""
    user = ({"role": "user", "content": "What is 2+2? Answer with one number."},)
    (reply,) = ask(smol, Generate(user, max_tokens=40))
    assert reply.finish == "stop"
    assert "<|im_end|>" not in reply.text
    assert "4" in reply.text


@pytest.mark.model
def test_room(smol: SmolLM2, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long prompt keeps its end and says so; no room at all is a failure."""
    model = SmolLM2(max_length=12)
    monkeypatch.setitem(model.__dict__, "_engine", None)
    engine = type(smol._engine)
    monkeypatch.setitem(
        model.__dict__,
        "_engine",
        engine(model.prompts, smol._engine.scorer, smol._engine.decoder, ()),
    )
    long = "one two three four five six seven eight nine ten eleven"
    cut, fits, never = ask(
        model,
        Generate(long, max_tokens=4),
        Generate("eight nine ten", max_tokens=4),
        Generate("one", max_tokens=12),
    )
    assert cut.prompt_truncated
    assert cut.prompt_tokens == 8
    assert not fits.prompt_truncated
    assert isinstance(never, Failure)
    assert never.kind == "context"


@pytest.mark.model
def test_memory(smol: SmolLM2, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory with three prompts at once: halves are tried, and all are answered."""
    texts = Decoder.texts
    sizes: list[int] = []

    def scarce(self: Decoder, requests: Any, *rest: Any) -> list[Generated]:
        sizes.append(len(requests))
        if len(requests) > 1:
            raise RuntimeError("CUDA out of memory")
        return texts(self, requests, *rest)

    monkeypatch.setattr(Decoder, "texts", scarce)
    replies = ask(smol, *(Generate(prompt, max_tokens=1) for prompt in PROMPTS))
    assert all(isinstance(reply, Generated) for reply in replies)
    assert sorted(sizes) == [1, 1, 1, 2, 3]


@pytest.mark.model
def test_unknown_setting(smol: SmolLM2) -> None:
    """A setting that the loop does not know stops the run, with the nearest one it knows."""
    asked = Asked(Origin("t", 0, 0, 0), Generate("x", extra={"top_kk": 3}))
    with pytest.raises(UnknownNameError, match="top_k"):
        smol.plan([asked])


@pytest.mark.model
def test_messages_need_a_template(smol: SmolLM2, monkeypatch: pytest.MonkeyPatch) -> None:
    """A base model's tokenizer has no template: the message says what to set."""
    model = SmolLM2()
    monkeypatch.setattr(model.prompts.tokenizer, "chat_template", None)
    assert not model.has_chat_template
    with pytest.raises(ConfigError, match="apply_chat_template=false"):
        model.render(({"role": "user", "content": "Hi"},))


@pytest.mark.model
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_a_plan_covers_everything_once(smol: SmolLM2, data: st.DataObject) -> None:
    """Batches hold one kind and one set of settings; order and content follow from the input."""
    text = st.sampled_from(["", "x", "Hello there, how are you", "第一句话。", "a " * 40])
    request = st.one_of(
        st.builds(LogLikelihood, text, st.tuples(text, text)),
        st.builds(Rolling, text),
        st.builds(Generate, text, st.sampled_from([1, 5]), st.sampled_from([(), ("\n",)])),
    )
    asked = [
        Asked(Origin("t", i, 0, 0), one)
        for i, one in enumerate(data.draw(st.lists(request, max_size=12)))
    ]
    plan = smol.plan(asked)
    assert Counter(one.origin for batch in plan for one in batch) == Counter(
        one.origin for one in asked
    )
    assert plan == smol.plan(asked)
    for batch in plan:
        assert len({type(one.request) for one in batch}) == 1
        assert len({getattr(one.request, "max_tokens", None) for one in batch}) == 1
        assert len({getattr(one.request, "stop", None) for one in batch}) == 1


def _counts(request: Generate, logits: list[float], n: int = 2000) -> list[float]:
    torch = pytest.importorskip("torch")
    draws = torch.Generator().manual_seed(5)
    found = Counter(drawn(torch.tensor(logits), request, draws) for _ in range(n))
    return [found[i] / n for i in range(len(logits))]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"temperature": 1.0}, [0.1, 0.4, 0.2, 0.3]),
        ({"temperature": 0.5}, [1 / 30, 16 / 30, 4 / 30, 9 / 30]),
        ({"temperature": 1.0, "top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"temperature": 1.0, "top_p": 0.5}, [0, 4 / 7, 0, 3 / 7]),
        ({"temperature": 1.0, "top_p": 0.0}, [0, 1, 0, 0]),
    ],
)
def test_draws(settings: dict[str, Any], wanted: list[float]) -> None:
    """Shares of 2,000 draws are those worked out by hand, within four standard errors."""
    logits = [-2.302585, -0.916291, -1.609438, -1.203973]
    got = _counts(Generate("", **settings), logits)
    assert got == pytest.approx(wanted, abs=0.045)
    assert all(w > 0 or g == 0 for w, g in zip(wanted, got, strict=True))
