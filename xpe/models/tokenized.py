"""What every model with a tokenizer of its own has: the settings that make tokens of prompts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.errors import ConfigError
from xpe.models import loading
from xpe.models.prompts import Prompts
from xpe.registry import STRICT
from xpe.text.reasoning import MARKERS
from xpe.types import Prompt


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Tokenized(ABC):
    """A model that is fed with tokens.

    Parameters
    ----------
    max_length
        L, the longest input in tokens; None: what the model's config says.
    add_bos_token
        None: what the tokenizer does on its own.
    prefix_token_id
        The token that stands for an empty context; None: BOS, else EOS.
    chat_template
        A Jinja template, or the path of a file with one, in place of the model's own.
    chat_template_args
        Arguments of the template, such as `enable_thinking`.
    reasoning
        Pairs of markers around reasoning, which is taken out of an answer; empty: nothing is.
    """

    max_length: int | None = Field(default=None, ge=2)
    add_bos_token: bool | None = None
    prefix_token_id: int | None = None
    chat_template: str | None = None
    chat_template_args: dict[str, Any] = Field(default_factory=dict)
    reasoning: tuple[tuple[str, str], ...] = MARKERS

    @property
    @abstractmethod
    def source(self) -> loading.Source:
        """Where weights and tokenizer are."""

    @property
    def length(self) -> int:
        """L, the longest input in tokens."""
        return self.prompts.length

    @property
    def has_chat_template(self) -> bool:
        """Whether messages can be rendered."""
        return self.prompts.has_template

    def render(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]] = ()) -> str:
        """Return the text that the model reads; see `Prompts.render`."""
        return self.prompts.render(prompt, tools)

    @cached_property
    def prompts(self) -> Prompts:
        """The tokenizer and its settings; loaded without the weights."""
        tokenizer = self.source.tokenizer()
        prompts = Prompts(
            tokenizer,
            self.max_length or loading.longest_input(self._config, tokenizer),
            self.add_bos_token,
            self.prefix_token_id,
            _template(self.chat_template),
            self.chat_template_args,
        )
        # Encoding changes the tokenizer's state, and with it the text that is hashed.
        _ = prompts.tokenizer_digest
        return prompts

    @property
    def tokenizer_facts(self) -> dict[str, Any]:
        """What a reader of results asks about the tokenizer; no paths."""
        tokenizer = self.prompts.tokenizer
        return {
            "class": type(tokenizer).__name__,
            "size": len(tokenizer),
            **{name: getattr(tokenizer, f"{name}_token") for name in ("bos", "eos", "pad")},
            "digest": self.prompts.tokenizer_digest,
            "template_digest": self.prompts.template_digest,
        }

    @cached_property
    def _config(self) -> Any:
        return self.source.config()

    @property
    def _tokens_identity(self) -> dict[str, Any]:
        """What of the identity decides which tokens the model reads."""
        return {
            "tokenizer": self.prompts.tokenizer_digest,
            "template": self.prompts.template_digest,
            "max_length": self.length,
            "add_bos_token": self.add_bos_token,
            "prefix_token_id": self.prefix_token_id,
            "reasoning": [list(pair) for pair in self.reasoning],
        }


def _template(named: str | None) -> str | None:
    """Return the template that is given, from its file if it is a path."""
    if named is None or "{" in named:
        return named
    try:
        return Path(named).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"model.chat_template={named}: no readable file: {error}") from error
