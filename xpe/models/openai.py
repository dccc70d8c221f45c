"""Any server that speaks the OpenAI API."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, assert_never
from urllib.parse import urlsplit

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.errors import ConfigError, EngineError, MissingExtraError, XpeError, retrieves_nothing
from xpe.models._api_client import Address, Client, Pace, Patience
from xpe.models._api_faults import Fault
from xpe.models._api_scores import WAYS, Way
from xpe.models._api_text import Dialect, generated, generation_body
from xpe.models._api_thread import LoopThread
from xpe.models._api_usage import Prices, Usage
from xpe.registry import STRICT
from xpe.text.reasoning import MARKERS
from xpe.types import Asked, Failure, Generate, LogLikelihood, Reply, Request, Retrieve, Rolling

log = logging.getLogger(__name__)

_PUBLIC = "https://api.openai.com/v1"
_ENDPOINTS = ("/chat/completions", "/completions")
_UNANSWERABLE = frozenset({"auth", "connection", "timeout", "rate_limit"})


# What was typed as an address may hold a password, which an error must not repeat.
@dataclass(frozen=True, config={**STRICT, "hide_input_in_errors": True})
class OpenAi:
    """A model behind an OpenAI-compatible server, through the `openai` package.

    Parameters
    ----------
    model
        The name that the server has for it.
    api
        `chat` renders messages on the server; `completions` takes text as it is.
    base_url, base_url_env
        The address up to and with `/v1`, or the environment variable that holds it; the first
        wins. With neither it is OpenAI's own.
    api_key_env
        The environment variable that holds the key; None for a server without one.
    concurrency
        Requests under way at most; fewer while the server answers 429.
    timeout
        Seconds for one request, from sending it to the last byte of its answer.
    max_retries, backoff, longest_wait
        Retries of one request; the mean seconds before the first, doubled for each one after;
        the longest wait in seconds that the server may ask for.
    requests_per_minute, tokens_per_minute
        Limits that no minute exceeds; tokens are estimated before they are known.
    prices
        Prices per million tokens, `{input, output, cached}`, for the cost in the report.
    extra_body, chat_template_args, omit
        Fields to add to every request, arguments for the server's chat template, and fields that
        the server does not take.
    max_tokens_field, max_stops
        Its name for the token limit, and how many stop strings it takes.
    reasoning
        Pairs of markers of reasoning that stands in the text.
    logprobs
        How log likelihoods are had; `auto` tries all ways, `none` refuses.
    prefix
        The text of the token that stands before a text without context.
    top_logprobs
        How many alternatives to ask for where only those are given.
    """

    cosmetic: ClassVar[tuple[str, ...]] = (
        "timeout",
        "max_retries",
        "backoff",
        "longest_wait",
        "requests_per_minute",
        "tokens_per_minute",
        "prices",
    )
    structured_output: ClassVar[bool] = True

    model: str
    api: Literal["chat", "completions"] = "chat"
    base_url: str | None = None
    base_url_env: str | None = None
    api_key_env: str | None = None
    concurrency: int = Field(default=32, ge=1, le=1000)
    timeout: float = Field(default=300.0, gt=0)
    max_retries: int = Field(default=3, ge=0, le=3)
    backoff: float = Field(default=1.0, ge=0)
    longest_wait: float = Field(default=120.0, ge=0)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    prices: Prices | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict)
    chat_template_args: dict[str, Any] = Field(default_factory=dict)
    omit: tuple[str, ...] = ()
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    max_stops: int | None = Field(default=None, ge=1)
    reasoning: tuple[tuple[str, str], ...] = MARKERS
    logprobs: Literal["auto", "prompt_logprobs", "echo", "top_logprobs", "none"] = "auto"
    prefix: str = ""
    top_logprobs: int = Field(default=20, ge=1, le=20)

    def __post_init__(self) -> None:
        if self.base_url is not None:
            checked_url(self.base_url, "base_url", secret=False)

    # --- before the run ----------------------------------------------------------------------

    def check(self) -> None:
        """Check what can be checked without asking the server.

        Raises
        ------
        ConfigError
            An environment variable is not set, or the address is none.
        MissingExtraError
            The `openai` package or its transport is not installed.
        """
        self._address()
        for package in ("openai", "aiohttp"):
            if importlib.util.find_spec(package) is None:
                raise MissingExtraError.of("model kind 'openai'", package, "api")

    def check_log_likelihoods(self, *, whole_texts: bool = False) -> None:
        """Ask the server one small question to see that it gives log likelihoods.

        Raises
        ------
        ConfigError
            It does not, or not of whole texts where they are wanted.
        EngineError
            It does not answer.
        """
        try:
            way = self._way
        except XpeError:
            self.close()  # nobody else will: the run has not begun
            raise
        if whole_texts and not way.whole_texts:
            self.close()
            raise ConfigError(
                f"the server offers {way.name} of api={self.api} only, which gives no log "
                "likelihood of whole texts. Use a server with prompt_logprobs or echo on "
                "model.api=completions, or model=hf or vllm"
            )

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """What decides a reply. Asks the server once what it serves under the model's name.

        The address stands in it as a digest of its host, so that another port or path does not
        make stored replies void.

        Raises
        ------
        EngineError
            The server does not answer.
        """
        host = urlsplit(self._address().url).hostname or ""
        return {
            "backend": "openai",
            "model": self.model,
            "api": self.api,
            "host": hashlib.sha256(host.encode()).hexdigest()[:12],
            "served": self._served(),
            "extra_body": self.extra_body,
            "chat_template_args": self.chat_template_args,
            "omit": list(self.omit),
            "max_stops": self.max_stops,
            "reasoning": [list(pair) for pair in self.reasoning],
            "logprobs": self.logprobs,
            "prefix": self.prefix,
        }

    # --- the run -----------------------------------------------------------------------------

    def reply(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        """Answer as replies come in, at most `concurrency` under way; see `types.Model`.

        Raises
        ------
        EngineError
            The first answers say that none can follow: wrong key, no such model, nobody there.
        ConfigError
            The server cannot do what is asked.
        """
        _ = self._client  # imports the package here, not in the loop
        return self._thread.replies(self._scorable(asked), self._answer, self.concurrency)

    @property
    def usage(self) -> dict[str, Any]:
        """Requests, tokens, retries, failures by kind and cost, of this process so far."""
        return self._usage.as_dict(self.prices)

    @property
    def environment(self) -> dict[str, Any]:
        """What is reported beside the results; no server says whether it is batch-invariant."""
        way = self.__dict__.get("_way")
        return {"usage": self.usage, "logprobs": way and way.name, "batch_invariant": None}

    def close(self) -> None:
        """Close the connections and log what was used. It may be asked again after."""
        client, thread = self.__dict__.pop("_client", None), self.__dict__.pop("_thread", None)
        if client is not None:
            thread.call(client.close())
            log.info("%s: %s", self.model, _told(self.usage))
        if thread is not None:
            thread.close()

    # --- inside ------------------------------------------------------------------------------

    @cached_property
    def _usage(self) -> Usage:
        return Usage()

    @cached_property
    def _thread(self) -> LoopThread:
        return LoopThread()

    @cached_property
    def _client(self) -> Client:
        patience = Patience(self.timeout, self.max_retries, self.backoff, self.longest_wait)
        pace = Pace(self.concurrency, self.requests_per_minute, self.tokens_per_minute)
        return Client(self._address(), patience, pace, self._usage)

    @cached_property
    def _dialect(self) -> Dialect:
        template = {"chat_template_kwargs": self.chat_template_args}
        return Dialect(
            model=self.model,
            api=self.api,
            omit=frozenset(self.omit),
            max_tokens_field=self.max_tokens_field,
            max_stops=self.max_stops,
            extra={**(template if self.chat_template_args else {}), **self.extra_body},
            markers=self.reasoning,
        )

    @cached_property
    def _way(self) -> Way:
        """The first way to log likelihoods that the server offers."""
        faults: list[str] = []
        for way in WAYS[self.api]:
            if self.logprobs in {"auto", way.name}:
                try:
                    return self._probed(way)
                except Fault as fault:
                    faults.append(f"{way.name}: {fault}")
        raise ConfigError(
            f"the server of model {self.model!r} gives no log likelihoods over api={self.api} "
            f"with logprobs={self.logprobs} ({'; '.join(faults) or 'no such way'}). Use a task "
            "that generates, another api, or model=hf or vllm"
        )

    def _probed(self, way: type[Way]) -> Way:
        asked = way(self._dialect, self.prefix, self.top_logprobs)
        post = partial(self._client.ask, self._dialect.path)
        try:
            return self._thread.call(asked.probed(post))
        except Fault as fault:
            if fault.kind in _UNANSWERABLE:
                raise self._dead(fault) from None
            raise

    def _scorable(self, asked: Iterable[Asked | None]) -> Iterator[Asked | None]:
        """Pass requests on; the first that wants log likelihoods has the server probed."""
        for one in asked:
            if one is not None and not isinstance(one.request, Generate):
                self.check_log_likelihoods(whole_texts=isinstance(one.request, Rolling))
            yield one

    async def _answer(self, asked: Asked) -> Reply:
        try:
            return await self._asked(asked.request)
        except Fault as fault:
            self._usage.failures[fault.kind] += 1
            if fault.hopeless and not self._usage.counts["answers"]:
                raise self._dead(fault) from None
            return Failure(fault.kind, str(fault))

    async def _asked(self, request: Request) -> Reply:
        post = partial(self._client.ask, self._dialect.path)
        match request:
            case Generate():
                body = generation_body(request, self._dialect)
                return await post(body, lambda found: generated(found, request, self._dialect))
            case LogLikelihood():
                return await self._way.scored(post, request.context, request.continuations)
            case Rolling():
                return await self._way.scored(post, "", (request.text,))
            case Retrieve():
                raise retrieves_nothing("a language model")
        assert_never(request)

    def _address(self) -> Address:
        key = None if self.api_key_env is None else from_env("api_key_env", self.api_key_env)
        if self.base_url is not None:
            return Address(_trimmed(self.base_url), key)
        if self.base_url_env is None:
            return Address(_PUBLIC, key)
        url = from_env("base_url_env", self.base_url_env)
        checked_url(url, self.base_url_env, secret=True)
        return Address(_trimmed(url), key)

    def _served(self) -> str | None:
        """Return what stands behind the model's name, where the server tells more than that."""
        try:
            found = self._thread.call(self._client.get("/models"))
        except Fault as fault:
            # A fault that may pass must not pass for an answer: the identity has to stay.
            if fault.again and fault.kind != "malformed":
                self.close()
                raise self._dead(fault) from None
            return None
        models = found.get("data")
        for one in models if isinstance(models, list) else []:
            if isinstance(one, Mapping) and one.get("id") == self.model and one.get("root"):
                root = str(one["root"])
                return root.rstrip("/").rsplit("/", 1)[-1] if root.startswith(("/", ".")) else root
        return None

    def _dead(self, fault: Fault) -> EngineError:
        where = f"the address in {self.base_url_env}" if self.base_url is None else "base_url"
        if self.base_url is None and self.base_url_env is None:
            where = _PUBLIC
        hints = {
            "auth": f"The key is read from {self.api_key_env or 'no variable: set api_key_env'}",
            "not_found": f"Is {self.model!r} a model of this server, and does {where} end in /v1?",
        }
        hint = hints.get(fault.kind, f"Is the server of {where} running?")
        return EngineError(f"model {self.model!r}: {fault}. {hint}")


def from_env(setting: str, name: str) -> str:
    """Return what the environment variable `name` holds; `setting` names it in the error.

    Raises
    ------
    ConfigError
        It is not set.
    """
    value = os.environ.get(name, "").strip()
    if not value:
        raise ConfigError(f"{setting}: the environment variable {name} is not set. export {name}=…")
    return value


def checked_url(url: str, where: str, *, secret: bool) -> None:
    """Refuse what is no address, and one with a password where it would be written down.

    Raises
    ------
    ConfigError
        With `secret` the address is not shown.
    """
    shown = "its value (not shown)" if secret else repr(url)
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(f"{where}: expected an address like http://host:8000/v1, got {shown}")
    if parts.query or parts.fragment or (parts.username or parts.password):
        raise ConfigError(
            f"{where}: the address may hold no user, password or query; "
            "put the key into an environment variable and name that in api_key_env"
        )


def _trimmed(url: str) -> str:
    """Drop the endpoint from an address that names one."""
    url = url.rstrip("/")
    for endpoint in _ENDPOINTS:
        url = url.removesuffix(endpoint)
    return url


def _told(usage: Mapping[str, Any]) -> str:
    failed = sum(usage["failures"].values())
    cost = "" if usage["cost"] is None else f", cost {usage['cost']:.4f}"
    return (
        f"{usage['requests']} requests ({usage['retries']} retries, {usage['rate_limited']} × 429, "
        f"{failed} failed), {usage['input_tokens']} tokens in, {usage['output_tokens']} out{cost}"
    )
