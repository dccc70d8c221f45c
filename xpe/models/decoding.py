"""Generation by torch: a plain loop in which each request draws from its own generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xpe.models.endings import Ending
from xpe.models.heads import Tap, cached
from xpe.models.planning import header_length
from xpe.models.windows import Row
from xpe.types import Generate, Generated

_STEP = 128


@dataclass(frozen=True)
class Decoder:
    """Writes on behind prompts with a loaded causal model.

    Parameters
    ----------
    model
        A transformers model for causal language modelling, in eval mode.
    decode
        Tokens to text.
    eos
        The tokens that end a text.
    shares
        Whether the beginning that all prompts of a batch share is computed once.
    """

    model: Any
    decode: Callable[[Sequence[int]], str]
    eos: frozenset[int]
    shares: bool = True

    def texts(
        self, requests: Sequence[Generate], prompts: Sequence[Row], endings: Sequence[Ending]
    ) -> list[Generated]:
        """Answer requests that have their settings in common, as one batch."""
        import torch

        writers = [
            _Writer(request, ending, self.decode, self.eos, prompt)
            for request, prompt, ending in zip(requests, prompts, endings, strict=True)
        ]
        with torch.inference_mode():
            self._write(writers, [prompt.tokens for prompt in prompts])
        return [writer.result() for writer in writers]

    def _write(self, writers: Sequence[_Writer], prompts: Sequence[tuple[int, ...]]) -> None:
        import torch

        batch = self._prefilled(prompts)
        alive = list(writers)
        while True:
            # A finished row goes on with any token until the batch is packed anew.
            tokens = [
                row.take(scores) if row.open else 0
                for row, scores in zip(alive, batch.logits, strict=True)
            ]
            still = [b for b, row in enumerate(alive) if row.open]
            if not still:
                return
            if len(still) <= len(alive) // 2:
                batch = batch.only(still)
                alive, tokens = [alive[b] for b in still], [tokens[b] for b in still]
            ids = torch.tensor(tokens, device=self.model.device)[:, None]
            batch = batch.advanced(self.model, ids)

    def _prefilled(self, prompts: Sequence[tuple[int, ...]]) -> _Batch:
        """Read the prompts, padded on the left, behind the beginning that they share."""
        import torch

        most = min(len(prompt) for prompt in prompts) - 1
        header = header_length(prompts, most) if self.shares else 0
        device = self.model.device
        cache = growing_cache()
        mask = torch.zeros((len(prompts), 0), dtype=torch.long, device=device)
        if header:
            lead = torch.tensor([prompts[0][:header]], device=device)
            self.model(input_ids=lead, use_cache=True, **cached(self.model, cache))
            cache.batch_repeat_interleave(len(prompts))
            mask = torch.ones((len(prompts), header), dtype=torch.long, device=device)
        width = max(len(prompt) for prompt in prompts) - header
        rest = [prompt[header:] for prompt in prompts]
        ids = torch.tensor([[0] * (width - len(r)) + list(r) for r in rest], device=device)
        real = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in rest], device=device)
        return _Batch(cache, mask).advanced(self.model, ids, real)


@dataclass(frozen=True)
class _Batch:
    """What has been read, (B, T), and the logits of the next token, (B, V) in float32."""

    cache: Any
    mask: Any
    logits: Any = None

    def advanced(self, model: Any, ids: Any, real: Any = None) -> _Batch:
        """Read `ids`, (B, t); `real` is 0 where they are padding."""
        import torch

        real = torch.ones_like(ids) if real is None else real
        mask = torch.cat([self.mask, real], dim=1)
        rows = torch.arange(len(ids), device=ids.device)
        last = torch.stack([rows, torch.full_like(rows, ids.shape[1] - 1)])
        with Tap(model, last, plain=False):
            out = model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=(mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :],
                use_cache=True,
                **cached(model, self.cache),
            )
        return _Batch(self.cache, mask, out.logits[0].float())

    def only(self, rows: Sequence[int]) -> _Batch:
        """Drop all rows but these."""
        import torch

        index = torch.tensor(rows, device=self.mask.device)
        self.cache.batch_select_indices(index)
        return _Batch(self.cache, self.mask[index], self.logits[index])


@dataclass
class _Writer:
    """One text in the making."""

    request: Generate
    ending: Ending
    decode: Callable[[Sequence[int]], str]
    eos: frozenset[int]
    prompt: Row
    tokens: list[int] = field(default_factory=list)
    open: bool = True
    finish: str = "length"
    draws: Any = None
    inside: bool = False

    def __post_init__(self) -> None:
        import torch

        self.inside = bool(self.ending.opened)
        self.open = self.request.max_tokens > 0
        if self.request.temperature > 0:
            self.draws = torch.Generator().manual_seed(self.request.seed or 0)

    def take(self, logits: Any) -> int:
        """Choose the next token from `logits`, (V,), and note whether the text ends with it."""
        request = self.request
        token = int(logits.argmax()) if self.draws is None else drawn(logits, request, self.draws)
        if token in self.eos:
            self._end("stop")
            return token
        self.tokens.append(token)
        if self._stopped():
            self._end("stop")
        elif len(self.tokens) >= request.max_tokens:
            self._end("length")
        return token

    def result(self) -> Generated:
        cut = self.ending.cut(self.decode(self.tokens))
        return Generated(
            text=cut.answer,
            finish="stop" if self.finish == "stop" else "length",
            reasoning=cut.reasoning,
            tokens=len(self.tokens),
            prompt_tokens=len(self.prompt.tokens),
            prompt_truncated=self.prompt.truncated,
        )

    def _end(self, why: str) -> None:
        self.open, self.finish = False, why

    def _stopped(self) -> bool:
        # A token has at least one byte, so this many tokens hold every mark that ends here.
        tail = self.decode(self.tokens[-(4 * self.ending.reach + 8) :])[-(self.ending.reach + 64) :]
        if not self.ending.worth_a_look(tail, inside=self.inside):
            return False
        cut = self.ending.cut(self.decode(self.tokens))
        self.inside = not cut.finished
        return cut.stopped


def drawn(logits: Any, request: Generate, draws: Any) -> int:
    """Draw a token from `logits`, (V,), by one uniform number of the generator `draws`.

    Temperature comes first, then the `top_k` likeliest, then the smallest set of the likeliest
    whose probabilities reach `top_p`.
    """
    import torch

    scores = logits.detach().to("cpu", torch.float64) / request.temperature
    k = min(request.top_k, len(scores)) if request.top_k > 0 else len(scores)
    best, tokens = scores.topk(k) if k < len(scores) else scores.sort(descending=True, stable=True)
    chances = best.softmax(dim=0)
    if request.top_p < 1:
        before = chances.cumsum(0) - chances
        chances = chances.masked_fill(before >= max(request.top_p, 1e-12), 0.0)
    edges = chances.cumsum(0)
    point = torch.rand((), generator=draws, dtype=torch.float64) * edges[-1]
    at = int(torch.searchsorted(edges, point, right=True))
    return int(tokens[min(at, int((chances > 0).sum()) - 1)])


def growing_cache() -> Any:
    """Return a key-value cache that makes room ahead, so that a step does not copy it whole."""
    import torch
    from transformers.cache_utils import DynamicCache, DynamicLayer

    class GrowingLayer(DynamicLayer):  # type: ignore[misc]
        room: Any = None
        keys: Any
        values: Any

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            have = self.get_seq_length()
            need = have + key_states.shape[-2]
            if self.room is None or need > self.room[0].shape[-2]:
                self.room = tuple(
                    torch.cat([*([old] if have else []), new, _blank(new)], dim=-2)
                    for old, new in ((self.keys, key_states), (self.values, value_states))
                )
            else:
                for room, new in zip(self.room, (key_states, value_states), strict=True):
                    room[:, :, have:need] = new
            self.keys, self.values = (room[:, :, :need] for room in self.room)
            return self.keys, self.values

        def batch_select_indices(self, indices: Any) -> None:
            have = self.get_seq_length()
            self.room = tuple(room[indices] for room in self.room)
            self.keys, self.values = (room[:, :, :have] for room in self.room)

        def batch_repeat_interleave(self, repeats: int) -> None:
            have = self.get_seq_length()
            self.room = tuple(room.repeat_interleave(repeats, dim=0) for room in self.room)
            self.keys, self.values = (room[:, :, :have] for room in self.room)

    cache = DynamicCache()
    cache.layer_class_to_replicate = GrowingLayer
    return cache


def _blank(like: Any) -> Any:
    return like.new_empty((*like.shape[:-2], _STEP, like.shape[-1]))
