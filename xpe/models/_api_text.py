"""Generations over the chat and the completions API: the body to send, the answer in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from xpe.errors import ConfigError
from xpe.models._api_client import Payload
from xpe.models._api_faults import Fault
from xpe.models._api_usage import tokens_of
from xpe.text.reasoning import Markers, split_reasoning
from xpe.types import Generate, Generated, Message, Prompt

Finish = Literal["stop", "length", "tool_calls"]

_ENDED: Mapping[str, Finish] = {
    **dict.fromkeys(
        ("none", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete"), "stop"
    ),
    **dict.fromkeys(("length", "max_tokens"), "length"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), "tool_calls"),
}
_FILTERED = frozenset({"content_filter", "safety", "refusal"})
_SEEDS = 2**31
"""Servers take seeds of 32 or of 64 bits, with a sign."""


@dataclass(frozen=True)
class Dialect:
    """How one server wants to be asked.

    Parameters
    ----------
    omit
        Fields that it does not take.
    max_tokens_field
        The name that it has for the token limit.
    max_stops
        How many stop strings it takes; all are honoured on our side.
    extra
        Fields of our own, which win over those of a request.
    """

    model: str
    api: Literal["chat", "completions"]
    omit: frozenset[str] = frozenset()
    max_tokens_field: str = "max_tokens"
    max_stops: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    markers: Markers = ()

    @property
    def path(self) -> str:
        """The endpoint, below the base URL."""
        return "/chat/completions" if self.api == "chat" else "/completions"

    def fields(self, **named: Any) -> dict[str, Any]:
        """Return a body with the model's name and our own fields, without what to omit."""
        body = {"model": self.model, **named, **self.extra}
        return {name: value for name, value in body.items() if name not in self.omit}

    def prompt(self, prompt: Prompt) -> dict[str, Any]:
        """Return the fields that carry a prompt.

        Raises
        ------
        ConfigError
            Messages, for an API that takes text.
        """
        if self.api == "completions":
            if isinstance(prompt, str):
                return {"prompt": prompt}
            raise ConfigError(
                "the prompt is a list of messages, which api=completions does not take. "
                "Set model.api=chat, or apply_chat_template=false"
            )
        messages = chat(prompt)
        if messages[-1].get("role") != "assistant":
            return {"messages": messages}
        return {
            "messages": messages,
            "add_generation_prompt": False,
            "continue_final_message": True,
        }


def chat(prompt: Prompt) -> list[Message]:
    """Return a prompt as messages; plain text is what the user says."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return list(prompt)


def generation_body(request: Generate, dialect: Dialect) -> dict[str, Any]:
    """Return what to post for a generation.

    Raises
    ------
    ConfigError
        The API cannot carry the request.
    """
    sampling: dict[str, Any] = {
        "temperature": request.temperature,
        dialect.max_tokens_field: request.max_tokens,
    }
    if request.top_p != 1.0:
        sampling["top_p"] = request.top_p
    if request.top_k > 0:
        sampling["top_k"] = request.top_k
    if request.seed is not None:
        sampling["seed"] = request.seed % _SEEDS
    if request.stop:
        sampling["stop"] = list(request.stop[: dialect.max_stops])
    if request.tools:
        sampling["tools"] = _tools(request.tools, dialect)
    return dialect.fields(**dialect.prompt(request.prompt), **sampling, **request.extra)


def generated(payload: Payload, request: Generate, dialect: Dialect) -> Generated:
    """Return the answer in a response.

    Raises
    ------
    Fault
        It holds none: nothing was written, the server refused, or it broke off.
    """
    choice = payload["choices"][0]
    message = choice["message"] if dialect.api == "chat" else {"content": choice["text"]}
    content = _text(message.get("content"))
    calls = _calls(message)
    finish = _finish(choice.get("finish_reason"), message)
    if not content and not calls and finish != "length":
        raise Fault("empty", "the server answered without text or tool calls")
    split = split_reasoning(content, markers=dialect.markers)
    apart = message.get("reasoning_content") or message.get("reasoning") or ""
    text, was_cut = _cut(split.answer, request.stop)
    counts = tokens_of(payload)
    return Generated(
        text=text,
        finish="tool_calls" if calls and finish == "stop" else "stop" if was_cut else finish,
        reasoning="\n".join(part for part in (str(apart), split.reasoning) if part),
        tokens=counts.get("completion_tokens") or 0,
        prompt_tokens=counts.get("prompt_tokens") or 0,
        tool_calls=calls,
    )


def _finish(reason: Any, message: Mapping[str, Any]) -> Finish:
    name = str(reason).lower()
    if name in _FILTERED or (message.get("refusal") and not message.get("content")):
        raise Fault("refused", f"the server withheld the answer: {message.get('refusal') or name}")
    if name not in _ENDED:
        raise Fault("malformed", f"the answer broke off with finish_reason {reason!r}")
    return _ENDED[name]


def _text(content: Any) -> str:
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "".join(part.get("text") or "" for part in content)
    return content or ""


def _calls(message: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    calls = message.get("tool_calls")
    if not calls and message.get("function_call"):
        calls = [{"type": "function", "function": message["function_call"]}]
    return tuple(calls or ())


def _cut(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    ends = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(ends)], True) if ends else (text, False)


def _tools(tools: Sequence[Mapping[str, Any]], dialect: Dialect) -> list[Mapping[str, Any]]:
    if dialect.api != "chat":
        raise ConfigError(
            "the request brings tools, which api=completions does not take. "
            "Set model.api=chat, or have the task write tools into the prompt"
        )
    return [
        tool if "function" in tool else {"type": "function", "function": tool} for tool in tools
    ]
