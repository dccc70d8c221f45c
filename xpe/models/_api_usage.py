"""What was asked of a server and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.registry import STRICT


@dataclass(frozen=True, config=STRICT)
class Prices:
    """Prices in any currency per million tokens; `cached` None: like other input."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int) -> float:
        """Return the price of tokens; cached ones are counted in the input as well."""
        cached = self.input if self.cached is None else self.cached
        fresh = input_tokens - cached_tokens
        return (fresh * self.input + cached_tokens * cached + output_tokens * self.output) / 1e6


class Usage:
    """Counters of one model in one process. Written by one thread, read by any."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    def sent(self, *, retried: bool) -> None:
        """Count a request that goes on the wire."""
        self.counts["requests"] += 1
        self.counts["retries"] += retried

    def answered(self, payload: Mapping[str, Any]) -> None:
        """Count an answer and the tokens that its server reports."""
        self.counts["answers"] += 1
        tokens = tokens_of(payload)
        details = tokens.get("prompt_tokens_details") or {}
        thought = tokens.get("completion_tokens_details") or {}
        self.counts["input_tokens"] += tokens.get("prompt_tokens") or 0
        self.counts["output_tokens"] += tokens.get("completion_tokens") or 0
        self.counts["cached_tokens"] += details.get("cached_tokens") or 0
        self.counts["reasoning_tokens"] += thought.get("reasoning_tokens") or 0

    def as_dict(self, prices: Prices | None) -> dict[str, Any]:
        """Return all counts; `cost` is None without prices."""
        named = [
            "requests",
            "answers",
            "retries",
            "rate_limited",
            "input_tokens",
            "output_tokens",
            "cached_tokens",
            "reasoning_tokens",
        ]
        found: dict[str, Any] = {name: self.counts[name] for name in named}
        found["failures"] = dict(sorted(self.failures.items()))
        found["cost"] = prices and prices.cost(
            found["input_tokens"], found["output_tokens"], found["cached_tokens"]
        )
        return found


def tokens_of(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `usage` of a response, empty where the server gives none."""
    usage = payload.get("usage")
    return usage if isinstance(usage, Mapping) else {}
