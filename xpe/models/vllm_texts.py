"""Texts by vLLM: sampling parameters, and where a text ends.

The engine's own stop strings apply to all that it writes, ours to the answer after the
reasoning. So a text that stopped inside its reasoning is sent back to go on, and until the
reasoning is closed its end marker is the only stop string.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xpe.errors import unknown
from xpe.models.endings import Ending
from xpe.models.vllm_scores import Call
from xpe.models.windows import Row
from xpe.seeds import derive
from xpe.types import Generate, Generated, Reply

_SMALLEST_P = 1e-6


@dataclass
class Writing:
    """One text on its way through the engine.

    Parameters
    ----------
    request
        What was asked.
    prompt
        Its tokens.
    ending
        Stop strings, and the markers of reasoning.
    decode
        Tokens to text.
    ends
        Tokens that end a text and belong to none.
    """

    request: Generate
    prompt: Row
    ending: Ending
    decode: Callable[[Sequence[int]], str]
    ends: frozenset[int]
    reply: Reply | None = None
    _tokens: list[int] = field(default_factory=list)

    def calls(self) -> list[Call]:
        """Return the one request that begins the text."""
        return [self._call(inside=bool(self.ending.opened))]

    def take(self, call: Call, output: Any) -> list[Call]:
        """Add what was written; go on if it stopped inside the reasoning, else set `reply`."""
        (written,) = output.outputs
        tokens = list(written.token_ids)
        ended = written.finish_reason == "stop" and not isinstance(written.stop_reason, str)
        if ended and tokens and tokens[-1] in self.ends:
            tokens.pop()
        self._tokens += tokens
        cut = self.ending.cut(self.decode(self._tokens))
        paused = isinstance(written.stop_reason, str) and not cut.stopped
        if paused and len(self._tokens) < self.request.max_tokens:
            return [self._call(inside=not cut.finished)]
        self.reply = Generated(
            text=cut.answer,
            finish="stop" if ended or cut.stopped else "length",
            reasoning=cut.reasoning,
            tokens=len(self._tokens),
            prompt_tokens=len(self.prompt.tokens),
            prompt_truncated=self.prompt.truncated,
        )
        return []

    def _call(self, *, inside: bool) -> Call:
        request = self.request
        stop = [text for text in request.stop if text]
        if inside and stop:
            stop = [end for _, end in self.ending.markers if end]
        params: dict[str, Any] = {
            "temperature": request.temperature,
            "max_tokens": request.max_tokens - len(self._tokens),
            "stop": stop,
            "detokenize": bool(stop),
            "spaces_between_special_tokens": False,
            **request.extra,
        }
        if request.temperature > 0:
            params |= {"top_p": max(request.top_p, _SMALLEST_P), "top_k": request.top_k}
            if request.seed is not None:
                params["seed"] = self._seed(request.seed)
        return Call((*self.prompt.tokens, *self._tokens), params)

    def _seed(self, seed: int) -> int:
        """A part that goes on draws other numbers than the one before it."""
        return derive(seed, len(self._tokens)) if self._tokens else seed


def check_extra(request: Generate, params: type) -> None:
    """Refuse generation settings that the installed engine does not know.

    Raises
    ------
    UnknownNameError
        With the nearest known names.
    """
    known = {name for name in params.__struct_fields__ if not name.startswith("_")}  # type: ignore[attr-defined]
    for name in request.extra:
        if name not in known - _OURS:
            raise unknown("generation setting", name, known - _OURS)


_OURS = frozenset(
    {
        "n",
        "stop",
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "detokenize",
        "output_kind",
        "skip_clone",
        "output_text_buffer_length",
        "stream_interval",
        "logprobs",
        "prompt_logprobs",
        "logprob_token_ids",
        "prompt_logprob_token_ids",
        "prompt_logprob_start",
        "flat_logprobs",
    }
)
"""Sampling parameters that have a setting of their own, or that the reply has no place for."""
