"""Score the replies in sample files of lm-evaluation-harness again, by any evaluator of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from xpe._explain import build
from xpe.errors import ConfigError, DataFileError
from xpe.evaluators.base import adapt
from xpe.harness_runs import HarnessRun
from xpe.harness_samples import answer_of, lines_of
from xpe.metrics import get_metric, list_metrics, output_type_of
from xpe.pipeline import Run, summarise, tabulate
from xpe.registry import EVALUATORS
from xpe.stats.settings import Stats
from xpe.types import Answer, Evaluator, Result, TaskResult


def rescore_harness(folder: Path, overrides: Sequence[str] = ()) -> Result:
    """Measure the logged replies of every task and estimate every metric anew.

    Parameters
    ----------
    folder
        A folder of sample files, or one of them.
    overrides
        `evaluator.KIND.PARAM=VALUE` chooses evaluators (`evaluator.accuracy.extract=last`);
        without any, the metrics that were logged and that xpe knows. `stats.…` as in a run.

    Raises
    ------
    ConfigError
        An override is something else.
    DataFileError
        A file is broken.
    """
    chosen, settings = _read(overrides)
    run = Run({}, (), {}, stats=build(Stats, settings, "stats"))
    tasks = {}
    for task, file in HarnessRun(folder).files.items():
        answers = dict(_answers(file, task))
        if not answers:
            raise DataFileError(f"{file}: holds no samples")
        evaluators = _evaluators(chosen, answers, file)
        rows = tabulate(evaluators, answers.values(), lambda *_: None)
        tasks[task] = TaskResult(task, summarise(run, rows), len(answers), len(answers))
    return Result(tasks)


def _read(overrides: Sequence[str]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    chosen: dict[str, dict[str, Any]] = {}
    settings: dict[str, Any] = {}
    for override in overrides:
        key, _, text = override.partition("=")
        match key.split("."):
            case ["evaluator", kind]:
                chosen.setdefault(kind, {}).update(yaml.safe_load(text) or {})
            case ["evaluator", kind, name]:
                chosen.setdefault(kind, {})[name] = yaml.safe_load(text)
            case ["stats", name]:
                settings[name] = yaml.safe_load(text)
            case _:
                raise ConfigError(
                    f"{key}: files of lm-evaluation-harness are scored again with "
                    "evaluator.KIND.PARAM=… and stats.…=… only"
                )
    return chosen, settings


def _answers(file: Path, task: str) -> Iterator[tuple[int, Answer]]:
    """Yield each document once, however many filters logged it."""
    seen = set()
    for line, where in lines_of(file):
        answer = answer_of(line, task, where)
        if answer.sample.doc_id not in seen:
            seen.add(answer.sample.doc_id)
            yield answer.sample.doc_id, answer


def _evaluators(
    chosen: Mapping[str, Mapping[str, Any]], answers: Mapping[int, Answer], file: Path
) -> dict[str, Evaluator]:
    if chosen:
        return {
            kind: adapt(build(EVALUATORS[kind], settings, f"evaluator.{kind}"))
            for kind, settings in chosen.items()
        }
    output_type = output_type_of(next(iter(answers.values())))
    logged = {str(name) for line, _ in lines_of(file) for name in line["metrics"]}
    names = [
        name
        for name in sorted(logged & set(list_metrics()))
        if output_type in get_metric(name).output_types
    ]
    settings = {"names": names, "output_type": output_type}
    return {"metrics": build(EVALUATORS["metrics"], settings, "evaluator.metrics")}
