"""Replies keyed by what was asked, and the answers of a run, in SQLite.

A reply is committed as it arrives; a batch of a model whose replies depend on what is computed
together is committed whole. SQLite's write-ahead log makes a kill at any moment harmless: what
was committed is there, a torn tail is dropped when the file is opened.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from xpe.errors import StoreError
from xpe.records import canonical, digest, from_json, to_json
from xpe.types import Asked, Batched, Failure, Model, Reply

log = logging.getLogger(__name__)

_SURROGATE = re.compile("[\ud800-\udfff]")

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    task TEXT, doc_id INTEGER, line TEXT NOT NULL, PRIMARY KEY (task, doc_id)
) WITHOUT ROWID;
"""


class Store:
    """Replies, answers and a few facts of one run, or the kept replies of many.

    Parameters
    ----------
    path
        The SQLite file; made if it is not there. A damaged one is set aside and what can still
        be read is carried over, with a warning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = _open(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the write-ahead log is folded into it."""
        self._db.close()

    def replies(self, keys: Sequence[str]) -> list[Reply | None]:
        """Return the stored reply of each key, None where there is none."""
        found: list[Reply | None] = []
        for key in keys:
            row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            found.append(None if row is None else self._read(row[0]))
        return found

    def _read(self, text: str) -> Reply:
        try:
            reply: Reply = from_json(json.loads(text), str(self.path))
        except (ValueError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{self.path}: a stored reply cannot be read ({error}): {text!r:.80}; it is of "
                "another version, or was edited. Start over with fresh=true"
            ) from error
        return reply

    @property
    def has_replies(self) -> bool:
        """Whether any reply is stored."""
        return self._db.execute("SELECT 1 FROM replies LIMIT 1").fetchone() is not None

    def keep(self, replies: Iterable[tuple[str, Reply]]) -> None:
        """Commit replies in one transaction."""
        rows = [(key, _storable(canonical(to_json(reply)))) for key, reply in replies]
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", rows)

    def keep_answer(self, task: str, doc_id: int, line: Mapping[str, Any]) -> None:
        """Commit the sample-file line of one answer."""
        text = json.dumps(line, ensure_ascii=False, allow_nan=False, default=str)
        with self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (task, doc_id, _storable(text))
            )

    def answers(self, task: str) -> Iterator[str]:
        """Yield the lines of a task in the order of doc ids."""
        rows = self._db.execute("SELECT line FROM answers WHERE task = ? ORDER BY doc_id", (task,))
        return (line for (line,) in rows)

    def __getitem__(self, key: str) -> Any:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def __setitem__(self, key: str, value: Any) -> None:
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, canonical(value)))

    def expect(self, key: str, value: Any) -> None:
        """Note a fact of the run, or check that it is still what it was.

        Without a reply (nothing was asked yet, or all is recorded elsewhere) the fact may change;
        answers that were made under the other one are dropped.

        Raises
        ------
        StoreError
            The run was begun with another value (other data, other weights).
        """
        value = json.loads(canonical(value))
        before = self[key]
        if before is not None and before != value and self.has_replies:
            raise StoreError(
                f"{self.path}: this run was begun with {key} {_differing(before, value)}. "
                "Bring back what it was begun with, or start over with fresh=true"
            )
        if before is not None and before != value:
            with self._db:
                self._db.execute("DELETE FROM answers")
        if before != value:
            self[key] = value


class StoredModel:
    """A model that is asked only what the store does not hold."""

    def __init__(self, model: Model, store: Store) -> None:
        self.model = model
        self.identity = model.identity
        self._who = digest(self.identity)
        self._store = store

    def reply(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        """Answer from the store where it can, else from the model; see `types.Model`."""
        if isinstance(self.model, Batched):
            return self._by_batch(self.model, asked)
        return self._one_by_one(asked)

    def _key(self, asked: Asked) -> str:
        return digest([self._who, to_json(asked.request)])

    def _one_by_one(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        known: list[tuple[Asked, Reply]] = []
        twins: dict[str, list[Asked]] = {}  # of each request under way, those that equal it

        def unknown() -> Iterator[Asked | None]:
            for one in asked:
                yield one if one is not None and self._is_new(one, known, twins) else None

        for got in self.model.reply(unknown()):
            if got is not None:
                key = self._key(got[0])
                if not isinstance(got[1], Failure):
                    self._store.keep([(key, got[1])])
                known += ((twin, got[1]) for twin in twins.pop(key))
            while known:
                yield known.pop()
            yield got  # None too: the others have to get their turn
        yield from known

    def _is_new(
        self, one: Asked, known: list[tuple[Asked, Reply]], twins: dict[str, list[Asked]]
    ) -> bool:
        """Whether a request has to be asked; one that need not goes to `known` or `twins`.

        After such a one the model is told None: its reply has to leave before more is pulled,
        or a long run that is all in the store would gather in memory.
        """
        key = self._key(one)
        (stored,) = self._store.replies([key])
        if stored is not None:
            known.append((one, stored))
        elif key in twins:
            twins[key].append(one)
        else:
            twins[key] = []
            return True
        return False

    def _by_batch(
        self, model: Batched, asked: Iterable[Asked | None]
    ) -> Iterator[tuple[Asked, Reply] | None]:
        for wave in waves(asked):
            if not wave:
                yield None
            same: dict[str, list[Asked]] = {}
            for one in wave:
                same.setdefault(self._key(one), []).append(one)
            # The plan is made before the store is looked at: a batch is the same set of
            # requests whether or not the run was interrupted, so its replies are the same bytes.
            for batch in model.plan([twins[0] for twins in same.values()]):
                keys = [self._key(one) for one in batch]
                for key, reply in zip(keys, self._run(model, batch, keys), strict=True):
                    yield from ((twin, reply) for twin in same[key])

    def _run(
        self, model: Batched, batch: tuple[Asked, ...], keys: Sequence[str]
    ) -> Sequence[Reply]:
        members = digest(keys)
        within = [digest([members, key]) for key in keys]
        stored = [reply for reply in self._store.replies(within) if reply is not None]
        if len(stored) == len(batch):
            return stored
        replies = model.run(batch)
        if not any(isinstance(reply, Failure) for reply in replies):
            self._store.keep(zip(within, replies, strict=True))
        return replies


def waves(asked: Iterable[Asked | None]) -> Iterator[list[Asked]]:
    """Gather what can be asked at once: all requests up to the next None, or to the end.

    An empty wave says that nothing can be asked until somebody else has replied.
    """
    wave: list[Asked] = []
    for one in asked:
        if one is not None:
            wave.append(one)
        else:
            yield wave
            wave = []
    if wave:
        yield wave


def _open(path: Path) -> sqlite3.Connection:
    db = _connect(path)
    try:
        healthy = db.execute("PRAGMA quick_check").fetchone() == ("ok",)
        if healthy:
            _prepare(db)
            return db
    except sqlite3.DatabaseError:
        pass
    db.close()
    return _rescue(path)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, timeout=30, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be opened: {error}") from error


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    db.executescript(_TABLES)
    # A table of another version lacks some column, and is then taken for damaged.
    for columns in ("key, value FROM meta", "key, reply FROM replies", "line FROM answers"):
        db.execute(f"SELECT {columns} LIMIT 0")


def _rescue(path: Path) -> sqlite3.Connection:
    """Set a damaged file aside and carry over the rows that can still be read."""
    aside = path.with_suffix(".damaged")
    path.replace(aside)
    for tail in ("-wal", "-shm"):
        path.with_name(path.name + tail).unlink(missing_ok=True)
    db = _connect(path)
    _prepare(db)
    old = _connect(aside)
    kept = 0
    for table, places in (("meta", "?, ?"), ("replies", "?, ?"), ("answers", "?, ?, ?")):
        try:
            for row in old.execute(f"SELECT * FROM {table}"):  # noqa: S608
                db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", row)  # noqa: S608
                kept += 1
        except sqlite3.DatabaseError as error:
            log.warning("%s: table %s is damaged from here on: %s", aside.name, table, error)
    db.commit()
    old.close()
    log.warning("%s was damaged; %d rows were carried over, the rest is asked again", path, kept)
    return db


def _storable(text: str) -> str:
    """Escape half characters in JSON, as in an emoji that a server cut: SQLite takes UTF-8 only."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _differing(before: Any, now: Any) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [k for k in sorted({*before, *now}) if before.get(k) != now.get(k)]
        return "; ".join(f"{k}: {before.get(k)!r} (now {now.get(k)!r})" for k in keys)
    return f"{before!r} (now {now!r})"
