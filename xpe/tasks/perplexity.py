"""Perplexity: the log likelihood of whole texts."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic.dataclasses import dataclass

from xpe.data.documents import Record
from xpe.registry import STRICT
from xpe.tasks.base import TextTask, required, typed_reference
from xpe.types import Request, Rolling, Sample


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Perplexity(TextTask):
    """Ask for the log likelihood of the target, window by window.

    There is no question, and there are no examples, whatever `num_fewshot` says.
    """

    kind: ClassVar[str] = "perplexity"
    output_type: ClassVar[str] = "loglikelihood_rolling"

    def __post_init__(self) -> None:
        required(self, "doc_to_target")

    @property
    def shots(self) -> int:
        """None: a text stands for itself."""
        return 0

    def gold(self, record: Record) -> tuple[Any, dict[str, Any]]:
        """Return the text and its reference; errors as `typed_reference`."""
        target = self.texts.target(record)
        return target, typed_reference(target, self.answer_type, record)

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """Return one request for the whole text."""
        return (Rolling(str(sample.target)),)
