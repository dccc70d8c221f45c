"""Compare finished runs sample by sample: differences with errors, tests and flips.

The first run is the baseline; each other is compared with it on the documents that both have.
Runs that were asked other prompts, or have other targets, are refused unless told otherwise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import yaml
from pydantic import Field
from pydantic import dataclasses as pydantic

from xpe.config import RunConfig, finish
from xpe.data.cache import runs_dir
from xpe.errors import ConfigError, DataError, DataFileError
from xpe.harness_runs import HarnessRun, is_harness
from xpe.registry import STRICT
from xpe.report import read_results
from xpe.stats.compared import compare_tables
from xpe.stats.multiplicity import ADJUSTMENTS
from xpe.stats.paired import Difference
from xpe.stats.power import detectable, needed
from xpe.stats.settings import Stats
from xpe.stats.statistic import scored_in, statistic
from xpe.tables import Ledger, keys_of
from xpe.types import Answer, Mean, Metric, Sample, Table

SCHEMA = "xpe.comparison/1"
_HASHES = ("prompt_hash", "target_hash")


@pydantic.dataclass(frozen=True, config=STRICT)
class Options:
    """How to compare.

    Parameters
    ----------
    adjust
        Of the p-values, over all cells of the table: `holm` for a planned one, `bh` to explore.
    delta
        A difference that matters: the number of samples that would detect it is told.
    alpha, power
        Of the minimum detectable effect and of `delta`.
    force
        Compare although prompts, targets or the metric's signature differ.
    """

    adjust: Literal["holm", "bh", "none"] = "holm"
    level: float = Field(default=0.95, gt=0, lt=1)
    iters: int = Field(default=100_000, ge=0)
    seed: int = Field(default=1234, ge=0)
    delta: float | None = None
    alpha: float = Field(default=0.05, gt=0, lt=1)
    power: float = Field(default=0.8, gt=0, lt=1)
    force: bool = False


@dataclass(frozen=True)
class Finished:
    """A run folder and what comparison reads of it."""

    folder: Path

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @cached_property
    def results(self) -> Mapping[str, Any]:
        """`results.json`."""
        return read_results(self.folder)

    @cached_property
    def config(self) -> RunConfig:
        """`config.yaml`, built."""
        path = self.folder / "config.yaml"
        try:
            return finish(yaml.safe_load(path.read_text("utf-8")))
        except (OSError, yaml.YAMLError) as error:
            raise DataFileError(f"{path} cannot be read: {error}") from error

    def lines(self, task: str) -> dict[int, Mapping[str, Any]]:
        """Return the sample file of a task by document id."""
        path = self.folder / "samples" / f"{task}.jsonl"
        return {int(line["doc_id"]): line for line in _lines(path)}

    def rows(
        self, task: str, lines: Mapping[int, Mapping[str, Any]]
    ) -> dict[str, tuple[Metric, Table]]:
        """Return each metric of a task with its table, from what the run measured."""
        found: dict[str, tuple[Metric, Table]] = {}
        for key, evaluator in keys_of(tuple(self.config.evaluators[task].values())).items():
            ledger = Ledger(evaluator)
            for doc_id, line in lines.items():
                sample = Sample(task, doc_id, {}, None, {}, line.get("cluster"))
                ledger.add(Answer(sample, ()), line["measured"].get(key, {}))
            found |= ledger.metrics()
        return found


@dataclass(frozen=True)
class Cell:
    """One metric of one task, of one run against the baseline.

    `mde` is the smallest difference that this comparison detects with the power asked for,
    `n_needed` the number of samples that detect `delta`. Flips are document ids.
    """

    task: str
    metric: str
    run: str
    baseline_value: float
    run_value: float
    difference: Difference
    higher_is_better: bool
    left_out: int
    p_adjusted: float | None = None
    mde: float | None = None
    n_needed: int | None = None
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


Comparable: TypeAlias = Finished | HarnessRun
"""A run of ours, or files of lm-evaluation-harness."""


def comparable(word: str) -> Comparable:
    """Return what a word names: as `find_run`, or sample files of lm-evaluation-harness."""
    path = Path(word).expanduser()
    return HarnessRun(path.resolve()) if is_harness(path) else find_run(word)


def find_run(word: str) -> Finished:
    """Return the run folder that a path or an MLflow run id names."""
    folder = Path(word).expanduser()
    if (folder / "results.json").exists():
        return Finished(folder.resolve())
    if folder.exists() or len(word) != 32 or not word.isalnum():
        raise DataFileError(f"{word}: expected a finished run folder (with results.json) or an "
                            "MLflow run id")  # fmt: skip
    return Finished(_folder_of_id(word))


def compare(runs: Sequence[Comparable], options: Options) -> list[Cell]:
    """Compare every common metric of every common task with the first run.

    Raises
    ------
    DataError
        Prompts, targets or signatures differ, or nothing is common.
    """
    if len(runs) < 2:
        raise ConfigError(f"expected at least two runs to compare, got {len(runs)}")
    folders = [run.folder for run in runs]
    if twice := [folder for folder in folders if folders.count(folder) > 1]:
        raise ConfigError(f"expected different runs, got {twice[0]} more than once")
    cells = [cell for run in runs[1:] for cell in _against(runs[0], run, options)]
    if not cells:
        raise DataError("the runs have no task with a metric in common")
    ps = [cell.difference.p for cell in cells if cell.difference.p is not None]
    adjusted = iter(ADJUSTMENTS[options.adjust](ps))
    return [
        replace(cell, p_adjusted=None if cell.difference.p is None else next(adjusted))
        for cell in cells
    ]


def document(runs: Sequence[Comparable], cells: Sequence[Cell], options: Options) -> dict[str, Any]:
    """Return a comparison as JSON values, with the samples that flipped."""
    return {
        "schema": SCHEMA,
        "baseline": runs[0].name,
        "runs": {run.name: run.results.get("fingerprint") for run in runs},
        "options": asdict(options),
        "cells": [asdict(cell) for cell in cells],
        "flips": [flip for cell in cells for flip in flips(runs, cell)],
    }


def flips(runs: Sequence[Comparable], cell: Cell) -> Iterator[dict[str, Any]]:
    """Yield the samples that one run has right and the other wrong, lost ones first."""
    if not (cell.gained or cell.lost):
        return
    other = next(run for run in runs if run.name == cell.run)
    before, after = runs[0].lines(cell.task), other.lines(cell.task)
    for direction, ids in (("lost", cell.lost), ("gained", cell.gained)):
        for doc_id in ids:
            yield {
                "task": cell.task,
                "metric": cell.metric,
                "run": cell.run,
                "direction": direction,
                "doc_id": doc_id,
                "doc": before[doc_id].get("doc"),
                "target": before[doc_id].get("target"),
                "baseline_reply": _said(before[doc_id]),
                "run_reply": _said(after[doc_id]),
            }


def _against(baseline: Comparable, run: Comparable, options: Options) -> Iterator[Cell]:
    for task in baseline.results["results"]:
        if task not in run.results["results"]:
            continue
        before, after = baseline.lines(task), run.lines(task)
        common = sorted(before.keys() & after.keys())
        if not common:
            raise DataError(f"{task}: {baseline.name} and {run.name} have no document in common")
        if not options.force:
            # The harness hashes a target as written, we the index that it stands for.
            mixed = isinstance(baseline, HarnessRun) or isinstance(run, HarnessRun)
            hashes = ("prompt_hash", "doc_hash") if mixed else _HASHES
            _refuse_other_questions(task, [before, after], common, run.name, hashes)
        left_out = len(before.keys() | after.keys()) - len(common)
        a = baseline.rows(task, {doc_id: before[doc_id] for doc_id in common})
        b = run.rows(task, {doc_id: after[doc_id] for doc_id in common})
        for key in a:
            if key in b:
                cell = _cell(task, key, run.name, (a[key], b[key]), options)
                yield replace(cell, left_out=cell.left_out + left_out)


def _refuse_other_questions(
    task: str,
    lines: Sequence[Mapping[int, Mapping[str, Any]]],
    common: Sequence[int],
    name: str,
    hashes: Sequence[str],
) -> None:
    before, after = lines
    for what in hashes:
        other = [i for i in common if before[i][what] != after[i][what]]
        if other:
            raise DataError(
                f"{task}: {what.removesuffix('_hash')}s of {len(other)} of {len(common)} "
                f"documents differ in {name} (first: document {other[0]}), so a difference would "
                "not be the model's alone. force=true compares all the same"
            )


def _cell(
    task: str,
    key: str,
    run: str,
    pairs: tuple[tuple[Metric, Table], tuple[Metric, Table]],
    options: Options,
) -> Cell:
    (metric, a), (other, b) = pairs
    if metric.signature != other.signature and not options.force:
        raise DataError(
            f"{task} {key}: signatures differ, {metric.signature} and {other.signature}. "
            "force=true compares all the same"
        )
    settings = Stats(bootstrap_iters=options.iters, seed=options.seed, level=options.level)
    found = compare_tables(metric, a, b, settings)
    both_N = scored_in(metric.kind, a) & scored_in(metric.kind, b)
    gained, lost = _flipped(metric, a, b, both_N)
    # Without any spread the variance is unknown, not 0.
    variance = found.stderr**2 * found.n if found.stderr else None
    how = {"alpha": options.alpha, "power": options.power}
    return Cell(
        task=task,
        metric=key,
        run=run,
        baseline_value=_value(metric, a, both_N),
        run_value=_value(metric, b, both_N),
        difference=found,
        higher_is_better=metric.higher_is_better,
        left_out=int((~both_N).sum()),
        mde=None if variance is None else detectable(variance, found.n, **how),
        n_needed=(
            None
            if variance is None or options.delta is None
            else math.ceil(needed(options.delta, variance, **how))
        ),
        gained=gained,
        lost=lost,
    )  # fmt: skip


def _value(metric: Metric, table: Table, both_N: Any) -> float:
    return statistic(metric.kind, replace(table, scored_N=both_N)).value


def _flipped(
    metric: Metric, a: Table, b: Table, both_N: Any
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the documents that a 0/1 metric has right only after, and only before."""
    if not isinstance(metric.kind, Mean):
        return (), ()
    before_N, after_N = (table.column(metric.kind.column) for table in (a, b))
    if not np.isin([before_N[both_N], after_N[both_N]], (0.0, 1.0)).all():
        return (), ()
    better_N = after_N > before_N if metric.higher_is_better else after_N < before_N
    worse_N = both_N & (after_N != before_N) & ~better_N
    ids = np.array(a.doc_ids)
    return tuple(ids[both_N & better_N].tolist()), tuple(ids[worse_N].tolist())


def _said(line: Mapping[str, Any]) -> Any:
    """What a model said to one sample: its texts, or the log likelihoods of the choices."""
    replies = line.get("replies", [])
    found = [reply.get("text", reply.get("log_likelihoods")) for reply in replies]
    return found[0] if len(found) == 1 else found


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with path.open(encoding="utf-8") as lines:
            texts = list(lines)
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror}") from error
    for number, text in enumerate(texts, 1):
        try:
            yield json.loads(text)
        except ValueError as error:
            raise DataFileError(f"{path}, line {number}: not JSON: {error}") from error


def _folder_of_id(run_id: str) -> Path:
    """Find the folder of an MLflow run: its name is the folder's."""
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    from xpe.tracking import MlflowTracker

    try:
        name = MlflowClient(MlflowTracker().store_uri).get_run(run_id).info.run_name
    except MlflowException as error:
        raise DataFileError(f"MLflow knows no run {run_id}: {error.message}") from error
    for results in sorted(runs_dir().glob(f"**/{name}/results.json")):
        return results.parent
    raise DataFileError(f"the folder {name} of MLflow run {run_id} is not below {runs_dir()}")
