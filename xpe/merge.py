"""`xpe merge RUN RUN …`: runs of shards, one after another or on many machines, made one run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from xpe.compare import Finished, find_run
from xpe.config import RunConfig, decisive, dump, fingerprint, finish
from xpe.data.cache import runs_dir
from xpe.document import settings_json
from xpe.errors import ConfigError, DataError, OutputError
from xpe.launch import exit_code, write_results
from xpe.records import sample_lines
from xpe.report import results_json, show_table, terminal, write_lines, write_yaml
from xpe.rescore import measured_again
from xpe.run_folder import check_writable, unused
from xpe.tasks.selection import shard_of


def merge_command(words: Sequence[str]) -> int:
    """Merge the run folders that are named; `output=FOLDER` says where to."""
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    runs = [find_run(word) for word in words if "=" not in word]
    if not runs or settings.keys() - {"output"}:
        raise ConfigError("expected: xpe merge RUN RUN … [output=FOLDER]")
    output = Path(settings["output"]).expanduser() if "output" in settings else None
    folder, found = merge(runs, output)
    console = terminal()
    show_table(found, console)
    console.print(f"results: {folder / 'results.json'}", highlight=False)
    return exit_code(found, runs[0].config.max_failed)


def merge(runs: Sequence[Finished], output: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """Write the run that shards make up to a folder; return this and its results.

    Samples are those of the shards, in the order of documents; every metric, error and group row
    is computed from them, as one run over all documents does.

    Parameters
    ----------
    runs
        All shards, in any order.
    output
        A folder of its own instead of one beside other runs.

    Raises
    ------
    ConfigError
        A run is no shard, a shard is missing or there twice, or the configs differ otherwise.
    DataError
        Data or models differ, or documents are missing or do not belong to their shard.
    OutputError
        The folder holds results already, or cannot be written.
    """
    shards = _in_order(runs)
    whole = shards[0].whole
    for shard in shards[1:]:
        _check_same(shards[0], shard)
    folder = _folder(fingerprint(whole), output)
    counts = {task.name: _merged_count(task.name, shards) for task in whole.leaves}
    with _whole_or_not_at_all(folder) as partial:
        for task in whole.leaves:
            lines = _merged_lines(task.name, shards)
            write_lines(partial / "samples" / f"{task.name}.jsonl", lines)
        write_yaml(partial / "config.yaml", dump(whole))
        numbers = results_json(measured_again(whole, partial, counts))
        found = _document(shards, whole, numbers)
        write_results(found, partial)
    return folder, found


@dataclass(frozen=True)
class _Shard:
    """A finished run of the shard `number` of `count`."""

    run: Finished
    number: int
    count: int

    @cached_property
    def whole(self) -> RunConfig:
        """The config of the run over all documents."""
        plain = dump(self.run.config)
        tasks = {
            name: {**task, "shard": None} if "shard" in task else task
            for name, task in plain["task"].items()
        }
        return finish({**plain, "task": tasks, "shard": None, "output": None})

    def lines(self, task: str) -> Iterator[tuple[int, str]]:
        """Yield id and line of each document of a task.

        Raises
        ------
        DataError
            One belongs to another shard, is there twice, or some are missing.
        """
        path = self.run.folder / "samples" / f"{task}.jsonl"
        expected = self.run.results["n-samples"][task]["effective"]
        for where, content, text in sample_lines(path, expected):
            doc_id = content["doc_id"]
            if doc_id % self.count != self.number - 1:
                raise DataError(
                    f"{where}: document {doc_id} belongs to shard"
                    f" {doc_id % self.count + 1}/{self.count}"
                )
            yield doc_id, text


# --- checks ----------------------------------------------------------------------------------


def _in_order(runs: Sequence[Finished]) -> list[_Shard]:
    shards = sorted(map(_shard, runs), key=lambda shard: shard.number)
    counts = {shard.count for shard in shards}
    numbers = [shard.number for shard in shards]
    if len(counts) > 1:
        told = ", ".join(f"{s.run.name} ({s.number}/{s.count})" for s in shards)
        raise ConfigError(f"expected shards of one split, got {told}")
    (count,) = counts
    if twice := [number for number in set(numbers) if numbers.count(number) > 1]:
        raise ConfigError(f"shard {twice[0]}/{count} is there more than once; name each run once")
    if missing := [f"{n}/{count}" for n in range(1, count + 1) if n not in numbers]:
        raise ConfigError(f"shards are missing: {', '.join(missing)}; run them with shard=…")
    return shards


def _shard(run: Finished) -> _Shard:
    if run.config.shard is None:
        raise ConfigError(
            f"{run.folder} is no shard but a run of its own; shards are run with shard=1/4, "
            "shard=2/4 and so on"
        )
    return _Shard(run, *shard_of(run.config.shard))


def _check_same(first: _Shard, other: _Shard) -> None:
    """Raise if two shards are not of one run: other settings, models or data."""
    names = f"{first.run.name} and {other.run.name}"
    if place := _difference(decisive(first.whole), decisive(other.whole)):
        raise ConfigError(f"{names} are not shards of one run: {place}")
    for what in ("models", "data"):
        if place := _difference(first.run.results[what], other.run.results[what]):
            raise DataError(f"{names} had other {what}: {place}")


def _difference(a: Any, b: Any, path: str = "") -> str | None:
    """Name the first place where two plain values differ, and what stands there."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in dict.fromkeys((*a, *b)):
            below = f"{path}.{key}" if path else str(key)
            if place := _difference(a.get(key), b.get(key), below):
                return place
        return None
    return None if a == b else f"{path} is {a!r:.80} and {b!r:.80}"


def _folder(mark: str, output: Path | None) -> Path:
    now = datetime.now(UTC).astimezone()
    folder = output or unused(runs_dir() / f"{now:%Y-%m-%d_%H-%M-%S}_{mark}")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise OutputError(f"{folder} holds something already; choose another folder for output=")
    return folder.absolute()


@contextmanager
def _whole_or_not_at_all(folder: Path) -> Iterator[Path]:
    """Give a folder to write to, which gets its name once all of it is there."""
    partial = folder.with_name(folder.name + ".part")
    check_writable(partial)
    try:
        yield partial
        try:
            partial.replace(folder)
        except OSError as error:
            raise OutputError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


# --- what is merged --------------------------------------------------------------------------


def _merged_lines(task: str, shards: Sequence[_Shard]) -> Iterator[str]:
    found = sorted(line for shard in shards for line in shard.lines(task))
    return (line for _, line in found)


def _merged_count(task: str, shards: Sequence[_Shard]) -> dict[str, int]:
    counts = [shard.run.results["n-samples"][task] for shard in shards]
    return {
        "original": counts[0]["original"],
        "effective": sum(count["effective"] for count in counts),
    }


def _document(
    shards: Sequence[_Shard], whole: RunConfig, numbers: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the result document: that of the first shard, with what is of all of them."""
    results = [shard.run.results for shard in shards]
    plain = dump(whole)
    return {
        **results[0],
        **numbers,
        "configs": plain["task"],
        "config": settings_json(plain),
        "started": min(found["started"] for found in results),
        "duration_s": round(sum(found["duration_s"] for found in results), 3),
        "fingerprint": fingerprint(whole),
        "shards": [shard.run.name for shard in shards],
    }
