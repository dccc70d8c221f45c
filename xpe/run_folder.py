"""The folder of a run: which one, its lock and its log."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from xpe.config import RunConfig
from xpe.data.cache import runs_dir
from xpe.errors import OutputError, StoreError, XpeError
from xpe.models.replay import Replay
from xpe.report import read_results
from xpe.store import Store

log = logging.getLogger(__name__)

CHECKPOINT = "evaluation_checkpoint.sqlite"


@dataclass(frozen=True)
class Home:
    """Where a run lives, and whether it is finished there."""

    folder: Path
    finished: bool = False


def home_of(config: RunConfig, folder: Path, mark: str) -> Home:
    """Choose the folder: the unfinished run of this fingerprint, a finished one, or a new one."""
    if config.output is not None:
        chosen = Path(config.output).expanduser().absolute()
        return _chosen_home(chosen, config, mark)
    if not config.fresh:
        for checkpoint in _newest(_runs(mark, CHECKPOINT)):
            if not _finished(checkpoint.parent):
                log.info("going on with the unfinished run in %s", checkpoint.parent)
                return Home(checkpoint.parent)
        if not config.rerun:
            for results in _newest(_runs(mark, "results.json")):
                return Home(results.parent, finished=True)
    return Home(unused(folder))


def _chosen_home(chosen: Path, config: RunConfig, mark: str) -> Home:
    finished = _finished(chosen)
    if config.fresh or (config.rerun and finished):
        for name in (CHECKPOINT, CHECKPOINT + "-wal", CHECKPOINT + "-shm", "results.json"):
            (chosen / name).unlink(missing_ok=True)
        return Home(chosen)
    if finished and read_results(chosen).get("fingerprint") != mark:
        raise OutputError(
            f"{chosen} holds the results of another run; choose another folder for output=, "
            "or fresh=true to replace them"
        )
    return Home(chosen, finished)


def _finished(folder: Path) -> bool:
    if not (folder / "results.json").exists():
        return False
    if not (folder / CHECKPOINT).exists():
        return True
    with Store(folder / CHECKPOINT) as store:
        return bool(store["finished"])


def _runs(mark: str, file: str) -> Iterator[Path]:
    """Yield a file of every run with this fingerprint: runs of their own, and cells of sweeps."""
    yield from runs_dir().glob(f"*_{mark}/{file}")
    yield from runs_dir().glob(f"*_sweep/*_{mark}/{file}")


def _newest(paths: Iterator[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)


def unused(folder: Path) -> Path:
    """A folder of the same second and fingerprint that already holds a run gets a neighbour."""
    candidate, number = folder.absolute(), 2
    while (candidate / "results.json").exists() or (candidate / CHECKPOINT).exists():
        candidate = folder.absolute().with_name(f"{number}-{folder.name}")
        number += 1
    return candidate


def changed(config: RunConfig, found: Mapping[str, Any]) -> str | None:
    """Name an input of a finished run that is another one now: data, or recorded outputs.

    What cannot be read any more is not held against the result.
    """
    for task in config.leaves:
        with suppress(XpeError):
            if found["data"].get(task.name, [None, task.digest])[1] != task.digest:
                return f"the data of {task.name}"
    for name, model in config.models.items():
        if isinstance(model, Replay):
            with suppress(XpeError), closing(model):
                if found["models"].get(name, {}).get("digest") != model.identity["digest"]:
                    return "what was recorded"
    return None


def home_again(config: RunConfig, folder: Path, home: Home, other: str) -> Home:
    """Choose the folder of a run that finished with other inputs.

    Raises
    ------
    OutputError
        Its results stand in the folder that was asked for.
    """
    said = f"{other} changed since {home.folder} was made"
    if config.output is not None:
        raise OutputError(f"{said}; choose another folder for output=, or fresh=true to replace it")
    log.warning("%s: running again", said)
    return Home(unused(folder))


def discard(folder: Path, home: Path) -> None:
    """Remove the folder that was made for a new run when the run goes on elsewhere."""
    if folder.absolute() != home and folder.is_dir() and not any(folder.iterdir()):
        with suppress(OSError):
            folder.rmdir()


def check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise OutputError(
            f"the run folder {folder} cannot be written: {error.strerror or error}. "
            "Set XPE_RUNS, or output=, to a folder that can"
        ) from error
    free = shutil.disk_usage(folder).free
    if free < 2**26:
        log.warning("%s: only %d MiB are free on this disk", folder, free >> 20)


@contextmanager
def locked(mark: str) -> Iterator[None]:
    """Keep two equal live runs apart; a killed run holds no lock."""
    locks = runs_dir() / ".locks"
    check_writable(locks)
    try:
        with FileLock(locks / f"{mark}.lock", timeout=0):
            yield
    except Timeout as error:
        raise StoreError(
            f"a run with the same config (fingerprint {mark}) is under way; wait for it, or stop it"
        ) from error


@contextmanager
def logged(folder: Path) -> Iterator[None]:
    """Send the log of this job, errors included, to `evaluation.log` too."""
    handler = logging.FileHandler(folder / "evaluation.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    logging.getLogger("xpe").setLevel(logging.INFO)
    try:
        yield
    except BaseException as error:
        # The terminal is the caller's; this belongs to the file alone.
        known = isinstance(error, (XpeError, KeyboardInterrupt))
        trace = None if known else (type(error), error, error.__traceback__)
        said = ("the run ended early: %s: %s", (type(error).__name__, error), trace)
        handler.handle(log.makeRecord(log.name, logging.ERROR, __file__, 0, *said))
        raise
    finally:
        root.removeHandler(handler)
        handler.close()
