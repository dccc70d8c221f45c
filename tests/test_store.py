"""The store: what is committed is there, whatever happened to the process or the file."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from players import BatchedModel, StreamingModel

from xpe.errors import StoreError
from xpe.records import from_json, to_json
from xpe.store import Store, StoredModel, waves
from xpe.types import Asked, Failure, Generate, Generated, LogLikelihood, Origin, Rolling, Scored


def ask(doc_id: int, prompt: str | None = None, **settings: object) -> Asked:
    request = Generate(prompt or f"p{doc_id}", **settings)  # type: ignore[arg-type]
    return Asked(Origin("toy", doc_id, 0, 0), request)


def test_replies_are_asked_once(tmp_path: Path) -> None:
    """A second run over the same store asks the model nothing and gets the same replies."""
    asked = [ask(i) for i in range(5)]
    first, second = StreamingModel(), StreamingModel()
    with Store(tmp_path / "s.sqlite") as store:
        once = list(StoredModel(first, store).reply(asked))
        twice = [got for got in StoredModel(second, store).reply(asked) if got]

    assert len(first.asked) == 5
    assert second.asked == []
    assert twice == [got for got in once if got]


class Hesitant(StreamingModel):
    """Answers what it took only when there is nothing more to take."""

    def reply(self, asked):  # type: ignore[no-untyped-def]
        under_way = []
        for one in asked:
            under_way += [one] if one else []
            yield None
        yield from ((one, self.answer(one)) for one in under_way)


def test_equal_requests_under_way_are_asked_once(tmp_path: Path) -> None:
    """What is asked while an equal request is under way gets its reply, a failure too."""
    asked = [ask(0, "same"), ask(1, "other"), ask(2, "same"), ask(3, "bad"), ask(4, "bad")]
    model = Hesitant(fails={3: Failure("server", "500")})
    with Store(tmp_path / "s.sqlite") as store:
        pairs = [pair for pair in StoredModel(model, store).reply(asked) if pair]
    got = {one.origin: reply for one, reply in pairs}

    assert [one.origin.doc_id for one in model.asked] == [0, 1, 3]
    assert [got[one.origin] for one in asked] == [
        Generated("0"), Generated("1"), Generated("0"), *[Failure("server", "500")] * 2
    ]  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        ask(0, "another prompt"),
        ask(0, max_tokens=3),
        ask(0, stop=("\n",)),
        ask(0, temperature=1.0, seed=1),
        ask(0, temperature=1.0, seed=2),
        ask(0, extra={"min_p": 0.1}),
    ],
)
def test_key_covers_what_decides_the_reply(tmp_path: Path, other: Asked) -> None:
    """A request that differs in anything that decides its reply is asked anew."""
    model = StreamingModel()
    with Store(tmp_path / "s.sqlite") as store:
        list(StoredModel(model, store).reply([ask(0)]))
        list(StoredModel(model, store).reply([other]))

    assert len(model.asked) == 2


def test_a_model_that_waits_gives_the_others_their_turn(tmp_path: Path) -> None:
    """A judge has nothing to do until the model has answered; it must not be waited for."""
    with Store(tmp_path / "s.sqlite") as store:
        replies = StoredModel(StreamingModel(), store).reply([None, ask(0), None])

        assert [got if got is None else got[0] for got in replies] == [None, ask(0), None]


def test_key_covers_the_model(tmp_path: Path) -> None:
    """One model's replies are not served as another's."""
    other = StreamingModel(name="other")
    with Store(tmp_path / "s.sqlite") as store:
        list(StoredModel(StreamingModel(), store).reply([ask(0)]))
        list(StoredModel(other, store).reply([ask(0)]))

    assert len(other.asked) == 1


def test_failures_are_not_kept(tmp_path: Path) -> None:
    """A failure is no answer: the next run asks again."""
    failing = StreamingModel(fails={0: Failure("timeout", "60 s")})
    healthy = StreamingModel()
    with Store(tmp_path / "s.sqlite") as store:
        list(StoredModel(failing, store).reply([ask(0)]))
        ((_, reply),) = StoredModel(healthy, store).reply([ask(0)])  # type: ignore[misc]

    assert reply == Generated("0")


def test_half_done_batch_is_done_again_whole(tmp_path: Path) -> None:
    """After a stop in a later batch the plan is the same, and only whole batches are reused."""
    asked = [ask(i) for i in range(6)]
    dying, next_one, undisturbed = BatchedModel(dies_after=2), BatchedModel(), BatchedModel()
    with Store(tmp_path / "s.sqlite") as store:
        with pytest.raises(KeyboardInterrupt):
            list(StoredModel(dying, store).reply(asked))
        resumed = list(StoredModel(next_one, store).reply(asked))
    with Store(tmp_path / "t.sqlite") as store:
        whole = list(StoredModel(undisturbed, store).reply(asked))

    assert [len(m.batches) for m in (dying, next_one, undisturbed)] == [2, 1, 3]
    assert next_one.batches == undisturbed.batches[2:]
    assert [one for one, _ in resumed] == [one for one, _ in whole]  # type: ignore[misc]


def test_equal_requests_of_a_wave_are_computed_once(tmp_path: Path) -> None:
    """Two documents with the same prompt get one reply, so that a resume cannot split them."""
    asked = [ask(0, "same"), ask(1, "same"), ask(2)]
    model = BatchedModel()
    with Store(tmp_path / "s.sqlite") as store:
        replies = list(StoredModel(model, store).reply(asked))

    assert len(replies) == 3
    assert len(model.asked) == 2


def test_waves_split_at_none() -> None:
    """A wave is what can be asked at once; an empty one says that nothing can."""
    one, two = ask(1), ask(2)

    assert list(waves([one, two, None, None, one])) == [[one, two], [], [one]]


def test_expect_refuses_other_data(tmp_path: Path) -> None:
    """A run goes on only with the data that it was begun with."""
    with Store(tmp_path / "s.sqlite") as store:
        store.expect("data", {"toy": "abc"})
        list(StoredModel(StreamingModel(), store).reply([ask(0)]))
        store.expect("data", {"toy": "abc"})
        with pytest.raises(StoreError, match=r"toy: 'abc' \(now 'xyz'\).*fresh=true"):
            store.expect("data", {"toy": "xyz"})


def test_expect_takes_other_data_while_there_is_no_reply(tmp_path: Path) -> None:
    """What failed before the first reply can be mended; no answer to the old data stays."""
    with Store(tmp_path / "s.sqlite") as store:
        store.expect("data", {"toy": "abc"})
        store.keep_answer("toy", 7, {"doc_id": 7})
        store.expect("data", {"toy": "xyz"})

        assert store["data"] == {"toy": "xyz"}
        assert list(store.answers("toy")) == []


def test_answers_come_in_document_order(tmp_path: Path) -> None:
    """Sample lines are written in the order of doc ids, and written again they are replaced."""
    with Store(tmp_path / "s.sqlite") as store:
        for doc_id in (10, 2, 1, 2):
            store.keep_answer("toy", doc_id, {"doc_id": doc_id, "text": "肝"})

        assert list(store.answers("toy")) == [
            f'{{"doc_id": {i}, "text": "肝"}}' for i in (1, 2, 10)
        ]


def test_survives_kill(tmp_path: Path) -> None:
    """What was committed before a kill -9 is there after it."""
    code = f"""
        import os, signal
        from xpe.store import Store
        from xpe.types import Generated
        store = Store(__import__("pathlib").Path({str(tmp_path / "s.sqlite")!r}))
        for i in range(100):
            store.keep([(f"k{{i}}", Generated(str(i)))])
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    with Store(tmp_path / "s.sqlite") as store:
        found = store.replies([f"k{i}" for i in range(100)])

    assert done.returncode == -signal.SIGKILL
    assert found == [Generated(str(i)) for i in range(100)]


@pytest.mark.parametrize("cut", [1, 3000])
def test_torn_log_tail_is_repaired(tmp_path: Path, cut: int) -> None:
    """A write-ahead log torn at any place loses its last transactions and nothing else."""
    path = tmp_path / "s.sqlite"
    code = f"""
        import os
        from pathlib import Path
        from xpe.store import Store
        from xpe.types import Generated
        store = Store(Path({str(path)!r}))
        for i in range(20):
            store.keep([(f"k{{i}}", Generated("x" * 500))])
        os._exit(0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    wal = path.with_name(path.name + "-wal")
    os.truncate(wal, wal.stat().st_size - cut)
    with Store(path) as store:
        found = store.replies([f"k{i}" for i in range(20)])

    assert found[:18] == [Generated("x" * 500)] * 18
    assert found[-1] is None


def test_damaged_file_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that is no longer a database is kept beside, with a warning, and the run goes on."""
    path = tmp_path / "s.sqlite"
    path.write_bytes(b"not a database" * 1000)
    with Store(path) as store:
        store.keep([("k", Generated("x"))])

        assert store.replies(["k"]) == [Generated("x")]
    assert path.with_suffix(".damaged").exists()
    assert "was damaged" in caplog.text


def test_tables_of_another_version_are_set_aside(tmp_path: Path) -> None:
    """A sound database with other columns is no checkpoint of this version."""
    path = tmp_path / "s.sqlite"
    with sqlite3.connect(path) as old:
        old.execute("CREATE TABLE replies (id INTEGER, model TEXT, content TEXT)")
        old.execute("INSERT INTO replies VALUES (1, 'm', 'x')")
    old.close()
    with Store(path) as store:
        assert store.replies(["k"]) == [None]
    assert path.with_suffix(".damaged").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "spoken"}', '{"type": "generated"}'])
def test_a_stored_reply_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    """One that was edited, or written by another version, is no answer of the model."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store.keep([("k", Generated("x"))])
    with sqlite3.connect(path) as edited:
        edited.execute("UPDATE replies SET reply = ?", (text,))
    edited.close()
    with Store(path) as store, pytest.raises(StoreError, match=r"s\.sqlite: .*fresh=true"):
        store.replies(["k"])


def test_half_characters_are_kept(tmp_path: Path) -> None:
    """A server that cuts an emoji in two costs no run: its reply comes back as it was."""
    with Store(tmp_path / "s.sqlite") as store:
        store.keep([("k", Generated("ok \ud83d"))])
        store.keep_answer("toy", 0, {"text": "\ud83d"})

        assert store.replies(["k"]) == [Generated("ok \ud83d")]
        assert [json.loads(line) for line in store.answers("toy")] == [{"text": "\ud83d"}]


texts = st.text(max_size=30)
floats = st.floats(allow_nan=False, allow_infinity=False)
parts = st.one_of(
    st.builds(Generate, texts, st.integers(1, 99), st.lists(texts, max_size=2).map(tuple)),
    st.builds(LogLikelihood, texts, st.lists(texts, min_size=1, max_size=3).map(tuple)),
    st.builds(Rolling, texts),
    st.builds(Generated, texts, st.sampled_from(["stop", "length"]), texts, st.integers(0, 9)),
    st.builds(
        lambda rows, cut: Scored(*zip(*rows, strict=True), prompt_truncated=cut),
        st.lists(st.tuples(floats, st.booleans(), st.integers(0, 9)), min_size=1, max_size=3),
        st.booleans(),
    ),
    st.builds(Failure, texts, texts),
)


@given(parts)
def test_records_come_back_equal(part: object) -> None:
    """A request or reply written as JSON comes back the same, floats to the last bit."""
    import json

    from xpe.records import canonical

    assert from_json(json.loads(canonical(to_json(part)))) == part  # type: ignore[arg-type]
