"""One job: its folder, lock and log, resume, sinks and exit code."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from xpe.config import RunConfig, dump, fingerprint
from xpe.data.cache import cache_dir, runs_dir
from xpe.document import Facts, document, git_hash
from xpe.interrupt import Stop, stoppable
from xpe.live import LiveMetrics
from xpe.models.warm import taken
from xpe.pipeline import Run, evaluate
from xpe.plots import forest
from xpe.progress import Progress
from xpe.report import (
    read_results,
    result_of,
    show_table,
    terminal,
    write_json,
    write_lines,
    write_yaml,
)
from xpe.run_folder import (
    CHECKPOINT,
    changed,
    check_writable,
    discard,
    home_again,
    home_of,
    locked,
    logged,
)
from xpe.seeds import seed_globals
from xpe.store import Store, StoredModel
from xpe.types import Model, Result
from xpe.watchers import Logbook, SampleFiles, Watchers

log = logging.getLogger(__name__)

COMPLETE, PARTIAL = 0, 3
LIKELIHOODS = {"loglikelihood", "loglikelihood_rolling", "multiple_choice"}
"""The output types whose requests a server may be unable to answer."""


class _Tracker(Protocol):
    def begin(
        self, name: str, params: Mapping[str, Any], tags: Mapping[str, str], run_id: str | None
    ) -> str: ...
    def finish(self, run_id: str, document: Mapping[str, Any], folder: Path) -> None: ...
    def fail(self, run_id: str, *, killed: bool) -> None: ...


def launch(config: RunConfig, folder: Path, overrides: Sequence[str]) -> int:
    """Run a job in its folder, or go on with an unfinished one, or show a finished one.

    Parameters
    ----------
    config
        The finished config.
    folder
        The folder meant for this run. An unfinished run of the same fingerprint is continued in
        its own folder instead, and this one, still empty, is removed.
    overrides
        What was typed, for `overrides.yaml`.

    Returns
    -------
    int
        0 complete, 3 complete but partial. Errors are raised; their exit code is theirs.
    """
    found = _launched(config, folder, overrides)
    return exit_code(found, config.max_failed)


def run(config: RunConfig) -> Result:
    """Run a config from Python, as the command line does: files, resume and trackers included."""
    now = datetime.now(UTC).astimezone()
    folder = runs_dir() / f"{now:%Y-%m-%d_%H-%M-%S}_{fingerprint(config)}"
    return result_of(_launched(config, folder, ()))


def _launched(config: RunConfig, folder: Path, overrides: Sequence[str]) -> dict[str, Any]:
    console = terminal()
    mark = fingerprint(config)
    with locked(mark):
        home = home_of(config, folder, mark)
        if home.finished and not (config.rerun or config.fresh):
            found = read_results(home.folder)
            other = changed(config, found)
            if other is None:
                discard(folder, home.folder)
                console.print(f"already finished: {home.folder}  (rerun=true repeats it)")
                show_table(found, console)
                return found
            home = home_again(config, folder, home, other)
        discard(folder, home.folder)
        check_writable(home.folder)
        with logged(home.folder):
            return _job(_Job(config, home.folder, tuple(overrides), mark, console))


@dataclass(frozen=True)
class _Job:
    config: RunConfig
    folder: Path
    overrides: tuple[str, ...]
    fingerprint: str
    console: Any


def _job(job: _Job) -> dict[str, Any]:
    config, folder, console = job.config, job.folder, job.console
    started, clock = datetime.now(UTC), time.monotonic()
    console.print(f"run folder: {folder}", highlight=False)
    plain = dump(config)
    _write_config(job, plain)
    seed_globals(config.seed)
    with ExitStack() as stack:
        parts = stack.enter_context(taken(config.models))
        data = _checked(config, parts)
        store = stack.enter_context(Store(folder / CHECKPOINT))
        stop = Stop()
        stack.enter_context(stop.on_interrupt(parts.values()))
        replies = _replies(config, store, stack)
        models = stoppable(_models(job, parts, store, replies, data), parts, stop)
        _load(parts["model"], replies)
        tracking = _Tracking(config.tracking, store)
        stack.callback(tracking.fail_if_open)
        tracking.begin(folder.name, plain, _tags(job.fingerprint, data))
        _warm(config)
        made = Run(
            models=models,
            tasks=config.leaves,
            evaluators=config.evaluators,
            groups=config.groups,
            seeds=config.seed,
            stats=config.stats,
            compat=config.compat,
        )
        result = _watched(made, job, store)
        seconds = time.monotonic() - clock
        shots = {task.name: getattr(task, "shots", 0) for task in config.leaves}
        facts = Facts(plain, started, seconds, job.fingerprint, data, shots)
        found = document(result, parts, facts)
        _write(result, found, folder, store)
        store["finished"] = True
        show_table(found, console)
        console.print(f"results: {folder / 'results.json'}", highlight=False)
        tracking.finish(found, folder, console)
    if not config.store.keep:
        for tail in ("", "-wal", "-shm"):
            (folder / (CHECKPOINT + tail)).unlink(missing_ok=True)
    return found


# --- before ----------------------------------------------------------------------------------


def _checked(config: RunConfig, models: Mapping[str, Model]) -> dict[str, tuple[str, str]]:
    """Check models and data before anything loads; return source and digest by task."""
    for model in models.values():
        check = getattr(model, "check", None)
        if check is not None:
            check()
    _check_log_likelihoods(config, models["model"])
    for task in config.leaves:
        task.check()
    return {task.name: (task.source, task.digest) for task in config.leaves}


def _check_log_likelihoods(config: RunConfig, model: Model) -> None:
    """Let a model that may not be able to give log likelihoods say so, if a task wants them."""
    check = getattr(model, "check_log_likelihoods", None)
    wanted = {getattr(task, "output_type", "") for task in config.leaves} & LIKELIHOODS
    if check is not None and wanted:
        check(whole_texts="loglikelihood_rolling" in wanted)


def _write_config(job: _Job, plain: Mapping[str, Any]) -> None:
    for name, value in (("config.yaml", plain), ("overrides.yaml", list(job.overrides))):
        write_yaml(job.folder / name, value)


def _replies(config: RunConfig, store: Store, stack: ExitStack) -> Store:
    """Return where replies are kept: with the run, or with those of all runs."""
    if config.store.kind == "cache":
        return stack.enter_context(Store(cache_dir() / "replies.sqlite"))
    return store


def _models(
    job: _Job,
    models: Mapping[str, Model],
    store: Store,
    replies: Store,
    data: Mapping[str, tuple[str, str]],
) -> dict[str, Model]:
    """Wrap each model by the store, once the store is known to belong to this run."""
    store.expect("fingerprint", job.fingerprint)
    store.expect("data", {name: digest for name, (_, digest) in data.items()})
    wrapped: dict[str, Model] = {}
    for name, model in models.items():
        store.expect(f"{name}'s identity", model.identity)
        # Recorded outputs are told apart by document, which is not part of a reply's key.
        recorded = getattr(model, "recorded", False)
        wrapped[name] = model if recorded else StoredModel(model, replies)
    return wrapped


def _load(model: Model, replies: Store) -> None:
    """Load the weights before any sample is made: what cannot be loaded shows at once.

    Where there are replies already they may be all that is needed; then the first request that
    they do not answer loads.
    """
    load = getattr(model, "load", None)
    if load is None or replies.has_replies:
        return
    clock = time.monotonic()
    load()
    log.info("the model is loaded: %.3f s", time.monotonic() - clock)


def _warm(config: RunConfig) -> None:
    """Compile the statistics kernels in the background while the model runs."""
    if config.stats.bootstrap_iters:
        from xpe.stats.bootstrap import warm

        warm()


# --- during ----------------------------------------------------------------------------------


def _watched(made: Run, job: _Job, store: Store) -> Result:
    config = job.config
    live = LiveMetrics(job.folder / "realtime_metrics.json", made.evaluators, made.stats)
    progress = Progress(job.console, live)
    samples = SampleFiles(store, log_samples=config.log_samples or config.predict_only)
    try:
        return evaluate(made, watch=Watchers([samples, Logbook(), live, progress]))
    finally:
        progress.close()


# --- after -----------------------------------------------------------------------------------


def _write(result: Result, found: Mapping[str, Any], folder: Path, store: Store) -> None:
    for name in result.tasks:
        lines = (line + "\n" for line in store.answers(name))
        write_lines(folder / "samples" / f"{name}.jsonl", lines)
    write_results(found, folder)


def write_results(found: Mapping[str, Any], folder: Path) -> None:
    """Write the plot, then `results.json`, which makes a folder that of a finished run."""
    try:
        forest(found, folder / "forest.png")
    except Exception as error:  # noqa: BLE001 - a plot must not cost a result
        log.warning("no plot: %s: %s", type(error).__name__, error)
    write_json(folder / "results.json", found)


def exit_code(found: Mapping[str, Any], max_failed: int) -> int:
    """Return 3 when more samples than allowed were not scored, by the worst metric of the run."""
    missing = [
        sum(e.get(name, 0) for name in ("n_failed", "n_invalid", "n_timeout"))
        for estimates in found["results"].values()
        for e in estimates.values()
    ]
    return PARTIAL if max(missing, default=0) > max_failed else COMPLETE


def _tags(mark: str, data: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    tags = {"xpe.fingerprint": mark}
    tags |= {f"xpe.data.{name}": digest for name, (_, digest) in data.items()}
    commit = git_hash()
    return tags if commit is None else {**tags, "mlflow.source.git.commit": commit}


class _Tracking:
    """The tracker, held so that whatever it does, the run goes on."""

    def __init__(self, tracker: _Tracker | None, store: Store) -> None:
        self._tracker = tracker
        self._store = store
        self._run_id: str | None = None

    def begin(self, name: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        tracker = self._tracker
        if tracker is None:
            return
        before = self._store["tracking"]
        self._run_id = self._try(lambda: tracker.begin(name, params, tags, before))
        if self._run_id is not None:
            self._store["tracking"] = self._run_id

    def finish(self, found: Mapping[str, Any], folder: Path, console: Any) -> None:
        tracker, run_id = self._tracker, self._run_id
        if tracker is None or run_id is None:
            return
        self._try(lambda: tracker.finish(run_id, found, folder))
        self._run_id = None
        where = getattr(tracker, "store_uri", "")
        console.print(f"MLflow: {where}  (run {run_id}; look with: xpe ui)", highlight=False)

    def fail_if_open(self) -> None:
        tracker, run_id = self._tracker, self._run_id
        if tracker is not None and run_id is not None:
            killed = isinstance(sys.exc_info()[1], KeyboardInterrupt)
            self._try(lambda: tracker.fail(run_id, killed=killed))

    def _try(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - losing a sink never loses a result
            log.warning("tracking failed, the run goes on: %s: %s", type(error).__name__, error)
            return None
