"""A retrieval service of the user's, asked over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.errors import ConfigError, MissingExtraError
from xpe.models._api_faults import Fault, fault_of_error, fault_of_status, masked
from xpe.models._api_thread import LoopThread
from xpe.models.openai import checked_url, from_env
from xpe.registry import STRICT
from xpe.text.tools import tools_in
from xpe.types import Asked, Failure, Reply, Retrieve, Retrieved

_LISTS = ("results", "tools", "data", "items", "documents", "result")


# What was typed as an address may hold a password, which an error must not repeat.
@dataclass(frozen=True, config={**STRICT, "hide_input_in_errors": True}, kw_only=True)
class Http:
    """Posts the arguments of a call as JSON and reads names of tools from what comes back.

    Read are a list of tools, of objects with a name, or of names; at the top or under `results`,
    `tools`, `data`, `items`, `documents` or `result`.

    Parameters
    ----------
    url, url_env
        The address, or the environment variable that holds it; the first wins.
    api_key_env
        The environment variable with a key, sent as a bearer token.
    body
        `arguments`: those of the call; `call`: `{name, arguments}`; `query`: `{query, top_k}`.
    tool
        The name that `body=call` sends.
    concurrency, timeout, max_retries, backoff, longest_wait
        As of the kind `openai`.
    """

    cosmetic: ClassVar[tuple[str, ...]] = ("timeout", "max_retries", "backoff", "longest_wait")

    url: str | None = None
    url_env: str | None = None
    api_key_env: str | None = None
    body: Literal["arguments", "call", "query"] = "arguments"
    tool: str = "retrieval_tool"
    concurrency: int = Field(default=16, ge=1, le=1000)
    timeout: float = Field(default=60.0, gt=0)
    max_retries: int = Field(default=3, ge=0, le=3)
    backoff: float = Field(default=1.0, ge=0)
    longest_wait: float = Field(default=120.0, ge=0)

    def __post_init__(self) -> None:
        if self.url is not None:
            checked_url(self.url, "url", secret=False)

    def check(self) -> None:
        """Check what can be checked without asking the service.

        Raises
        ------
        ConfigError
            There is no address, or an environment variable is not set.
        MissingExtraError
            The `aiohttp` package is not installed.
        """
        _ = self._address, self._headers
        if importlib.util.find_spec("aiohttp") is None:
            raise MissingExtraError.of("retrieval=http", "aiohttp", "api")

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `types.Model`. The address stands in it as a digest."""
        parts = urlsplit(self._address)
        place = f"{parts.hostname}{parts.path}"
        return {
            "backend": "http",
            "address": hashlib.sha256(place.encode()).hexdigest()[:12],
            "body": self.body,
            "tool": self.tool if self.body == "call" else None,
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """What is reported beside the results: requests, and failures by kind."""
        return {"requests": self._counts["requests"], "failures": dict(self._failures)}

    def reply(self, asked: Iterable[Asked | None], /) -> Iterator[tuple[Asked, Reply] | None]:
        """Answer as replies come in, at most `concurrency` under way; see `types.Model`."""
        return self._thread.replies(asked, self._answer, self.concurrency)

    def close(self) -> None:
        """Close the connections. It may be asked again after."""
        thread, session = self.__dict__.pop("_thread", None), self.__dict__.pop("_session", None)
        if session is not None:
            thread.call(session.close())
        if thread is not None:
            thread.close()

    # --- inside ------------------------------------------------------------------------------

    @cached_property
    def _thread(self) -> LoopThread:
        return LoopThread()

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter()

    @cached_property
    def _failures(self) -> Counter[str]:
        return Counter()

    @cached_property
    def _session(self) -> Any:
        """Made in the loop, at the first request."""
        import aiohttp

        return aiohttp.ClientSession(headers=self._headers)

    @cached_property
    def _address(self) -> str:
        if self.url is not None:
            return self.url
        if self.url_env is None:
            raise ConfigError("url: give the address of the service, or url_env with its variable")
        url = from_env("url_env", self.url_env)
        checked_url(url, self.url_env, secret=True)
        return url

    @cached_property
    def _key(self) -> str | None:
        return None if self.api_key_env is None else from_env("api_key_env", self.api_key_env)

    @property
    def _headers(self) -> Mapping[str, str]:
        return {} if self._key is None else {"Authorization": f"Bearer {self._key}"}

    async def _answer(self, asked: Asked) -> Reply:
        if not isinstance(asked.request, Retrieve):
            return Failure("bad_request", "retrieval=http answers requests to retrieve only")
        for attempt in range(self.max_retries + 1):
            try:
                return Retrieved(await self._found(self._payload(asked.request)))
            except Fault as fault:
                wait = self._wait(fault, attempt)
                if wait is None:
                    self._failures[fault.kind] += 1
                    said = masked(str(fault), self._key)
                    return Failure(fault.kind, f"{said} (attempt {attempt + 1})")
            await asyncio.sleep(wait)
        raise AssertionError

    def _payload(self, request: Retrieve) -> Mapping[str, Any]:
        if self.body == "query":
            return {"query": request.query, "top_k": request.top_k}
        if self.body == "call":
            return {"name": self.tool, "arguments": request.arguments}
        return request.arguments

    async def _found(self, payload: Mapping[str, Any]) -> tuple[str, ...]:
        self._counts["requests"] += 1
        try:
            async with (
                asyncio.timeout(self.timeout),
                self._session.post(self._address, json=payload) as response,
            ):
                status, headers, text = response.status, response.headers, await response.text()
        except Exception as error:  # noqa: BLE001 - every failure of a request is a Fault
            raise fault_of_error(error, datetime.now(UTC)) from None
        if status >= 400:
            raise fault_of_status(status, text, headers, datetime.now(UTC))
        return names_in(text)

    def _wait(self, fault: Fault, attempt: int) -> float | None:
        """Return the seconds until the next attempt, None where there is none."""
        asked = fault.after or 0.0
        if not fault.again or attempt == self.max_retries or asked > self.longest_wait:
            return None
        backoff: float = self.backoff * 2**attempt
        return max(asked, backoff / 2) + random.uniform(0, backoff)


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a response, in its order.

    Raises
    ------
    Fault
        It is no JSON, or holds no list.
    """
    try:
        found = json.loads(text)
    except ValueError:
        raise Fault("malformed", f"expected JSON, got {text[:80]!r}") from None
    if isinstance(found, Mapping):
        found = next((found[key] for key in _LISTS if isinstance(found.get(key), list)), None)
    if not isinstance(found, list):
        raise Fault("malformed", f"expected a list of tools, got {text[:80]!r}")
    return tuple(filter(None, map(_name, found)))


def _name(item: Any) -> str | None:
    if isinstance(item, str):
        return item
    if (tools := tools_in(item)) and isinstance(item, Mapping):
        return str(tools[0]["name"])
    return str(item["name"]) if isinstance(item, Mapping) and item.get("name") else None
