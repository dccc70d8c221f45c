"""A run, top to bottom. Read this file first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xpe.converse import Talk, converse
from xpe.seeds import Seeds
from xpe.stats.estimate import estimate
from xpe.stats.groups import Group, group_estimates
from xpe.stats.settings import Stats
from xpe.tables import Ledger, keys_of, measure, result_key
from xpe.types import (
    Asks,
    Dialogue,
    Estimate,
    Evaluator,
    Model,
    Result,
    Sample,
    Table,
    Task,
    TaskResult,
    Watcher,
)


@dataclass(frozen=True)
class Run:
    """All that one run needs, built and checked. `evaluators` is by task name."""

    models: Mapping[str, Model]
    tasks: Sequence[Task]
    evaluators: Mapping[str, Mapping[str, Evaluator]]
    groups: Mapping[str, Group] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=Seeds)
    stats: Stats = field(default_factory=Stats)
    compat: str | None = None


def evaluate(run: Run, *, watch: Watcher) -> Result:
    """Samples, then answers, then rows, then estimates, task by task; then groups.

    `watch` sees each reply and each answer as it arrives. Progress, live metrics and sample
    files listen there; no step below knows of them.
    """
    tables: dict[str, dict[str, Table]] = {}
    tasks: dict[str, TaskResult] = {}
    for task in run.tasks:
        evaluators = keys_of(tuple(run.evaluators[task.name].values()))
        tables[task.name] = gather(run, task, evaluators, watch)
        tasks[task.name] = summarise(run, task, evaluators, tables[task.name])
        watch.task_finished(tasks[task.name])
    groups = group_estimates(run.groups, tasks, tables, run.stats, compat=run.compat)
    members = {name: tuple(group.tasks) for name, group in run.groups.items()}
    return Result(tasks, groups, members)


def gather(
    run: Run, task: Task, evaluators: Mapping[str, Evaluator], watch: Watcher
) -> dict[str, Table]:
    """Answer and measure every sample of a task: one table an evaluator."""
    samples = task.samples()
    watch.task_started(task, len(samples))
    askers = [evaluator for evaluator in evaluators.values() if isinstance(evaluator, Asks)]
    ledgers = {key: Ledger(evaluator) for key, evaluator in evaluators.items()}
    talks = open_talks(task, samples, askers)
    for answer in converse(talks, run.models, torch_seed=run.seeds.torch, replied=watch.replied):
        measured = {key: measure(evaluator, answer) for key, evaluator in evaluators.items()}
        watch.answered(answer, measured)
        for key, ledger in ledgers.items():
            ledger.add(answer, measured[key])
    return {key: ledger.table() for key, ledger in ledgers.items()}


def open_talks(task: Task, samples: Sequence[Sample], askers: Sequence[Asks]) -> Iterator[Talk]:
    """Pair each sample with its dialogue: the task's own, then that of each asking evaluator."""

    def whole(sample: Sample) -> Dialogue:
        answer = yield from task.dialogue(sample)
        for asker in askers:
            answer = yield from asker.ask(answer)
        return answer

    return ((sample, whole(sample)) for sample in samples)


def summarise(
    run: Run, task: Task, evaluators: Mapping[str, Evaluator], tables: Mapping[str, Table]
) -> TaskResult:
    """Estimate every metric of every evaluator of a task."""
    estimates: dict[str, Estimate] = {}
    for key, evaluator in evaluators.items():
        for metric in evaluator.metrics:
            found = estimate(metric, tables[key], run.stats, compat=run.compat)
            if found is not None:
                estimates[result_key(metric.name, evaluator.filter)] = found
    return TaskResult(task.name, estimates, task.n_original, len(task.samples()))
