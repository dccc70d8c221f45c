"""Both ends of a loaded model: what goes into its head, and the cache of a shared beginning."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, Self


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

    The cache itself never grows: a layer gets the header and the new tokens joined, and nothing
    is kept, so that a batch needs the memory of one layer and not of all.
    """
    import torch
    from transformers.cache_utils import DynamicCache, DynamicLayer

    class HeaderLayer(DynamicLayer):  # type: ignore[misc]
        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
                self.keys, self.values = key_states, value_states
                return key_states, value_states
            return tuple(
                torch.cat([kept.expand(len(new), -1, -1, -1), new], dim=-2)
                for kept, new in ((self.keys, key_states), (self.values, value_states))
            )

    cache = DynamicCache()
    cache.layer_class_to_replicate = HeaderLayer
    first = torch.zeros((2, 1), dtype=torch.long, device=model.device)
    with torch.inference_mode(), Tap(model, first, plain=True):
        ids = torch.tensor([tokens], device=model.device)
        model(input_ids=ids, use_cache=True, **cached(model, cache))
    return cache
