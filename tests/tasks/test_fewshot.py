from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.data.documents import Documents
from xpe.data.source import Source
from xpe.errors import DataError
from xpe.tasks.fewshot import Draws, harness_draws
from xpe.tasks.generation import Generation

Write = Callable[..., str]


def numbered(size: int, label: str = "a") -> Documents:
    rows = [{"q": f"{label}{i}"} for i in range(size)]
    return Documents(rows, label, label, identity=label)


def equal(record: Any, shot: Any) -> bool:
    return record.doc == shot.doc


def task(path: str, **settings: Any) -> Generation:
    return Generation(
        **{
            "name": "t",
            "data": Source(path=path),
            "doc_to_text": "q",
            "doc_to_target": "a",
            "num_fewshot": 3,
            **settings,
        }
    )


def rows(size: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"q": f"question {i}", "a": f"answer {i}"} for i in range(first, first + size)]


@pytest.mark.shared
def test_draws_of_the_harness(harness_cases: Callable[[str], list[dict[str, Any]]]) -> None:
    """In compat mode every draw is the harness's own."""
    for case in harness_cases("sampler.default"):
        size, n, seed, n_docs, exclude = case["args"]
        pool = list(range(size))
        draws = harness_draws(pool, pool[:n_docs], n, seed, exclude=exclude)
        if "raises" in case:
            with pytest.raises(ValueError):
                list(draws)
        else:
            assert [list(draw) for draw in draws] == case["expect"], case


@pytest.mark.shared
def test_first_examples_of_the_harness(
    harness_cases: Callable[[str], list[dict[str, Any]]],
) -> None:
    """`first_n` skips the document, where that is asked for."""
    for case in harness_cases("sampler.first_n"):
        size, n, doc = case["args"]
        draws = harness_draws(range(size), [doc], n, 1, sampler="first_n", exclude=doc is not None)
        if "raises" in case:
            with pytest.raises(DataError):
                list(draws)
        else:
            assert [list(draw) for draw in draws] == [case["expect"]], case


@given(st.integers(2, 30), st.data())
def test_a_document_is_never_its_own_example(size: int, data: st.DataObject) -> None:
    """Neither by index nor, in another pool, by content; and no example comes twice."""
    n = data.draw(st.integers(1, size - 1))
    doc_id = data.draw(st.integers(0, size - 1))
    seed = data.draw(st.integers(0, 2**32))
    documents = numbered(size)
    other = Documents(tuple(reversed(documents.rows)), "b", "b", identity="b")
    for pool, own in ((documents, doc_id), (other, size - 1 - doc_id)):
        draws = Draws(pool, documents, equal)
        for taken in (draws.random(doc_id, n, seed, "t"), draws.first(doc_id, n)):
            assert len(set(taken)) == n
            assert own not in taken


def test_the_draw_is_uniform() -> None:
    """Each of 9 other documents is an example of document 0 in a third of 3,000 seeds.

    Binomial(3000, 1/3) has standard deviation 25.8; six of them are 155.
    """
    documents = numbered(10)
    draws = Draws(documents, documents, equal)
    counts = Counter(i for seed in range(3000) for i in draws.random(0, 3, seed, "t"))
    assert sorted(counts) == list(range(1, 10))
    assert all(abs(count - 1000) < 155 for count in counts.values())


def test_too_small_a_pool() -> None:
    """The message says how many there are, and for which document."""
    documents = numbered(4)
    draws = Draws(documents, documents, equal)
    with pytest.raises(DataError, match=r"num_fewshot=4, but a has 3 examples for a, record 2"):
        draws.random(1, 4, 1234, "t")


def test_examples_depend_on_seed_task_and_document_alone(rows_file: Write) -> None:
    """Limit, chosen ids and other documents move nothing."""
    path = rows_file(rows(20))
    whole = task(path)
    prompts = {s.doc_id: whole.context(s) for s in whole.samples()}
    for less in (task(path, limit=5), task(path, sample_ids=(13, 4))):
        for sample in reversed(less.samples()):
            assert less.context(sample) == prompts[sample.doc_id]
    for other in (task(path, fewshot_seed=1), task(path, name="u")):
        assert [other.examples(i) for i in range(20)] != [whole.examples(i) for i in range(20)]


@pytest.mark.parametrize("sampler", ["random", "default", "first_n"])
@pytest.mark.parametrize("pool", ["own", "file", "inline"])
def test_no_prompt_holds_its_own_answer(sampler: str, pool: str, rows_file: Write) -> None:
    """Whatever the pool: the documents themselves, a copy in another file, a list."""
    path = rows_file(rows(8))
    copy = [{"id": i, **row} for i, row in enumerate(reversed(rows(8)))]
    pools: dict[str, Any] = {
        "own": {},
        "file": {"source": {"path": rows_file(copy, "pool.jsonl")}},
        "inline": {"samples": copy},
    }
    checked = task(path, fewshot={"sampler": sampler, **pools[pool]}, num_fewshot=5)
    checked.check()
    for sample in checked.samples():
        prompt = str(checked.context(sample))
        assert prompt.count("question") == 6
        assert f"answer {sample.doc_id}\n" not in prompt


def test_check_finds_a_pool_that_is_too_small(rows_file: Write) -> None:
    """Before the run, also in compat mode."""
    path = rows_file(rows(4))
    for compat in (None, "lm_eval"):
        with pytest.raises(DataError, match="num_fewshot=4"):
            task(path, num_fewshot=4, compat=compat).check()


def test_examples_have_their_own_texts(rows_file: Write) -> None:
    """A pool may show a worked solution where the document has an answer only."""
    pool = rows_file([{"q": "one?", "how": "It is 1."}], "pool.jsonl")
    shown = task(
        rows_file(rows(2)),
        num_fewshot=1,
        fewshot={
            "source": Source(path=pool),
            "doc_to_text": "Example: {{ q }}",
            "doc_to_target": "how",
            "target_delimiter": "\n",
            "fewshot_delimiter": "\n###\n",
        },
    )
    shown.check()
    assert shown.context(shown.samples()[0]) == "Example: one?\nIt is 1.\n###\nquestion 0"


def test_another_split_is_the_pool(rows_file: Write) -> None:
    """`split` reads the same data set with another split."""
    path = rows_file(rows(3), "test.jsonl")
    rows_file(rows(3, first=50), "dev.jsonl")
    path = path.replace("test.jsonl", "{split}.jsonl")
    other = task(
        "x",
        data=Source(path=path, split="test"),
        fewshot={"split": "dev", "sampler": "first_n"},
        num_fewshot=1,
    )
    assert other.context(other.samples()[1]) == "question 50 answer 50\n\nquestion 1"


def test_in_compat_mode_a_limit_leaves_the_first_draws(rows_file: Write) -> None:
    """The harness draws document after document, so that the first ones stay the same."""
    path = rows_file(rows(20))
    whole, less = task(path, compat="lm_eval"), task(path, compat="lm_eval", limit=4)
    assert [whole.examples(i) for i in range(4)] == [less.examples(i) for i in range(4)]
