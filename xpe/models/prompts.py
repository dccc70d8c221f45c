"""From prompts to tokens: chat templates, special tokens, borders, truncation."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, assert_never

from xpe.errors import ConfigError, retrieves_nothing
from xpe.models.planning import Need, as_text
from xpe.models.windows import Row, at_border, fitted, from_nothing, rolling_rows, split_pair
from xpe.types import Failure, Generate, LogLikelihood, Message, Prompt, Request, Retrieve, Rolling

log = logging.getLogger(__name__)

_PART = 256
_BYTES = 3
"""Bytes of a token, on the low side for English and the high one for Chinese."""


@dataclass(frozen=True)
class Prompts:
    """A tokenizer with the settings that decide what it gives.

    Parameters
    ----------
    tokenizer
        A transformers tokenizer.
    length
        L, the longest input in tokens.
    add_bos
        Whether a text begins with the BOS token; None: what the tokenizer does on its own.
    prefix_token
        What stands for an empty context; None: BOS, else EOS.
    template
        A chat template in place of the tokenizer's own.
    template_args
        Passed to the template (`enable_thinking`).
    """

    tokenizer: Any
    length: int
    add_bos: bool | None = None
    prefix_token: int | None = None
    template: str | None = None
    template_args: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def has_template(self) -> bool:
        """Whether messages can be rendered."""
        return bool(self.template or self.tokenizer.chat_template)

    @cached_property
    def template_digest(self) -> str | None:
        """SHA-256 of the chat template and its arguments, None without one."""
        text = self.template or self.tokenizer.chat_template
        if not text:
            return None
        return _sha(json.dumps([text, self.template_args], sort_keys=True, default=str))

    @cached_property
    def tokenizer_digest(self) -> str:
        """SHA-256 of all that the tokenizer does; taken before anything is encoded."""
        fast = getattr(self.tokenizer, "backend_tokenizer", None)
        if fast is not None:
            return _sha(fast.to_str())
        words = sorted(self.tokenizer.get_vocab().items())
        return _sha(json.dumps([words, type(self.tokenizer).__name__]))

    @cached_property
    def prefix(self) -> int:
        """The token that stands for an empty context."""
        for token in (self.prefix_token, self.tokenizer.bos_token_id, self.tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise ConfigError(
            "the tokenizer has neither a BOS nor an EOS token; set model.prefix_token_id to the "
            "token that shall stand before a text without context"
        )

    def render(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]] = ()) -> str:
        """Return the text that the model reads; messages go through the chat template.

        The template opens the assistant's turn, or leaves it open where the last message is the
        assistant's. A template that refuses a system message gets it in front of the first
        user's.

        Raises
        ------
        ConfigError
            There is no template, or it refuses the messages.
        """
        if isinstance(prompt, str):
            return prompt
        if not self.has_template:
            raise ConfigError(
                "the prompt is a list of messages, but this model's tokenizer has no chat "
                "template; set apply_chat_template=false, or name one in model.chat_template"
            )
        messages: list[Message] = [dict(message) for message in prompt]
        try:
            return self._rendered(messages, tools)
        except Exception as error:
            if messages and messages[0]["role"] == "system":
                log.warning("the chat template refuses a system message; the user gets it")
                return self.render(_system_folded(messages), tools)
            raise ConfigError(f"the chat template refuses the messages: {error}") from error

    def _rendered(self, messages: list[Message], tools: Sequence[Mapping[str, Any]]) -> str:
        goes_on = bool(messages) and messages[-1]["role"] == "assistant"
        text: str = self.tokenizer.apply_chat_template(
            [with_objects(message) for message in messages],
            tools=list(tools) or None,
            chat_template=self.template,
            tokenize=False,
            add_generation_prompt=not goes_on,
            continue_final_message=goes_on,
            **self.template_args,
        )
        return text

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text, with the special tokens that belong before it."""
        bos, name = self.tokenizer.bos_token_id, self.tokenizer.bos_token
        if self.add_bos is None:
            marked = [bool(name) and text.startswith(name) for text in texts]
            plain = iter(self.encode_bare([t for t, m in zip(texts, marked, strict=True) if m]))
            full = iter(
                self._tokens([t for t, m in zip(texts, marked, strict=True) if not m], special=True)
            )
            return [next(plain if m else full) for m in marked]
        bare = self.encode_bare(texts)
        if not self.add_bos or bos is None:
            return bare
        return [ids if ids[:1] == [bos] else [bos, *ids] for ids in bare]

    def encode_bare(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text and nothing else."""
        return self._tokens(texts, special=False)

    def _tokens(self, texts: Sequence[str], *, special: bool) -> list[list[int]]:
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts),
            add_special_tokens=special,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def needs(self, requests: Sequence[Request]) -> list[Need]:
        """Return what each request costs; that of choices is estimated from their bytes."""
        return [
            need
            for low in range(0, len(requests), _PART)
            for need in self._needs(requests[low : low + _PART])
        ]

    def _needs(self, requests: Sequence[Request]) -> Iterator[Need]:
        texts, more = [], []
        for request in requests:
            match request:
                case Generate(prompt=prompt, tools=tools, max_tokens=tokens):
                    texts.append(self.render(prompt, tools))
                    more.append(tokens)
                case LogLikelihood(context=context, continuations=choices):
                    texts.append(self.render(context))
                    more.append(sum(len(choice.encode()) // _BYTES for choice in choices))
                case Rolling(text=text):
                    texts.append("")
                    more.append(len(text.encode()) // _BYTES)
                case Retrieve():
                    raise retrieves_nothing("a language model")
                case never:
                    assert_never(never)
        for ids, extra in zip(self.encode(texts), more, strict=True):
            yield Need(as_text(ids[-self.length :]), extra)

    def choice_rows(self, requests: Sequence[LogLikelihood]) -> list[list[Row | None]]:
        """Return one row a continuation, by request; None where it does not fit into L."""
        pairs = [
            [at_border(context, continuation) for continuation in request.continuations]
            for request in requests
            for context in [self.render(request.context)]
        ]
        flat = [pair for group in pairs for pair in group]
        known = dict(_encoded(self.encode, (c for c, _ in flat if c)))
        known |= _encoded(self.encode, (c + t for c, t in flat if c))
        alone = dict(_encoded(self.encode_bare, (t for c, t in flat if not c)))
        return [
            [
                fitted(
                    *(
                        split_pair(known[context], known[context + continuation])
                        if context
                        else from_nothing(alone[continuation], self.prefix)
                    ),
                    self.length,
                )
                for context, continuation in group
            ]
            for group in pairs
        ]

    def text_rows(self, requests: Sequence[Rolling]) -> list[list[Row]]:
        """Return the windows of each text."""
        texts = self.encode_bare([request.text for request in requests])
        return [rolling_rows(tokens, self.prefix, self.length) for tokens in texts]

    def generation_rows(self, requests: Sequence[Generate]) -> list[Row | None]:
        """Return the prompts, cut from the left to L - max_tokens; None where that is no room.

        A row's `start` is its length: nothing in it is scored.
        """
        texts = [self.render(request.prompt, request.tools) for request in requests]
        return [
            self._kept(tokens or [self.prefix], self.length - request.max_tokens)
            for tokens, request in zip(self.encode(texts), requests, strict=True)
        ]

    def no_room(self, what: str) -> Failure:
        """Return the reply to a request that does not fit into L tokens."""
        return Failure("context", f"the model takes {self.length} tokens, no room for {what}")

    @staticmethod
    def _kept(tokens: Sequence[int], room: int) -> Row | None:
        if room < 1:
            return None
        kept = tuple(tokens[-room:])
        return Row(kept, len(kept), len(kept) < len(tokens))


def _encoded(encode: Any, texts: Iterable[str]) -> Iterable[tuple[str, list[int]]]:
    distinct = list(dict.fromkeys(texts))
    return zip(distinct, encode(distinct), strict=True)


def with_objects(message: Message) -> Message:
    """Return a message whose calls hold their arguments as objects.

    The chat APIs want them as JSON text, which many templates would quote once more.
    """
    if not message.get("tool_calls"):
        return message
    made = [
        {**call, "function": {**call["function"], "arguments": _object(call["function"])}}
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": made}


def _object(function: Mapping[str, Any]) -> Any:
    arguments = function.get("arguments")
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def _system_folded(messages: Sequence[Message]) -> tuple[Message, ...]:
    system, *rest = messages
    if not rest or rest[0]["role"] != "user":
        return ({"role": "user", "content": system["content"]}, *rest)
    first = {**rest[0], "content": f"{system['content']}\n\n{rest[0]['content']}"}
    return (first, *rest[1:])


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
