"""Log likelihoods over an API, in the ways that servers offer."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from xpe.errors import ConfigError
from xpe.models._api_client import Payload
from xpe.models._api_faults import Fault
from xpe.models._api_text import Dialect, chat
from xpe.models.windows import at_border, split_pair
from xpe.types import Prompt, Scored

Post: TypeAlias = Callable[[dict[str, Any], Callable[[Payload], Any]], Awaitable[Any]]
"""Posts a body and returns what the reader finds in the answer; raises Fault."""

_PROBE = ("The quick brown fox jumps over the lazy", " dog")
_NEXT = {"max_tokens": 1, "temperature": 0}
_NOTHING_BEFORE = (
    "a text without context needs a token before it, and this server puts none there. "
    "Set model.prefix to the text of the token that shall stand there (its BOS or EOS token)"
)


@dataclass(frozen=True)
class Row:
    """The tokens of one prompt, by any ids, each with its log probability given all before it.

    `text` is what they spell after the first one.
    """

    tokens: tuple[int, ...]
    log_probs: tuple[float | None, ...]
    greedy: tuple[bool, ...]
    text: str = ""


@dataclass(frozen=True)
class Way(ABC):
    """One way to ask.

    Parameters
    ----------
    prefix
        What stands before a text without context; empty: what the server puts there.
    top
        How many alternatives to ask for, where that matters.
    begins
        Whether the server puts a token before every text.
    """

    dialect: Dialect
    prefix: str = ""
    top: int = 20
    begins: bool = False
    name: ClassVar[str]
    whole_texts: ClassVar[bool] = True

    @abstractmethod
    async def scored(self, post: Post, context: Prompt, continuations: Sequence[str]) -> Scored:
        """Return the log likelihood of each continuation.

        Raises
        ------
        Fault
            The server did not answer, or not with what this way needs.
        ConfigError
            The request cannot be put in this way.
        """

    async def probed(self, post: Post) -> Way:
        """Ask one small question and return the way to go on with.

        Raises
        ------
        Fault
            This way is not offered.
        """
        await self.scored(post, _PROBE[0], _PROBE[1:])
        return self


class _Texts(Way):
    """Scores prompts of the completions API: the context alone, and with each continuation."""

    async def scored(self, post: Post, context: Prompt, continuations: Sequence[str]) -> Scored:
        text = self.dialect.prompt(context)["prompt"]
        pairs = [at_border(text, continuation) for continuation in continuations]
        before = [kept or self.prefix for kept, _ in pairs]
        if not (all(before) or self.begins):
            raise ConfigError(_NOTHING_BEFORE)
        wholes = [start + rest for start, (_, rest) in zip(before, pairs, strict=True)]
        starts = list(dict.fromkeys(start for start in before if start))
        rows = await post(self.dialect.fields(prompt=[*starts, *wholes], **self.wanted), self.rows)
        if len(rows) != len(starts) + len(wholes):
            raise Fault("malformed", f"{len(starts) + len(wholes)} prompts, {len(rows)} answers")
        known = dict(zip(starts, rows, strict=False))
        pairs_of_rows = zip(before, rows[len(starts) :], strict=True)
        return _scored(_split(known.get(start), row) for start, row in pairs_of_rows)

    async def probed(self, post: Post) -> Way:
        text = "".join(_PROBE)
        (row,) = await post(self.dialect.fields(prompt=[text], **self.wanted), self.rows)
        if not (row.text and text.endswith(row.text)):
            raise Fault("bad_request", f"{self.name} gave back {row.text!r} for {text!r}")
        return replace(self, begins=row.text == text)

    @property
    @abstractmethod
    def wanted(self) -> Mapping[str, Any]:
        """The fields that ask for log probabilities of the prompt."""

    @abstractmethod
    def rows(self, payload: Payload) -> list[Row]:
        """Return the row of each prompt, in order."""


class PromptLogProbs(_Texts):
    """vLLM's `prompt_logprobs` on the completions API."""

    name = "prompt_logprobs"

    @property
    def wanted(self) -> Mapping[str, Any]:
        return {"prompt_logprobs": 0, **_NEXT}

    def rows(self, payload: Payload) -> list[Row]:
        return [_row_of_entries(choice.get("prompt_logprobs")) for choice in _in_order(payload)]


class Echo(_Texts):
    """`echo` with `logprobs`: the prompt comes back with the log probability of each token."""

    name = "echo"

    @property
    def wanted(self) -> Mapping[str, Any]:
        return {"echo": True, "logprobs": 1, **_NEXT}

    def rows(self, payload: Payload) -> list[Row]:
        ids: dict[str, int] = {}
        return [_row_of_echo(choice.get("logprobs"), ids) for choice in _in_order(payload)]


class ChatPromptLogProbs(Way):
    """vLLM's `prompt_logprobs` on the chat API: continuations begin the assistant's turn."""

    name = "prompt_logprobs"
    whole_texts = False

    async def scored(self, post: Post, context: Prompt, continuations: Sequence[str]) -> Scored:
        bodies = [
            self.dialect.fields(**self.dialect.prompt(tuple(messages)), **self._wanted)
            for messages in (chat(context), *(_said(chat(context), c) for c in continuations))
        ]
        start, *rows = await asyncio.gather(*(post(body, self._row) for body in bodies))
        return _scored(_split(start, row) for row in rows)

    @property
    def _wanted(self) -> Mapping[str, Any]:
        return {"prompt_logprobs": 0, **_NEXT}

    @staticmethod
    def _row(payload: Payload) -> Row:
        return _row_of_entries(payload.get("prompt_logprobs"))


class TopLogProbs(Way):
    """The most likely first tokens: for continuations of one token, such as labels of choices."""

    name = "top_logprobs"
    whole_texts = False

    async def scored(self, post: Post, context: Prompt, continuations: Sequence[str]) -> Scored:
        first = await post(self._body(context), self._first_token)
        found = [_found(continuation, first) for continuation in continuations]
        best = max(first.values())
        return Scored(tuple(found), tuple(one == best for one in found), (1,) * len(found))

    async def probed(self, post: Post) -> Way:
        await post(self._body(_PROBE[0]), self._first_token)
        return self

    def _body(self, context: Prompt) -> dict[str, Any]:
        wanted: dict[str, Any] = {"logprobs": self.top}
        if self.dialect.api == "chat":
            wanted = {"logprobs": True, "top_logprobs": self.top}
        limit = {self.dialect.max_tokens_field: 1, "temperature": 0}
        return self.dialect.fields(**self.dialect.prompt(context), **wanted, **limit)

    def _first_token(self, payload: Payload) -> dict[str, float]:
        found = payload["choices"][0].get("logprobs")
        if not found:
            raise Fault("bad_request", "no log probabilities in the answer")
        if self.dialect.api == "chat":
            return {one["token"]: one["logprob"] for one in found["content"][0]["top_logprobs"]}
        return dict(found["top_logprobs"][0])


WAYS: Mapping[str, tuple[type[Way], ...]] = {
    "completions": (PromptLogProbs, Echo, TopLogProbs),
    "chat": (ChatPromptLogProbs, TopLogProbs),
}
"""What to try, by API, best first."""


def _in_order(payload: Payload) -> list[Mapping[str, Any]]:
    return sorted(payload["choices"], key=lambda choice: choice.get("index") or 0)


def _row_of_entries(entries: Any) -> Row:
    if not entries:
        raise Fault("bad_request", "no prompt_logprobs in the answer")
    # The prompt's own token comes first, whatever else was asked for. The first token of all
    # has none, and no id; -1 stands for it.
    own = [next(iter(entry.items())) for entry in entries[1:]]
    return Row(
        tokens=(-1, *(int(token) for token, _ in own)),
        log_probs=(None, *(float(one["logprob"]) for _, one in own)),
        greedy=(False, *(one.get("rank") == 1 for _, one in own)),
        text="".join(one.get("decoded_token") or "" for _, one in own),
    )


def _row_of_echo(found: Any, ids: dict[str, int]) -> Row:
    if not found or not found.get("token_logprobs"):
        raise Fault("bad_request", "no log probabilities of the prompt in the answer")
    # The last token is the one that was generated.
    tokens, log_probs = found["tokens"][:-1], found["token_logprobs"][:-1]
    tops = found.get("top_logprobs") or [None] * len(tokens)
    return Row(
        tokens=tuple(ids.setdefault(token, len(ids)) for token in tokens),
        log_probs=tuple(log_probs),
        greedy=tuple(
            bool(top) and one is not None and one >= max(top.values())
            for one, top in zip(log_probs, tops, strict=False)
        ),
        text="".join(tokens[1:]),
    )


def _split(start: Row | None, whole: Row) -> tuple[list[float], tuple[bool, ...]]:
    """Return log probabilities and greediness of the tokens after those of `start`.

    Without a start they are all but the first, which the server put there.
    """
    cut = 1 if start is None else len(split_pair(start.tokens, whole.tokens)[0])
    parts = whole.log_probs[cut:]
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        raise Fault("logprobs", f"{len(known)} values for {len(parts)} tokens of a continuation")
    return known, whole.greedy[cut:]


def _scored(parts: Iterable[tuple[list[float], tuple[bool, ...]]]) -> Scored:
    found = list(parts)
    return Scored(
        log_likelihoods=tuple(math.fsum(log_probs) for log_probs, _ in found),
        greedy=tuple(all(greedy) for _, greedy in found),
        tokens=tuple(len(log_probs) for log_probs, _ in found),
    )


def _said(messages: list[Any], continuation: str) -> list[Any]:
    last = messages[-1]
    if last.get("role") == "assistant":
        return [*messages[:-1], {**last, "content": f"{last.get('content') or ''}{continuation}"}]
    return [*messages, {"role": "assistant", "content": continuation}]


def _found(continuation: str, first: Mapping[str, float]) -> float:
    if continuation in first:
        return first[continuation]
    alike = [one for token, one in first.items() if token.strip() == continuation.strip()]
    if alike:
        return max(alike)
    raise Fault(
        "logprobs",
        f"{continuation!r} is not among the {len(first)} most likely first tokens: it is longer "
        "than one token, or unlikely, and this server gives no log probabilities of prompts",
    )
