"""Both ends of a loaded model: what goes into its head, and the cache of a shared beginning."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, Self

_PART = 256
"""Tokens of a header that are computed at once."""


class Tap:
    """Takes the rows that are needed out of what a model hands to its head.

    With a plain head the head itself then gets nothing to do; it is applied in parts later.
    """

    def __init__(self, model: Any, places: Any, *, plain: bool) -> None:
        self.states: Any = None
        self._places = places
        self._plain = plain
        self._hook = model.get_output_embeddings().register_forward_pre_hook(self._take)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _take(self, _: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        states = args[0][self._places[0], self._places[1]]
        self.states = states
        return (states[:0] if self._plain else states).unsqueeze(0), *args[1:]


def cached(model: Any, cache: Any) -> dict[str, Any]:
    """Return the argument that hands a model its cache; its name is new in transformers 5.2x."""
    name = "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
    return {} if cache is None else {name: cache}


def header_cache(model: Any, tokens: Sequence[int]) -> Any:
    """Return the keys and values of `tokens` as a cache that any batch can continue.

    Once it holds them, the cache itself never grows: a layer gets the header and the new tokens
    joined, and nothing is kept, so that a batch needs the memory of one layer and not of all.
    A long header is computed in parts: what a layer needs beside the cache is then small.
    """
    import torch
    from transformers.cache_utils import DynamicCache, DynamicLayer

    class HeaderLayer(DynamicLayer):  # type: ignore[misc]
        filled = 0

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
            new = key_states, value_states
            if not self.is_initialized:
                self.lazy_initialization(*new)
                self.keys, self.values = (_room(states, len(tokens)) for states in new)
            if self.filled == len(tokens):
                return tuple(
                    torch.cat([kept.expand(len(more), -1, -1, -1), more], dim=-2)
                    for kept, more in zip((self.keys, self.values), new, strict=True)
                )
            before, self.filled = self.filled, self.filled + key_states.shape[-2]
            self.keys[:, :, before : self.filled] = key_states
            self.values[:, :, before : self.filled] = value_states
            return self.keys[:, :, : self.filled], self.values[:, :, : self.filled]

        def get_seq_length(self, *_: Any, **__: Any) -> int:
            return self.filled

    cache = DynamicCache()
    cache.layer_class_to_replicate = HeaderLayer
    first = torch.zeros((2, 1), dtype=torch.long, device=model.device)
    with torch.inference_mode(), Tap(model, first, plain=True):
        for part in torch.tensor([tokens], device=model.device).split(_PART, dim=1):
            model(input_ids=part, use_cache=True, **cached(model, cache))
    return cache


def _room(states: Any, length: int) -> Any:
    batch, heads, _, size = states.shape
    return states.new_empty((batch, heads, length, size))
