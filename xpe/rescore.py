"""`xpe rescore RUN`: compute every score of a run again from its files, without a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from xpe.config import RunConfig, chosen, finish
from xpe.errors import ConfigError, DataFileError
from xpe.harness_rescore import rescore_harness
from xpe.harness_runs import is_harness
from xpe.pipeline import Rows, Run, summarise, tabulate
from xpe.records import answer_of, sample_lines
from xpe.report import read_results, results_json, show_table, terminal, write_json
from xpe.stats.groups import group_estimates
from xpe.types import Answer, Result, TaskResult


def rescore_command(words: Sequence[str]) -> int:
    """Rescore the run folder that comes first; `stats.…=` and `evaluator.…=` may follow."""
    folders = [Path(word) for word in words if "=" not in word]
    if len(folders) != 1:
        raise ConfigError(
            "expected: xpe rescore RUN [stats.KEY=…] [evaluator=…] [evaluator.KEY.PARAM=…]"
        )
    folder = folders[0]
    if is_harness(folder):
        return _rescore_files(folder, [word for word in words if "=" in word])
    before = read_results(folder)
    found = before | results_json(rescore(folder, [word for word in words if "=" in word]))
    write_json(folder / "rescored.json", found)
    console = terminal()
    show_table(found, console)
    equal = json.dumps(found["results"]) == json.dumps(before["results"])
    verdict = "equal to" if equal else "different from"
    console.print(f"results: {folder / 'rescored.json'} ({verdict} results.json)", highlight=False)
    return 0


def _rescore_files(path: Path, overrides: Sequence[str]) -> int:
    """Score the files of lm-evaluation-harness; the result lies beside them."""
    found = results_json(rescore_harness(path, overrides))
    output = (path.parent if path.is_file() else path) / "rescored.json"
    write_json(output, found)
    console = terminal()
    show_table(found, console)
    console.print(f"results: {output}", highlight=False)
    return 0


def rescore(folder: Path, overrides: Sequence[str] = ()) -> Result:
    """Measure the answers of a run's sample files and estimate every metric anew.

    Those of a run with `predict_only` too, which scored nothing itself.

    Parameters
    ----------
    folder
        A run folder: `config.yaml`, `results.json` and `samples/`.
    overrides
        A choice of evaluators, and dotted settings of these and of the statistics; nothing else.

    Raises
    ------
    DataFileError
        A file of the run is missing or broken, or its samples were not logged.
    """
    return measured_again(_config(folder, overrides), folder, read_results(folder)["n-samples"])


def measured_again(config: RunConfig, folder: Path, counts: Mapping[str, Any]) -> Result:
    """Measure the answers in a run's sample files and estimate every metric; errors as `rescore`.

    `counts` is `n-samples` of its results.
    """
    run = Run({}, config.leaves, config.evaluators, config.groups, stats=config.stats,
              compat=config.compat)  # fmt: skip
    rows: dict[str, Rows] = {}
    tasks: dict[str, TaskResult] = {}
    for name, evaluators in config.evaluators.items():
        sizes = counts[name]
        answers = _answers(folder, name, sizes["effective"])
        rows[name] = tabulate(evaluators, answers, lambda *_: None)
        estimates = summarise(run, rows[name])
        tasks[name] = TaskResult(name, estimates, sizes["original"], sizes["effective"])
    groups = group_estimates(config.groups, tasks, rows, config.stats, compat=config.compat)
    return Result(tasks, groups, {name: tuple(g.tasks) for name, g in config.groups.items()})


def _config(folder: Path, overrides: Sequence[str]) -> RunConfig:
    path = folder / "config.yaml"
    try:
        plain: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise DataFileError(f"{path} cannot be read: {error}") from error
    if not isinstance(plain, dict):
        raise DataFileError(f"{path}: expected the config of a run, got {plain!r:.80}")
    plain["predict_only"] = False
    for override in overrides:
        key, _, text = override.partition("=")
        if key.split(".")[0] not in {"stats", "evaluator"}:
            raise ConfigError(
                f"{key}: rescoring can change stats.… and evaluator.… only; "
                "all else was decided when the model was asked"
            )
        if key == "evaluator":
            plain[key] = chosen(override)
        else:
            _set(plain, key.split("."), yaml.safe_load(text))
    return finish(plain, overrides)


def _set(plain: dict[str, Any], path: Sequence[str], value: Any) -> None:
    *parents, last = path
    for name in parents:
        plain = plain.setdefault(name, {})
    plain[last] = value


def _answers(folder: Path, task: str, expected: int) -> Iterator[Answer]:
    for where, line, _ in sample_lines(folder / "samples" / f"{task}.jsonl", expected):
        yield answer_of(line, task, where)
