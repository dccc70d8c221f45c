"""Compare finished runs sample by sample: differences with errors, tests and flips.

The first run is the baseline; each other is compared with it on the documents that both have.
Runs that were asked other prompts, or have other targets, are refused unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from xpe.cells import Cell, Compared, Options, group_cells, task_cell
from xpe.config import RunConfig, finish
from xpe.data.cache import runs_dir
from xpe.errors import ConfigError, DataError, DataFileError
from xpe.harness_runs import HarnessRun, is_harness
from xpe.records import sample_lines
from xpe.report import read_results
from xpe.stats.multiplicity import ADJUSTMENTS
from xpe.tables import Ledger, keys_of
from xpe.types import Answer, Metric, Sample, Table

SCHEMA = "xpe.comparison/1"
_HASHES = ("prompt_hash", "target_hash")


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
        """Return the sample file of a task by document id.

        Raises
        ------
        DataFileError
            It is not the file that the run wrote.
        """
        path = self.folder / "samples" / f"{task}.jsonl"
        found: dict[int, Mapping[str, Any]] = {}
        for where, line, _ in sample_lines(path, self.results["n-samples"][task]["effective"]):
            if missing := {"measured", *_HASHES} - line.keys():
                raise DataFileError(f"{where}: no {min(missing)}; is it a sample of a run of xpe?")
            found[line["doc_id"]] = line
        return found

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
    """Compare every common metric of every common task, and of groups of them, with the first run.

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
    compared = list(_tasks(baseline, run, options))
    yield from (one.cell for one in compared)
    if isinstance(baseline, Finished):
        leaves = {task.name: task for task in baseline.config.leaves}
        yield from group_cells(baseline.config.groups, leaves, compared, options)


def _tasks(baseline: Comparable, run: Comparable, options: Options) -> Iterator[Compared]:
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
                made = task_cell(task, key, run.name, (a[key], b[key]), options)
                cell = replace(made.cell, left_out=made.cell.left_out + left_out)
                yield replace(made, cell=cell)


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


def _said(line: Mapping[str, Any]) -> Any:
    """What a model said to one sample: its texts, or the log likelihoods of the choices."""
    replies = line.get("replies", [])
    found = [reply.get("text", reply.get("log_likelihoods")) for reply in replies]
    return found[0] if len(found) == 1 else found


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
