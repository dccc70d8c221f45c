"""The embedded search: a catalogue out of a file of conversations, ranked by words."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from xpe.errors import ConfigError, DataError, DataFileError
from xpe.models.bm25 import Bm25, words
from xpe.types import Asked, Failure, Generate, Origin, Retrieve, Retrieved


def tool(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "description": description}


@pytest.fixture
def search_of(tmp_path: Path):
    def make(*records: Any) -> Bm25:
        path = tmp_path / "talks.json"
        path.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
        return Bm25(data=str(path))

    return make


def test_the_catalogue_is_the_union_of_fields_and_results(search_of) -> None:
    """`tools` as text and as a list, and what results show; each name once, the first stays."""
    search = search_of(
        {"tools": json.dumps([tool("a", "one")])},
        {"tools": [tool("b", "two"), tool("a", "again")]},
        {
            "conversations": [
                {"from": "human", "value": json.dumps([tool("no", "x")])},
                {"from": "observation", "value": json.dumps({"found": [tool("c", "three")]})},
            ]
        },
        {"messages": [{"role": "tool", "content": json.dumps([tool("d", "four")])}]},
    )

    assert [(one["name"], one["description"]) for one in search.catalogue] == [
        ("a", "one"),
        ("b", "two"),
        ("c", "three"),
        ("d", "four"),
    ]


def test_words_of_names_and_of_both_languages() -> None:
    """Names are cut where they are joined; Chinese by jieba; no punctuation."""
    assert words("getAirQuality") == ["get", "air", "quality"]
    assert words("query_visitor-flow") == ["query", "visitor", "flow"]
    assert words("查询城市天气，预报！") == ["查询", "城市", "天气", "预报"]


def test_scores_by_the_formula(search_of) -> None:
    """Beside the formula itself: log((N+1)/df) · tf(k1+1)/(tf + k1(1−b+b·len/mean))."""
    texts = {"w": "weather weather today", "x": "weather", "y": "train today late"}
    search = search_of({"tools": [tool(name, text) for name, text in texts.items()]})
    documents = {name: [name, *text.split()] for name, text in texts.items()}
    mean = sum(map(len, documents.values())) / 3

    def score(name: str, query: list[str]) -> float:
        total = 0.0
        for word in query:
            frequency = documents[name].count(word)
            share = sum(word in one for one in documents.values())
            if share:
                norm = 1.5 * (1 - 0.75 + 0.75 * len(documents[name]) / mean)
                total += math.log(4 / share) * frequency * 2.5 / (frequency + norm)
        return total

    for query in ("weather", "today train", "late weather today"):
        expected = sorted(texts, key=lambda name: -score(name, query.split()))
        found = search.search(query, 3)
        assert found == tuple(name for name in expected if score(name, query.split()) > 0)
        scores = search._index.get_scores(query.split())
        assert scores.tolist() == pytest.approx([score(name, query.split()) for name in texts])


def test_ties_keep_the_order_of_the_file_and_strangers_find_nothing(search_of) -> None:
    """The same query gives the same names on every machine."""
    search = search_of({"tools": [tool(name, "same words") for name in "cab"]})

    assert search.search("same", 2) == ("c", "a")
    assert search.search("nothing", 5) == ()
    assert search.search("", 5) == ()


def test_it_answers_requests_to_retrieve(search_of) -> None:
    """And refuses to write."""
    search = search_of({"tools": [tool("a", "one"), tool("b", "two")]})
    asked = [
        Asked(Origin("t", n, 1, 0), one)
        for n, one in enumerate((Retrieve("two", 5), Generate("two")))
    ]
    found = [pair[1] for pair in search.reply([*asked, None]) if pair]

    assert found[0] == Retrieved(("b",))
    assert isinstance(found[1], Failure)


def test_another_catalogue_is_another_identity(search_of) -> None:
    """Stored results do not survive a change of the file."""
    one = search_of({"tools": [tool("a", "one")]}).identity
    assert one != search_of({"tools": [tool("a", "two")]}).identity
    assert one == search_of({"tools": [tool("a", "one")]}).identity


def test_what_is_wrong_is_said_before_the_run(search_of) -> None:
    """No file, no such file, no tool."""
    with pytest.raises(ConfigError, match="name the file"):
        Bm25().check()
    with pytest.raises(DataFileError, match="no file"):
        Bm25(data="missing/talks.json").check()
    with pytest.raises(DataError, match="no definition of a tool in 1 records"):
        search_of({"tools": "[]"}).check()
