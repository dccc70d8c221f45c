"""The texts of one document: question, target, choices, and the turns made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xpe.data.documents import Record
from xpe.errors import FieldTypeError, MissingFieldError
from xpe.tasks import template
from xpe.tasks.prompt import Turn, answer_text, question_turns
from xpe.tasks.template import Template


@dataclass(frozen=True)
class Texts:
    """Templates of a task, or of its few-shot examples."""

    doc_to_text: Template | None
    doc_to_target: Template | None
    doc_to_choice: Template | None
    gen_prefix: str | None
    target_delimiter: str
    fewshot_delimiter: str

    def question(self, record: Record) -> str | int:
        """Return the question; an int is the index of a choice (see `multiple_inputs`)."""
        found = "" if self.doc_to_text is None else self._value("doc_to_text", record)
        return found if isinstance(found, int) else str(found)

    def target(self, record: Record) -> Any:
        """Return the gold as the task states it: text, number, index or list."""
        found = self._value("doc_to_target", record)
        rendered = self._rendered("doc_to_target", record) and isinstance(found, str)
        return template.literal(found) if rendered else found

    def choices(self, record: Record) -> tuple[str, ...]:
        """Return the choices as text; errors as `stated_choices`."""
        return tuple(str(choice) for choice in self.stated_choices(record))

    def stated_choices(self, record: Record) -> tuple[Any, ...]:
        """Return the choices as the document has them; none without `doc_to_choice`.

        Raises
        ------
        FieldTypeError
            If it gives no list.
        """
        if self.doc_to_choice is None:
            return ()
        found = template.value(self.doc_to_choice, record)
        found = template.literal(found) if isinstance(found, str) else found
        if isinstance(found, dict):
            found = tuple(found.values())
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise FieldTypeError(
                f"{record.place}: doc_to_choice {self.doc_to_choice!r} gives {found!r}, "
                "expected a list of choices"
            )
        return tuple(found)

    def prefix(self, record: Record) -> str:
        """Return the beginning of the answer that the model continues."""
        return str(template.value(self.gen_prefix, record)) if self.gen_prefix else ""

    def turns(
        self, record: Record, question: str | None = None, *, answered: bool = False
    ) -> tuple[Turn, ...]:
        """Return the turns of a document; `question` replaces its own, and joins no delimiter."""
        choices = self.choices(record)
        asked = self.question(record) if question is None else question
        return question_turns(
            answer_text(asked, choices),
            self.target(record) if answered else None,
            choices,
            gen_prefix=self.prefix(record),
            target_delimiter=self.target_delimiter if question is None else "",
            fewshot_delimiter=self.fewshot_delimiter,
        )

    def check(self, record: Record) -> None:
        """Refuse templates that are a bare word but no field.

        Raises
        ------
        MissingFieldError
            Names the template and the fields there are.
        """
        for name in ("doc_to_text", "doc_to_target", "doc_to_choice"):
            try:
                template.needs_field(getattr(self, name), record)
            except MissingFieldError as error:
                raise MissingFieldError(f"{name}: {error}") from None

    def _value(self, name: str, record: Record) -> Any:
        found = template.value(getattr(self, name), record)
        # As the harness: digits that were rendered are an index where there are choices.
        if self.doc_to_choice is not None and self._rendered(name, record):
            return int(found) if found.isascii() and found.isdigit() else found
        return found

    def _rendered(self, name: str, record: Record) -> bool:
        stated = getattr(self, name)
        return isinstance(stated, str) and stated not in record.doc
