"""What goes wrong between us and a server: its kind, whether to ask again, and after how long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import takewhile
from typing import Any

_STATUS = {
    401: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",
    413: "context",
    425: "server",
    429: "rate_limit",
}
_AGAIN = frozenset({"rate_limit", "server", "timeout", "connection", "empty", "malformed"})
_HOPELESS = frozenset({"auth", "not_found"})
_TOO_LONG = re.compile(
    r"context[_ ](length|window)|maximum (context|model|prompt)|max_model_len|prompt is too long"
    r"|input is too long|too many (input )?tokens|input token count|token count .* exceeds",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"content[_ ](filter|policy|management)|data_inspection|responsible_?ai|safety", re.IGNORECASE
)
_DELAY = re.compile(r'"?retryDelay"?\W+([\d.]+)s')
_MOST_SAID = 300
_SHORTEST = 8
"""Characters of a key that give it away."""


class Fault(Exception):  # noqa: N818 - becomes a Failure, which is a reply
    """A request that brought no answer.

    Parameters
    ----------
    kind
        One word: rate_limit, server, timeout, connection, empty, malformed, auth, not_found,
        context, refused, bad_request, logprobs.
    message
        What happened; holds no key.
    after
        Seconds that the server asked us to wait; None when it did not say.
    down
        Whether nobody listened at the address.
    """

    def __init__(
        self, kind: str, message: str, *, after: float | None = None, down: bool = False
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.after = after
        self.down = down

    @property
    def again(self) -> bool:
        """Whether the same request may well be answered when it is sent again."""
        return self.kind in _AGAIN

    @property
    def hopeless(self) -> bool:
        """Whether no request can be answered, if none was so far."""
        return self.kind in _HOPELESS or self.down


def fault_of_error(error: Exception, now: datetime) -> Fault:
    """Translate what the `openai` client or its transport raised."""
    status = getattr(error, "status_code", None)
    if status is not None:
        body = getattr(error, "body", None)
        return fault_of_status(status, body, error.response.headers, now)  # type: ignore[attr-defined]
    return _fault_of_transport(error)


def fault_of_status(status: int, body: Any, headers: Mapping[str, str], now: datetime) -> Fault:
    """Translate an error status with the body and headers that came with it."""
    text = _said(body)
    kind = _STATUS.get(status, "server" if status >= 500 else "bad_request")
    if kind == "bad_request":
        kind = _kind_of_refusal(text)
    # What a server says about a wrong key often quotes a part of it.
    quoted = "" if kind == "auth" or not text else f": {text}"
    return Fault(kind, f"HTTP {status}{quoted}", after=seconds_to_wait(headers, text, now))


def fault_in_body(error: Any, now: datetime) -> Fault:
    """Translate an `error` object that came with status 200."""
    code = error.get("code") if isinstance(error, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return fault_of_status(status, error, {}, now)


def masked(text: str, key: str | None) -> str:
    """Return a text without a key: whole, or its beginning where the text was cut."""
    if not key:
        return text
    first, *rest = text.split(key[:_SHORTEST])
    tail = key[_SHORTEST:]
    return "***".join([first, *(part[_shared(part, tail) :] for part in rest)])


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in same)


def seconds_to_wait(headers: Mapping[str, str], text: str, now: datetime) -> float | None:
    """Return the wait that a server asked for: `Retry-After` in either form, or in the body."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        found = _DELAY.search(text)
        return float(found[1]) if found else None
    seconds = _number(value)
    return seconds if seconds is not None else _until(value, now)


def _fault_of_transport(error: BaseException) -> Fault:
    chain = list(_causes(error))
    names = {cls.__name__ for one in chain for cls in type(one).__mro__}
    if names & {"JSONDecodeError", "UnicodeDecodeError", "ClientPayloadError"}:
        return Fault("malformed", "the body of the response is cut off or is no JSON")
    # The transport reports a closed connection as a timeout; the first cause tells them apart.
    if names & {"ClientConnectorError", "ConnectError"}:
        return Fault("connection", f"no connection: {chain[-1]}", down=True)
    if names & {"ClientConnectionError"} and not names & {"ServerTimeoutError"}:
        return Fault("connection", f"the connection broke: {chain[-1] or type(chain[-1]).__name__}")
    if names & {"TimeoutError", "TimeoutException", "APITimeoutError"}:
        return Fault("timeout", "no answer in time")
    if names & {"APIConnectionError", "TransportError", "OSError"}:
        return Fault("connection", f"the connection broke: {chain[-1]}")
    return Fault("bad_request", f"cannot be sent: {type(error).__name__}: {error}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _kind_of_refusal(text: str) -> str:
    if _TOO_LONG.search(text):
        return "context"
    return "refused" if _REFUSED.search(text) else "bad_request"


def _said(body: Any) -> str:
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]
    if not isinstance(body, Mapping):
        return str(body or "")[:_MOST_SAID]
    parts = [body.get("message"), body.get("code"), body.get("type"), body.get("details")]
    return " ".join(str(part) for part in parts if part)[:_MOST_SAID]


def _number(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def _until(text: str, now: datetime) -> float | None:
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - now).total_seconds())
