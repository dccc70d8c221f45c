"""Search among the tools of a file of conversations, by BM25 over words."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from xpe.data.source import Source
from xpe.errors import ConfigError, DataError, MissingExtraError
from xpe.records import canonical
from xpe.registry import STRICT
from xpe.tasks.base import source_of
from xpe.text.tokenisers import words_zh
from xpe.text.tools import tools_in
from xpe.types import Asked, Failure, Reply, Retrieve, Retrieved

_SPLIT = re.compile(r"[_\-./\s]+|(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"\w")
_RESULTS = frozenset({"observation", "tool", "function"})


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Bm25:
    """Finds tools by name, description and parameters; equal scores in the order of the file.

    The catalogue is the union of all `tools` fields and of the tools shown in results.

    Parameters
    ----------
    data, remap
        The file of conversations, where a string is a path; and what is read in its place, set
        by the run (`data.remap`).
    k1, b
        Saturation of repeated words and weight of the length, as Robertson and Zaragoza 2009.
    """

    cosmetic: ClassVar[tuple[str, ...]] = ("data",)

    data: Annotated[Source | None, BeforeValidator(source_of)] = None
    k1: float = Field(default=1.5, ge=0)
    b: float = Field(default=0.75, ge=0, le=1)
    remap: dict[str, str] = Field(default_factory=dict)

    def check(self) -> None:
        """Read the catalogue.

        Raises
        ------
        ConfigError
            No file is named.
        DataError
            There is no tool in it.
        MissingExtraError
            The `rank_bm25` package is not installed.
        """
        if importlib.util.find_spec("rank_bm25") is None:
            raise MissingExtraError.of("retrieval=bm25", "rank_bm25", "tools")
        _ = self.catalogue

    @cached_property
    def catalogue(self) -> tuple[Mapping[str, Any], ...]:
        """The tools that are searched, each name once."""
        if self.data is None:
            raise ConfigError("data: name the file of conversations whose tools are searched")
        documents = self.data.load(self.remap)
        found: dict[str, Mapping[str, Any]] = {}
        for doc in documents:
            for place in (doc.get("tools"), *_results(doc)):
                for tool in tools_in(place):
                    found.setdefault(tool["name"], tool)
        if not found:
            raise DataError(
                f"{documents.label}: no definition of a tool in {len(documents)} records"
            )
        return tuple(found.values())

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """See `types.Model`: the digest of the catalogue."""
        digest = hashlib.sha256(canonical(self.catalogue).encode()).hexdigest()
        return {"backend": "bm25", "catalogue": digest, "k1": self.k1, "b": self.b}

    @property
    def environment(self) -> Mapping[str, Any]:
        """What is reported beside the results."""
        return {"tools": len(self.catalogue)}

    def reply(self, asked: Iterable[Asked | None], /) -> Iterator[tuple[Asked, Reply] | None]:
        """Answer each request as it is pulled; see `types.Model`."""
        for one in asked:
            yield None if one is None else (one, self._answer(one))

    def _answer(self, asked: Asked) -> Reply:
        if not isinstance(asked.request, Retrieve):
            return Failure("bad_request", "retrieval=bm25 answers requests to retrieve only")
        return Retrieved(self.search(asked.request.query, asked.request.top_k))

    def search(self, query: str, top_k: int) -> tuple[str, ...]:
        """Return the names of the best tools, best first; none that shares no word."""
        scores_N = self._index.get_scores(words(query))
        order = sorted(range(len(scores_N)), key=lambda place: -scores_N[place])
        found = [place for place in order[:top_k] if scores_N[place] > 0]
        return tuple(self.catalogue[place]["name"] for place in found)

    @cached_property
    def _index(self) -> Any:
        from rank_bm25 import BM25Plus

        texts = [words(_text(tool)) for tool in self.catalogue]
        # The plain variant weighs a word that most tools have negatively.
        return BM25Plus(texts, k1=self.k1, b=self.b, delta=0)


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case, names of tools cut at `_`, `-` and capitals."""
    spaced = " ".join(_SPLIT.split(text))
    return [word.lower() for word in words_zh(spaced) if _WORD.search(word)]


def _text(tool: Mapping[str, Any]) -> str:
    properties = tool["parameters"].get("properties")
    said = [tool["name"], tool["description"]]
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        described = schema.get("description") if isinstance(schema, Mapping) else None
        said += [str(name), str(described or "")]
    return " ".join(said)


def _results(doc: Mapping[str, Any]) -> Iterator[Any]:
    messages = doc.get("conversations") or doc.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping) and message.get("from", message.get("role")) in _RESULTS:
            yield message.get("value", message.get("content"))
