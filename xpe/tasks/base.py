"""What all tasks over documents share: data, prompt, few-shot examples, selection."""

from __future__ import annotations

import difflib
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from xpe.data.code import Function
from xpe.data.documents import Documents, Record
from xpe.data.processing import listed, processed
from xpe.data.source import Source
from xpe.errors import ConfigError, DataError
from xpe.registry import STRICT
from xpe.tasks import template
from xpe.tasks.fewshot import Draws, Fewshot, harness_draws, too_few
from xpe.tasks.prompt import Turn, join, messages, plain
from xpe.tasks.selection import chosen, sharded
from xpe.tasks.template import Template
from xpe.tasks.texts import Texts
from xpe.types import Answer, Dialogue, Exchange, Prompt, Request, Sample

ANSWER_TYPES = ("choice", "text", "number", "syndrome", "disease", "treatment")
"""Types of answers that our evaluators tell apart."""
_RENDERED_BY_CHECK = 3


def source_of(given: Any) -> Any:
    """Return the settings of a source; a string is its path."""
    return {"path": given} if isinstance(given, str) else given


def _no_flag(given: Any) -> Any:
    if isinstance(given, bool):
        raise ValueError(f"expected a count or a share, got {given}")  # noqa: TRY004 - for pydantic
    return given


@dataclass(frozen=True, config=STRICT, kw_only=True)
class TextTask(ABC):
    """A task whose samples are the documents of a data set and whose prompts are text.

    Parameters
    ----------
    name, display_name
        ASCII id; the name that people read.
    data, process_docs
        The documents, a string is a path; a function that makes the documents of the data set.
    doc_to_text, doc_to_target, doc_to_choice
        Question, gold and choices: a field's name, Jinja over the fields, or a plain value.
    description, system_instruction, gen_prefix
        What stands before the examples; what stands before that; how the answer begins.
    target_delimiter, fewshot_delimiter
        Between question and answer; between examples.
    fewshot, num_fewshot, fewshot_seed
        The examples; None is not stated (0 unless the run says otherwise).
    chat, fewshot_as_multiturn
        Whether prompts are chat messages; whether examples are turns of their own.
    limit, sample_ids
        The first so many documents (a share where below 1), or these ids.
    shard
        `1/4`: of the documents that are left, the first of four shards.
    repeats
        How often each question is asked.
    cluster
        The field that names what samples share chance with.
    answer_type
        Type of the reference (`number`, `syndrome` …); Jinja where a field holds it.
    evaluators, metrics
        Evaluators by name with their parameters; metrics by name. None: those of the kind.
    compat
        `lm_eval`: few-shot draw, limit and gold as lm-evaluation-harness has them.
    """

    kind: ClassVar[str]
    output_type: ClassVar[str]

    name: str = Field(pattern=r"^[!-~]+$")
    display_name: str | None = None
    data: Annotated[Source, BeforeValidator(source_of)]
    process_docs: Function | None = None
    doc_to_text: Template | None = None
    doc_to_target: Template | None = None
    doc_to_choice: Template | None = None
    description: str = ""
    system_instruction: str | None = None
    gen_prefix: str | None = None
    target_delimiter: str = " "
    fewshot_delimiter: str = "\n\n"
    fewshot: Fewshot = Field(default_factory=Fewshot)
    num_fewshot: int | None = Field(default=None, ge=0)
    fewshot_seed: int = 1234
    chat: bool | None = None
    fewshot_as_multiturn: bool = True
    limit: Annotated[int | float | None, BeforeValidator(_no_flag)] = None
    sample_ids: tuple[int, ...] | None = None
    shard: str | None = None
    repeats: int = Field(default=1, ge=1)
    cluster: str | None = None
    answer_type: str | None = None
    evaluators: dict[str, dict[str, Any]] = Field(default_factory=dict)
    metrics: tuple[str | dict[str, Any], ...] | None = None
    compat: Literal["lm_eval"] | None = None
    unsafe_code: bool = False
    modality: Literal["text", "image", "audio"] = "text"
    version: str = "1.0"
    metadata: dict[str, Any] = Field(default_factory=dict)
    remap: dict[str, str] = Field(default_factory=dict)

    # --- data ------------------------------------------------------------------------------

    @cached_property
    def documents(self) -> Documents:
        """All documents, loaded once."""
        return processed(self.process_docs, self.data.load(self.remap))

    @cached_property
    def pool(self) -> Documents:
        """The documents that examples are drawn from, loaded once."""
        shots = self.fewshot
        if shots.samples is not None:
            return listed(shots.samples, f"{self.name}.fewshot.samples")
        source = shots.source or self.data
        if shots.split:
            source = replace(source, split=shots.split)
        process_docs = shots.process_docs or self.process_docs
        if source == self.data and process_docs == self.process_docs:
            return self.documents
        return processed(process_docs, source.load(self.remap))

    @property
    def n_original(self) -> int:
        """Number of documents before `limit` and `samples`."""
        return len(self.documents)

    @property
    def source(self) -> str:
        """Where the documents come from, as the task states it."""
        return ":".join(filter(None, (self.data.path, self.data.name, self.data.split)))

    @property
    def shots(self) -> int:
        """Number of examples before each question."""
        return self.num_fewshot or 0

    @property
    def digest(self) -> str:
        """SHA-256 over the documents and, where examples are asked for, their pool."""
        if not self.shots:
            return self.documents.digest
        return hashlib.sha256((self.documents.digest + self.pool.digest).encode()).hexdigest()

    def samples(self) -> Sequence[Sample]:
        """Return the documents to evaluate, in the order of doc ids; loaded once."""
        return self._samples

    @cached_property
    def _samples(self) -> tuple[Sample, ...]:
        ids = sharded(self._chosen, self.shard)
        return tuple(self._sample(self.documents.record(doc_id)) for doc_id in ids)

    @cached_property
    def _chosen(self) -> Sequence[int]:
        """The ids of the documents of all shards."""
        harness = self.compat == "lm_eval"
        return chosen(self.n_original, self.limit, self.sample_ids, harness=harness)

    def _sample(self, record: Record) -> Sample:
        target, reference = self.gold(record)
        cluster = None if self.cluster is None else str(template.value(self.cluster, record))
        return Sample(self.name, record.index, record.doc, target, reference, cluster)

    # --- prompt ----------------------------------------------------------------------------

    @cached_property
    def texts(self) -> Texts:
        """Templates of the question that is asked."""
        return Texts(**{name: getattr(self, name) for name in Texts.__dataclass_fields__})

    @cached_property
    def shot_texts(self) -> Texts:
        """Templates of the examples."""
        return self.fewshot.texts(self.texts)

    @cached_property
    def multiple_inputs(self) -> bool:
        """Whether the questions are the choices and the answer is one text for all of them."""
        return isinstance(self.texts.question(self.documents.record(0)), int)

    def context(self, sample: Sample, question: str | None = None) -> Prompt:
        """Return all that comes before the answer: description, examples, question.

        `question` replaces that of the document.
        """
        record = self.documents.record(sample.doc_id)
        asked = self.texts.turns(record, question)
        system = self._system(record)
        shots = self.examples(sample.doc_id)
        if self.chat:
            turns = [turn for index in shots for turn in self._shot_turns(index)]
            said = [Turn("system", system)] if system else []
            return messages([*said, *turns, *asked], multiturn=self.fewshot_as_multiturn)
        return "".join((system, *(self._shot_text(index) for index in shots), plain(asked)))

    def examples(self, doc_id: int) -> tuple[int, ...]:
        """Return the indices in the pool of a document's examples, in their order.

        Raises
        ------
        DataError
            If the pool has too few.
        """
        if not self.shots:
            return ()
        if self.compat == "lm_eval":
            return self._harness_examples[doc_id]
        if doc_id not in self._drawn:
            self._drawn[doc_id] = self._draw(doc_id)
        return self._drawn[doc_id]

    def _draw(self, doc_id: int) -> tuple[int, ...]:
        if self.fewshot.sampler == "first_n":
            return self._draws.first(doc_id, self.shots)
        return self._draws.random(doc_id, self.shots, self.fewshot_seed, self.name)

    @cached_property
    def _drawn(self) -> dict[int, tuple[int, ...]]:
        return {}

    def _system(self, record: Record) -> str:
        said = str(template.value(self.description, record)) if self.description else ""
        return join(self.system_instruction, said, self.fewshot_delimiter)

    def _shot_turns(self, index: int) -> tuple[Turn, ...]:
        if index not in self._shots:
            record = self.pool.record(index)
            turns = self.shot_texts.turns(record, answered=True)
            self._shots[index] = turns, plain(turns)
        return self._shots[index][0]

    def _shot_text(self, index: int) -> str:
        self._shot_turns(index)
        return self._shots[index][1]

    @cached_property
    def _shots(self) -> dict[int, tuple[tuple[Turn, ...], str]]:
        return {}

    @cached_property
    def _draws(self) -> Draws:
        return Draws(self.pool, self.documents, self._same)

    def _same(self, record: Record, shot: Record) -> bool:
        """Whether an example asks what the document asks."""
        if record.doc == shot.doc:
            return True
        asked = self._asked(record, self.texts, self._questions)
        return any(asked) and asked == self._asked(shot, self.shot_texts, self._shot_questions)

    def _asked(
        self, record: Record, texts: Texts, memo: dict[int, tuple[str, ...]]
    ) -> tuple[str, ...]:
        if record.index not in memo:
            question = str(texts.question(record)).strip()
            memo[record.index] = (question, *texts.choices(record))
        return memo[record.index]

    @cached_property
    def _questions(self) -> dict[int, tuple[str, ...]]:
        return {}

    @cached_property
    def _shot_questions(self) -> dict[int, tuple[str, ...]]:
        return {}

    @cached_property
    def _harness_examples(self) -> dict[int, tuple[int, ...]]:
        n, stated = self.shots, self.fewshot
        same_split = not (stated.source or stated.samples) and stated.split == self.data.split
        exclude = same_split if stated.exclude is None else stated.exclude
        if len(self.pool) < n + exclude:
            raise too_few(n, len(self.pool) - exclude, self.pool, self.name)
        # One generator runs through the documents of all shards.
        docs = [self.documents.record(doc_id).doc for doc_id in self._chosen]
        draws = harness_draws(
            self.pool, docs, n, self.fewshot_seed, sampler=stated.sampler, exclude=exclude
        )
        return dict(zip(self._chosen, draws, strict=True))

    # --- what kinds say ---------------------------------------------------------------------

    @abstractmethod
    def gold(self, record: Record) -> tuple[Any, dict[str, Any]]:
        """Return the target of a document and its reference mapping."""

    @abstractmethod
    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """Return what is asked about a sample."""

    def dialogue(self, sample: Sample, /) -> Dialogue:
        """Ask everything at once and answer with it."""
        asked = self.requests(sample)
        replies = yield asked
        exchanges = (Exchange(a, b) for a, b in zip(asked, replies, strict=True))
        return Answer(sample, tuple(exchanges))

    # --- checks and record ------------------------------------------------------------------

    def check(self) -> None:
        """Load the data, render all questions and golds and the first prompts, draw examples.

        Raises
        ------
        ConfigError
            If settings contradict each other.
        DataError
            If a file, a record or the pool is wrong; names file and record.
        """
        if self.compat is None:
            self.texts.check(self.documents.record(0))
            template.needs_field(self.cluster, self.documents.record(0))
            if self.shots:
                self.shot_texts.check(self.pool.record(0))
        for sample in self.samples():
            self.texts.question(self.documents.record(sample.doc_id))
            self.examples(sample.doc_id)
        for sample in self.samples()[:_RENDERED_BY_CHECK]:
            self.requests(sample)


def typed_reference(target: Any, answer_type: str | None, record: Record) -> dict[str, Any]:
    """Return the reference of a free answer: `{answer: {type, value}}`.

    `answer_type` is text or Jinja. Several targets: the first is `value`, all are `values`.

    Raises
    ------
    DataError
        If there is no target, or the type is nearly but not quite one of `ANSWER_TYPES`.
    """
    several = list(target) if isinstance(target, (list, tuple)) else [target]
    if not several or any(value is None for value in several):
        raise DataError(f"{record.place}: doc_to_target gives {target!r}, expected an answer")
    numeric = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in several)
    named = "number" if numeric else "text"
    if answer_type is not None:
        named = template.render(answer_type, record)
        _check_type(named, record)
    answer: dict[str, Any] = {"type": named, "value": str(several[0])}
    if len(several) > 1:
        answer["values"] = [str(value) for value in several]
    return {"answer": answer}


def _check_type(named: str, record: Record) -> None:
    """Refuse a near miss, which would be compared as text without a word.

    Any other name may be a type of somebody's own evaluator.
    """
    near = difflib.get_close_matches(named.lower(), ANSWER_TYPES, n=1, cutoff=0.8)
    if near and named not in ANSWER_TYPES:
        raise DataError(f"{record.place}: answer_type is {named!r}. Did you mean {near[0]!r}?")


def required(task: TextTask, *names: str) -> None:
    """Refuse a task that lacks templates which its kind needs.

    Raises
    ------
    ConfigError
        Names the first that is missing.
    """
    for name in names:
        if getattr(task, name) is None:
            raise ConfigError(f"kind {task.kind} needs {name}")
