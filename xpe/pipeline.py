"""A run, top to bottom. Read this file first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xpe.converse import Talk, converse
from xpe.seeds import Seeds
from xpe.stats.estimate import estimate_all
from xpe.stats.groups import Group, group_estimates
from xpe.stats.settings import Stats
from xpe.tables import Ledger, keys_of, measure
from xpe.types import (
    Answer,
    Asks,
    Dialogue,
    Estimate,
    Evaluator,
    Measured,
    Metric,
    Model,
    Result,
    Sample,
    Table,
    Task,
    TaskResult,
    Watcher,
)

Rows: TypeAlias = Mapping[str, tuple[Metric, Table]]
"""By result key: the metric, and the table of what was measured in each answer."""


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
    rows: dict[str, Rows] = {}
    tasks: dict[str, TaskResult] = {}
    for task in run.tasks:
        rows[task.name] = gather(run, task, watch)
        estimates = summarise(run, rows[task.name])
        tasks[task.name] = TaskResult(task.name, estimates, task.n_original, len(task.samples()))
        watch.task_finished(tasks[task.name])
    groups = group_estimates(run.groups, tasks, rows, run.stats, compat=run.compat)
    members = {name: tuple(group.tasks) for name, group in run.groups.items()}
    return Result(tasks, groups, members)


def gather(run: Run, task: Task, watch: Watcher) -> Rows:
    """Answer and measure every sample of a task."""
    samples = task.samples()
    evaluators = run.evaluators[task.name]
    askers = [evaluator for evaluator in evaluators.values() if isinstance(evaluator, Asks)]
    talks = open_talks(task, samples, askers)
    watch.task_started(task, len(samples))
    answers = converse(talks, run.models, torch_seed=run.seeds.torch, replied=watch.replied)
    return tabulate(evaluators, answers, watch.answered)


def tabulate(
    evaluators: Mapping[str, Evaluator],
    answers: Iterable[Answer],
    answered: Callable[[Answer, Mapping[str, Measured]], object],
) -> Rows:
    """Measure answers, which come in any order: by result key, a metric and its rows."""
    ledgers = {key: Ledger(e) for key, e in keys_of(tuple(evaluators.values())).items()}
    for answer in answers:
        measured = {key: measure(ledger.evaluator, answer) for key, ledger in ledgers.items()}
        answered(answer, measured)
        for key, ledger in ledgers.items():
            ledger.add(answer, measured[key])
    return {key: pair for ledger in ledgers.values() for key, pair in ledger.metrics().items()}


def open_talks(task: Task, samples: Sequence[Sample], askers: Sequence[Asks]) -> Iterator[Talk]:
    """Pair each sample with its dialogue: the task's own, then that of each asking evaluator."""

    def whole(sample: Sample) -> Dialogue:
        answer = yield from task.dialogue(sample)
        for asker in askers:
            answer = yield from asker.ask(answer)
        return answer

    return ((sample, whole(sample)) for sample in samples)


def summarise(run: Run, rows: Rows) -> dict[str, Estimate]:
    """Estimate every metric of a task from its rows."""
    return estimate_all(rows, run.stats, compat=run.compat)
