"""One server: requests with limits, time-outs and retries, and nothing of what they mean."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

from xpe.errors import MissingExtraError
from xpe.models._api_faults import Fault, fault_in_body, fault_of_error, masked
from xpe.models._api_limits import Bucket, Window
from xpe.models._api_usage import Usage, tokens_of

T = TypeVar("T")
Payload: TypeAlias = Mapping[str, Any]

_QUIET = ("openai", "httpx", "httpx2", "httpcore")
_NO_KEY = "none"
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class Address:
    """Where to ask; `key` is a secret."""

    url: str
    key: str | None


@dataclass(frozen=True)
class Patience:
    """How hard to try; seconds.

    `backoff` is the mean wait before the first retry, doubled for each one after; `longest_wait`
    is the longest that a server may ask us to wait.
    """

    timeout: float
    max_retries: int
    backoff: float
    longest_wait: float


@dataclass(frozen=True)
class Pace:
    """How fast to ask at most."""

    concurrency: int
    requests_per_minute: int | None
    tokens_per_minute: int | None


class Client:
    """The `openai` package's client on its aiohttp transport, with our own retries.

    All coroutines belong to one event loop.

    Raises
    ------
    MissingExtraError
        The package or its transport is not installed.
    """

    def __init__(self, address: Address, patience: Patience, pace: Pace, usage: Usage) -> None:
        self.usage = usage
        self.window = Window(pace.concurrency, patience.backoff)
        self._patience = patience
        self._key = address.key
        self._client = _client(address)
        now = time.monotonic()
        self._requests = _bucket(pace.requests_per_minute, now)
        self._tokens = _bucket(pace.tokens_per_minute, now)
        self._jitter = random.Random()

    async def ask(self, path: str, body: Payload, read: Callable[[Payload], T]) -> T:
        """Post `body`, and again where that may help; return what `read` makes of the answer.

        Raises
        ------
        Fault
            There was no answer, or `read` found none in what came back.
        """
        for attempt in range(self._patience.max_retries + 1):
            try:
                return await self._attempt(path, body, read, retried=attempt > 0)
            except Fault as fault:
                wait = self._wait(fault, attempt)
                if wait is None:
                    raise self._told(fault, attempt + 1) from None
            await asyncio.sleep(wait)
        raise AssertionError

    async def get(self, path: str) -> Payload:
        """Return a JSON object, after retries as in `ask`; a body of another kind is empty.

        Raises
        ------
        Fault
            There was no answer.
        """
        for attempt in range(self._patience.max_retries + 1):
            try:
                return await self._timed(self._client.get(path, cast_to=object))
            except Fault as fault:
                wait = self._wait(fault, attempt)
                if wait is None or fault.kind == "malformed":
                    raise self._told(fault, attempt + 1) from None
            await asyncio.sleep(wait)
        raise AssertionError

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _attempt(
        self, path: str, body: Payload, read: Callable[[Payload], T], *, retried: bool
    ) -> T:
        epoch = await self.window.enter()
        limited = answered = False
        try:
            reserved = await self._paced(body)
            self.usage.sent(retried=retried)
            payload = await self._timed(self._client.post(path, cast_to=object, body=body))
            self._settle(reserved, payload)
            self.usage.answered(payload)
            found = _read(read, payload)
            answered = True
        except Fault as fault:
            limited = fault.kind == "rate_limit"
            self.usage.counts["rate_limited"] += limited
            raise
        finally:
            self.window.leave(epoch, limited=limited, answered=answered)
        return found

    async def _timed(self, work: Any) -> Payload:
        # The client's own time-out counts from byte to byte, so that a trickle never ends.
        try:
            async with asyncio.timeout(self._patience.timeout):
                payload = await work
        except Exception as error:  # noqa: BLE001 - every failure of a request is a Fault
            raise fault_of_error(error, datetime.now(UTC)) from None
        if isinstance(payload, str):
            payload = _parsed(payload)
        if not isinstance(payload, Mapping):
            raise Fault("malformed", f"expected a JSON object, got {str(payload)[:80]!r}")
        if payload.get("error"):
            raise fault_in_body(payload["error"], datetime.now(UTC))
        return payload

    async def _paced(self, body: Payload) -> float:
        now, wait, cost = time.monotonic(), 0.0, 0.0
        if self._requests is not None:
            wait = self._requests.reserve(1, now)
        if self._tokens is not None:
            cost = _likely_tokens(body)
            wait = max(wait, self._tokens.reserve(cost, now))
        if wait:
            await asyncio.sleep(wait)
        return cost

    def _settle(self, reserved: float, payload: Payload) -> None:
        spent = tokens_of(payload).get("total_tokens")
        if self._tokens is not None and spent:
            self._tokens.give_back(reserved - spent, time.monotonic())

    def _wait(self, fault: Fault, attempt: int) -> float | None:
        """Return the seconds until the next attempt, None where there is none."""
        asked = fault.after or 0.0
        if not fault.again or attempt == self._patience.max_retries:
            return None
        if asked > self._patience.longest_wait:
            return None
        backoff: float = self._patience.backoff * 2**attempt
        return max(asked, backoff / 2) + self._jitter.uniform(0, backoff)

    def _told(self, fault: Fault, attempts: int) -> Fault:
        text = masked(str(fault), self._key)
        if fault.after and fault.after > self._patience.longest_wait:
            text += f"; the server asks to wait {fault.after:.0f} s, longer than longest_wait"
        text += f" (attempt {attempts})" if attempts > 1 else ""
        return Fault(fault.kind, text, after=fault.after, down=fault.down)


def _client(address: Address) -> Any:
    try:
        import openai

        transport = openai.DefaultAioHttpClient(timeout=None)
    except (ImportError, AttributeError, RuntimeError) as error:
        raise MissingExtraError.of("model kind 'openai'", "openai[aiohttp]", "api") from error
    # These write a line, with the address, for every request; at DEBUG also what was sent.
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    return openai.AsyncOpenAI(
        # Without a key the package would send the one in OPENAI_API_KEY to whatever server.
        api_key=address.key or _NO_KEY,
        base_url=address.url,
        http_client=transport,
        max_retries=0,
        timeout=None,
    )


def _bucket(per_minute: int | None, now: float) -> Bucket | None:
    return None if per_minute is None else Bucket(per_minute, now)


def _read(read: Callable[[Payload], T], payload: Payload) -> T:
    try:
        return read(payload)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise Fault(
            "malformed", f"not what the API documents: {type(error).__name__}: {error}"
        ) from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Fault("malformed", f"expected JSON, got {text[:80]!r}") from None


def _likely_tokens(body: Payload) -> float:
    """Guess the tokens of a request before it is sent: its bytes and the most it may write."""
    size = len(json.dumps(body, ensure_ascii=False, default=str).encode("utf-8", "replace"))
    most = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    return size / _BYTES_PER_TOKEN + most
