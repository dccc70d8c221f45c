"""Conversations with tools: each call and each answer of a record is predicted by itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from xpe.data.documents import Documents
from xpe.data.source import Source
from xpe.errors import DataError
from xpe.registry import STRICT
from xpe.tasks.base import source_of
from xpe.tasks.conversations import Conversation, Pair, Turn, read
from xpe.tasks.generation import MAX_TOKENS, generate_settings
from xpe.tasks.recall import calls_made, retrievals
from xpe.tasks.selection import chosen, sharded
from xpe.tasks.tool_prompt import Style, messages_before
from xpe.types import Answer, Dialogue, Exchange, Generate, Sample

log = logging.getLogger(__name__)

_DEFAULT_MAX_TOKENS = 512
_NAMED = 5


def _evaluators() -> dict[str, dict[str, Any]]:
    return {"tool_call": {}}


@dataclass(frozen=True, config=STRICT, kw_only=True)
class ToolCall:
    """One sample is one conversation; its pairs are asked at once, each with what came before.

    Parameters
    ----------
    name, display_name
        ASCII id; the name that people read.
    data
        The conversations; a string is a path.
    default_system
        The system prompt of records that have none; None: such a record is an error.
    on_error
        Whether a record that cannot be read ends the run or is left out and counted.
    tool_style
        Whether tools go to the model as such, or stand in the system prompt.
    retrieval_tool, query_argument
        The tool whose calls are checked for recall (None: any), and its argument with the query.
    recall
        Whether somebody can be asked to retrieve; set by the run.
    generation_kwargs
        As of the kind `generation`; `max_gen_toks` is 512 if not given, and nothing stops early.
    limit, sample_ids
        The first so many records (a share where below 1), or these.
    shard
        `1/4`: of the records that are left, the first of four shards.
    """

    kind: ClassVar[str] = "tool_call"

    name: str = Field(pattern=r"^[!-~]+$")
    display_name: str | None = None
    data: Annotated[Source, BeforeValidator(source_of)]
    default_system: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    tool_style: Style = "prompt"
    retrieval_tool: str | None = "retrieval_tool"
    query_argument: str = "query"
    recall: bool = False
    generation_kwargs: dict[str, Any] = Field(default_factory=dict)
    limit: int | float | None = None
    sample_ids: tuple[int, ...] | None = None
    shard: str | None = None
    evaluators: dict[str, dict[str, Any]] = Field(default_factory=_evaluators)
    metrics: tuple[str | dict[str, Any], ...] | None = None
    version: str = "1.0"
    metadata: dict[str, Any] = Field(default_factory=dict)
    remap: dict[str, str] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self.settings

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Generate`, all but prompt and tools."""
        given = dict(self.generation_kwargs)
        if not any(name in given for name in MAX_TOKENS):
            given["max_gen_toks"] = _DEFAULT_MAX_TOKENS
        return generate_settings(given)

    # --- data ------------------------------------------------------------------------------

    @cached_property
    def documents(self) -> Documents:
        """All records, loaded once."""
        return self.data.load(self.remap)

    @property
    def n_original(self) -> int:
        """Number of records before `limit`, `samples` and what is left out."""
        return len(self.documents)

    @property
    def source(self) -> str:
        """Where the records come from, as the task states it."""
        return self.data.path

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return self.documents.digest

    @cached_property
    def conversations(self) -> Mapping[int, Conversation]:
        """The records to evaluate, by their place in the file.

        Raises
        ------
        DataError
            One cannot be read and `on_error` is `raise`, or none can.
        """
        found: dict[int, Conversation] = {}
        skipped: list[str] = []
        ids = sharded(chosen(self.n_original, self.limit, self.sample_ids), self.shard)
        for doc_id in ids:
            try:
                found[doc_id] = read(self.documents.record(doc_id), self.default_system)
            except DataError as error:
                if self.on_error == "raise":
                    raise
                skipped.append(str(error))
        if skipped:
            log.warning("%s: %d records are left out: %s", self.name, len(skipped), _few(skipped))
        if ids and not found:
            raise DataError(f"{self.documents.label}: no record can be read. {_few(skipped)}")
        self._tell(found)
        return found

    def _tell(self, found: Mapping[int, Conversation]) -> None:
        odd = {
            "a result without a call before it; it is shown as text of the user": [
                doc_id for doc_id, made in found.items() if made.results_without_calls
            ],
            "a call that cannot be read; a pair that wants it is invalid": [
                doc_id
                for doc_id, made in found.items()
                if any(turn.calls is None for turn in made.turns)
            ],
            "no system prompt; default_system stands in": [
                doc_id for doc_id in found if "system" not in self.documents.record(doc_id).doc
            ],
        }
        for what, ids in odd.items():
            if ids:
                log.warning(
                    "%s: %d of %d records have %s: %s",
                    self.name,
                    len(ids),
                    len(found),
                    what,
                    _few([str(doc_id) for doc_id in ids], ", "),
                )

    def samples(self) -> Sequence[Sample]:
        """Return the conversations to evaluate, in the order of doc ids; loaded once."""
        return self._samples

    @cached_property
    def _samples(self) -> tuple[Sample, ...]:
        return tuple(
            Sample(
                task=self.name,
                doc_id=doc_id,
                doc=self.documents.record(doc_id).doc,
                target=[conversation.turns[pair.at].text for pair in conversation.pairs],
                reference=self._reference(conversation),
            )
            for doc_id, conversation in self.conversations.items()
        )

    def _reference(self, conversation: Conversation) -> dict[str, Any]:
        pairs = conversation.pairs
        places = {pair.at: place for place, pair in enumerate(pairs)}
        golds = [_gold(pair, conversation.turns[pair.at]) for pair in pairs]
        for place, pair in enumerate(pairs):
            if pair.first is not None:
                golds[places[pair.first]]["next"] = place
        recall = {"tool": self.retrieval_tool, "argument": self.query_argument}
        return {"pairs": golds, "recall": recall if self.recall else None}

    # --- what is asked ------------------------------------------------------------------------

    def request(self, conversation: Conversation, pair: Pair) -> Generate:
        """Return the question for one pair."""
        native = self.tool_style == "native"
        return Generate(
            messages_before(conversation, pair.at, self.tool_style),
            tools=conversation.tools_before(pair.at) if native else (),
            **self.settings,
        )

    def dialogue(self, sample: Sample, /) -> Dialogue:
        """Ask for all pairs at once, then retrieve what the right calls of pairs 1 ask for."""
        conversation = self.conversations[sample.doc_id]
        asked = tuple(self.request(conversation, pair) for pair in conversation.pairs)
        replies = yield asked
        exchanges = [Exchange(a, b) for a, b in zip(asked, replies, strict=True)]
        made = [calls_made(reply) for reply in replies]
        queries = tuple(retrievals(sample.reference, made).values())
        if queries:
            found = yield queries
            exchanges += [Exchange(a, b) for a, b in zip(queries, found, strict=True)]
        return Answer(sample, tuple(exchanges))

    def check(self) -> None:
        """Read all records and render the first prompts.

        Raises
        ------
        DataError
            If the file or a record is wrong, or no record holds a pair; names file and record.
        """
        if not self.samples():
            return
        if not any(sample.reference["pairs"] for sample in self.samples()):
            raise DataError(
                f"{self.documents.label}: no pair in {len(self.samples())} records; expected a "
                "function_call after human or observation, or gpt after observation"
            )
        first = next(made for made in self.conversations.values() if made.pairs)
        for pair in first.pairs:
            self.request(first, pair)


def _gold(pair: Pair, turn: Turn) -> dict[str, Any]:
    if pair.kind == 3:
        return {"kind": 3, "answer": turn.text}
    made = turn.calls
    return {
        "kind": pair.kind,
        "calls": None if made is None else [call._asdict() for call in made],
    }


def _few(texts: Sequence[str], joint: str = "; ") -> str:
    more = len(texts) - _NAMED
    return joint.join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
