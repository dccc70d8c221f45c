"""Multiple choice by log likelihood: the choice whose text is most likely is the answer."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic.dataclasses import dataclass

from xpe.data.documents import Record
from xpe.errors import DataError
from xpe.registry import STRICT
from xpe.tasks.base import TextTask, required
from xpe.tasks.choices import check_choices, choice_reference, gold_index, harness_gold
from xpe.types import LogLikelihood, Request, Sample


@dataclass(frozen=True, config=STRICT, kw_only=True)
class MultipleChoice(TextTask):
    """Ask for the log likelihood of every choice after the question.

    The gold is an index from 0 or the text of a choice; a list of them where several are right.
    Where `doc_to_text` gives an index, the questions are the choices and `doc_to_target` is the
    text that is scored after each of them; there is then one request a choice. With the metric
    `acc_mutual_info`, the requests are followed by the same ones with an empty context.
    """

    kind: ClassVar[str] = "multiple_choice"
    output_type: ClassVar[str] = "multiple_choice"

    def __post_init__(self) -> None:
        required(self, "doc_to_text", "doc_to_target", "doc_to_choice")

    def gold(self, record: Record) -> tuple[Any, dict[str, Any]]:
        """Return the gold index (a list of them where the task gives a list) and reference.

        Raises
        ------
        DataError
            If choices are empty or doubled, or the gold is none of them.
        """
        written = self.texts.stated_choices(record)
        choices = tuple(map(str, written))
        stated = self.texts.question(record) if self.multiple_inputs else self.texts.target(record)
        several = list(stated) if isinstance(stated, (list, tuple)) else [stated]
        if self.compat == "lm_eval":
            golds = [harness_gold(gold, choices) for gold in several]
        else:
            check_choices(written, record.place)
            golds = [gold_index(gold, choices, record.place) for gold in several]
        if not golds:
            raise DataError(f"{record.place}: doc_to_target gives an empty list, expected a gold")
        target = golds if isinstance(stated, (list, tuple)) else golds[0]
        return target, choice_reference(golds, choices)

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """Return one request for all choices, or one a choice for multiple inputs."""
        record = self.documents.record(sample.doc_id)
        choices, delimiter = self.texts.choices(record), self._delimiter(record)
        if self.multiple_inputs:
            continuation = delimiter + str(self.texts.target(record))
            asked = [
                LogLikelihood(self.context(sample, choice), (continuation,)) for choice in choices
            ]
        else:
            continuations = tuple(delimiter + choice for choice in choices)
            asked = [LogLikelihood(self.context(sample), continuations)]
        if "acc_mutual_info" in self._metric_names:
            asked.append(LogLikelihood("", tuple(delimiter + choice for choice in choices)))
        return tuple(asked)

    def _delimiter(self, record: Record) -> str:
        if not self.chat:
            return self.target_delimiter
        # The harness looks at the template of the prefix, not at what it renders to.
        stated = self.gen_prefix if self.compat == "lm_eval" else self.texts.prefix(record)
        prefix = stated or ""
        return self.target_delimiter if prefix and not prefix[-1].isspace() else ""

    @property
    def _metric_names(self) -> set[str]:
        stated = self.metrics or ()
        return {m if isinstance(m, str) else str(m.get("metric")) for m in stated}
