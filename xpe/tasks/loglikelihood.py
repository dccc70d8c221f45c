"""Log likelihood of the target after the question."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic.dataclasses import dataclass

from xpe.data.documents import Record
from xpe.registry import STRICT
from xpe.tasks.base import TextTask, required, typed_reference
from xpe.types import LogLikelihood, Request, Sample


@dataclass(frozen=True, config=STRICT, kw_only=True)
class LogLikelihoodTask(TextTask):
    """Ask how likely the target is, and whether it is what the model would write greedily.

    The target follows the context as it is, without a delimiter.
    """

    kind: ClassVar[str] = "loglikelihood"
    output_type: ClassVar[str] = "loglikelihood"

    def __post_init__(self) -> None:
        required(self, "doc_to_text", "doc_to_target")

    def gold(self, record: Record) -> tuple[Any, dict[str, Any]]:
        """Return the target and its reference; errors as `typed_reference`."""
        target = self.texts.target(record)
        return target, typed_reference(target, self.answer_type, record)

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """Return one request."""
        return (LogLikelihood(self.context(sample), (str(sample.target),)),)
