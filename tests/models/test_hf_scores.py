"""Log likelihoods of the real small model, against transformers called one string at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from xpe.models import heads, scoring
from xpe.models.hf import Hf
from xpe.models.scoring import Scorer
from xpe.models.smollm2 import SmolLM2
from xpe.models.vllm import Vllm
from xpe.types import Asked, Failure, LogLikelihood, Origin, Reply, Rolling, Scored

pytestmark = pytest.mark.model

CASES = [
    ("The capital of France is", (" Paris", " Berlin", " Rome")),
    ("The capital of France is ", ("Paris", "the city of Berlin, Germany")),
    ("法国的首都是", ("巴黎", "柏林", "乌兰巴托")),
    ("问：与舌没有直接联系的脏是\n答：", ("肝", "肺，主气司呼吸")),
    ("", ("Paris is a city", "巴黎")),
    ("Once upon a time", (" there was a king", " there was a queen", " there", " xyz")),
]


def _tokens(reference: Any, context: str, continuation: str) -> tuple[list[int], list[int]]:
    """The border rule, spelt out once more: white space to the right, cut by the context."""
    encode = lambda text: list(reference.tokenizer(text)["input_ids"])
    if not context:
        return [reference.tokenizer.bos_token_id], encode(continuation)
    blank = len(context) - len(context.rstrip())
    kept = context[: len(context) - blank]
    whole = encode(context + continuation)
    return encode(kept), whole[len(encode(kept)) :]


def _wanted(reference: Any, context: str, continuations: Sequence[str]) -> list[float]:
    return [reference.log_likelihood(*_tokens(reference, context, c)) for c in continuations]


def test_equal_to_transformers(smol: SmolLM2, reference: Any, ask: Any) -> None:
    """English, Chinese, choices of several tokens, trailing space and no context: within 1e-4."""
    replies = ask(smol, *(LogLikelihood(context, choices) for context, choices in CASES))
    for (context, choices), reply in zip(CASES, replies, strict=True):
        assert reply.log_likelihoods == pytest.approx(
            _wanted(reference, context, choices), abs=1e-4
        )
        counts = [len(_tokens(reference, context, choice)[1]) for choice in choices]
        assert list(reply.tokens) == counts
        assert not reply.prompt_truncated


def test_greedy(smol: SmolLM2, reference: Any, ask: Any) -> None:
    """A continuation that the model would write itself is greedy, another one is not."""
    written = reference.generated("The capital of France is", 1)
    (reply,) = ask(smol, LogLikelihood("The capital of France is", (written, " Rome")))
    assert reply.greedy == (True, False)


def test_an_empty_continuation(smol: SmolLM2, ask: Any) -> None:
    """Nothing has probability one and no token."""
    (reply,) = ask(smol, LogLikelihood("x", ("", " y")))
    assert reply.log_likelihoods[0] == 0
    assert reply.tokens == (0, 1)
    assert reply.log_likelihoods[1] < 0


def test_messages(smol: SmolLM2, reference: Any, ask: Any) -> None:
    """Messages are rendered by the template; an open assistant's turn is gone on with."""
    user = {"role": "user", "content": "Hi"}
    head = reference.tokenizer.apply_chat_template([user], tokenize=False)
    opened = head + "<|im_start|>assistant\n"
    assert smol.render((user,)) == opened
    begun = (user, {"role": "assistant", "content": "The answer is"})
    assert smol.render(begun) == opened + "The answer is"
    asked = [LogLikelihood((user,), ("A", "B")), LogLikelihood(begun, (" A", " B"))]
    first, second = ask(smol, *asked)
    assert first.log_likelihoods == pytest.approx(_wanted(reference, opened, ("A", "B")), abs=1e-4)
    wanted = _wanted(reference, opened + "The answer is", (" A", " B"))
    assert second.log_likelihoods == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("kind", [Hf, Vllm])
def test_arguments_of_the_template(smol: SmolLM2, kind: type[Hf | Vllm]) -> None:
    """They reach the chat template, and tell the model from one that has others."""
    template = "{{ messages[0].content }}{% if not enable_thinking %} /no_think{% endif %}"
    asked = ({"role": "user", "content": "Hi"},)
    models = [
        kind(
            path=smol.source.path,
            chat_template=template,
            chat_template_args={"enable_thinking": thinks},
        )
        for thinks in (True, False)
    ]
    assert [model.render(asked) for model in models] == ["Hi", "Hi /no_think"]
    first, second = (model.prompts.template_digest for model in models)
    assert first != second


def test_bfloat16(smol: SmolLM2, ask: Any) -> None:
    """Rows are float32 and their sum float64 whatever the weights are."""
    import torch

    text, choice = "The capital of France is", " the city of Paris"
    model = Hf(path=smol.source.path, dtype="bfloat16")
    (found,) = ask(model, LogLikelihood(text, (choice,)))
    inner = model._engine.scorer.model
    assert inner.dtype == torch.bfloat16
    tokens = model.prompts.encode([text + choice])[0]
    start = len(model.prompts.encode([text])[0])
    with torch.inference_mode():
        rows = inner(torch.tensor([tokens])).logits[0, :-1].float().log_softmax(-1).double()
    wanted = sum(float(rows[i - 1, tokens[i]]) for i in range(start, len(tokens)))
    assert found.log_likelihoods == pytest.approx((wanted,), abs=1e-4)
    assert model.environment["batch_invariant"] is False
    model.close()


def _fewshot(n: int) -> list[LogLikelihood]:
    header = "".join(f"Question {i}: what is {i} plus {i}?\nAnswer: {2 * i}\n\n" for i in range(4))
    return [
        LogLikelihood(
            f"{header}Question: what is {i} plus {i + 1}?{' Think.' * (i % 4)}\nAnswer:",
            (f" {2 * i + 1}", f" {2 * i} or so", " no idea"),
        )
        for i in range(n)
    ]


def test_sharing_changes_nothing(smol: SmolLM2, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared headers and packed choices equal one row at a time, within 1e-3 and in argmax."""
    requests = _fewshot(5)
    together = ask(smol, *requests)
    monkeypatch.setattr(smol._engine.scorer, "shares", False)
    monkeypatch.setattr(smol._engine.scorer, "budget", 1)
    alone = ask(smol, *requests)
    for fast, slow in zip(together, alone, strict=True):
        assert fast.log_likelihoods == pytest.approx(slow.log_likelihoods, abs=1e-3)
        assert fast.greedy == slow.greedy
        assert fast.tokens == slow.tokens


def test_a_long_lone_context(smol: SmolLM2, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choices on a cache that was filled in parts equal those packed behind their context."""
    request = _fewshot(1)[0]
    packed = ask(smol, request)[0]
    monkeypatch.setattr(scoring, "_LONG", 64)
    monkeypatch.setattr(heads, "_PART", 24)
    cached = ask(smol, request)[0]
    assert smol._engine.scorer._header is not None
    assert cached.log_likelihoods == pytest.approx(packed.log_likelihoods, abs=1e-3)
    assert cached.greedy == packed.greedy
    ask(smol, LogLikelihood("One", (" two",)))
    assert smol._engine.scorer._header is None, "it holds memory that nobody uses"


def test_the_shared_part_runs_once(
    smol: SmolLM2, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight questions behind one header cost a third of what they cost one by one, or less."""
    requests = _fewshot(8)
    seen: list[int] = []
    hook = smol._engine.scorer.model.register_forward_pre_hook(
        lambda _, __, kwargs: seen.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    smol._engine.scorer.release()
    ask(smol, *requests)
    shared = sum(seen)
    hook.remove()
    whole = sum(
        len(ids) for r in requests for ids in smol.prompts.encode([r.context]) for _ in range(3)
    )
    assert shared < whole / 3


def test_a_batch_gives_the_same_bytes_again(smol: SmolLM2) -> None:
    """What ran before leaves no trace in a batch, not even in the last digit."""
    asked = [Asked(Origin("t", i, 0, 0), r) for i, r in enumerate(_fewshot(3))]
    (batch,) = smol.plan(asked)
    first = smol.run(batch)
    smol.run((Asked(Origin("u", 0, 0, 0), LogLikelihood("Other", (" text",))),))
    assert smol.run(batch) == first
    smol._engine.scorer.release()
    assert smol.run(batch) == first


def test_rolling(smol: SmolLM2, reference: Any, ask: Any) -> None:
    """A text of one window is its tokens given the prefix token; an empty text is 0."""
    text = "The quick brown fox jumps over the lazy dog. 天地玄黄，宇宙洪荒。"
    ids = list(reference.tokenizer(text)["input_ids"])
    reply, empty = ask(smol, Rolling(text), Rolling(""))
    wanted = reference.log_likelihood([reference.tokenizer.bos_token_id], ids)
    assert reply.log_likelihoods == pytest.approx([wanted], abs=1e-3)
    assert reply.tokens == (len(ids),)
    assert empty == Scored((0.0,), (True,), (0,))


@pytest.fixture(scope="module")
def short(smol: SmolLM2) -> Any:
    """The same weights, taking eight tokens at most."""
    model = SmolLM2(max_length=8)
    model.load()
    yield model
    model.close()


def test_rolling_over_several_windows(short: SmolLM2, reference: Any, ask: Any) -> None:
    """Windows of eight over twenty tokens, each window's sum taken by hand."""
    text = " one two three four five six seven eight nine ten eleven twelve" * 2
    ids = list(reference.tokenizer(text)["input_ids"])[:20]
    text = reference.tokenizer.decode(ids)
    prefix = reference.tokenizer.bos_token_id
    wanted = (
        reference.log_likelihood([prefix], ids[:8])
        + reference.log_likelihood(ids[7:8], ids[8:16])
        + reference.log_likelihood(ids[11:16], ids[16:20])
    )
    (reply,) = ask(short, Rolling(text))
    assert reply.tokens == (20,)
    assert reply.log_likelihoods == pytest.approx([wanted], abs=1e-3)


def test_truncation(short: SmolLM2, reference: Any, ask: Any) -> None:
    """A long context loses its beginning and says so; a long continuation is a failure."""
    context = "one two three four five six seven eight nine ten"
    fits, cut, never = ask(
        short,
        LogLikelihood("one two", (" three",)),
        LogLikelihood(context, (" eleven", " eleven twelve")),
        LogLikelihood("one", (" two" * 9, " two")),
    )
    assert not fits.prompt_truncated
    assert cut.prompt_truncated
    ids, more = _tokens(reference, context, " eleven twelve")
    whole = [*ids, *more][-9:]
    kept = len(whole) - len(more)
    wanted = reference.log_likelihood(whole[:kept], whole[kept:])
    assert cut.log_likelihoods[1] == pytest.approx(wanted, abs=1e-4)
    assert isinstance(never, Failure)
    assert never.kind == "context"
    assert "8 tokens" in never.message


def test_memory_halves_the_batch(smol: SmolLM2, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory with more than two at once: all are answered; alone: a failure."""
    requests = _fewshot(5)
    whole = ask(smol, *requests)
    forward = Scorer._forward
    sizes: list[int] = []

    def scarce(self: Scorer, lead: Any, tries: Any) -> Any:
        sizes.append(len(tries))
        if len(tries) > 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        return forward(self, lead, tries)

    monkeypatch.setattr(Scorer, "_forward", scarce)
    before = smol.environment["out_of_memory_splits"]
    halved = ask(smol, *requests)
    assert smol.environment["out_of_memory_splits"] == before + 2
    assert sizes[0] == 5
    for one, other in zip(halved, whole, strict=True):
        assert one.log_likelihoods == pytest.approx(other.log_likelihoods, abs=1e-3)

    def never(self: Scorer, lead: Any, tries: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(Scorer, "_forward", never)
    replies: list[Reply] = ask(smol, *requests)
    assert [reply.kind for reply in replies if isinstance(reply, Failure)] == ["memory"] * 5


def test_a_folder_is_a_model_too(smol: SmolLM2, ask: Any) -> None:
    """The backend `hf` on the same folder gives the same numbers."""
    model = Hf(path=smol.source.path)
    model.check()
    request = LogLikelihood("The capital of France is", (" Paris", " Rome"))
    assert ask(model, request) == ask(smol, request)
    assert model.identity["weights"] == smol.identity["weights"]
    assert model.identity["backend"] == "hf"
    model.close()
    assert "_engine" not in model.__dict__
