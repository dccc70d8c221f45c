"""Which evaluators score which task: what tasks name, what was chosen, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xpe._explain import build, settings_of
from xpe._finish import Plain, checked_entries
from xpe.errors import ConfigError, UnknownNameError
from xpe.evaluators.base import adapt
from xpe.registry import EVALUATORS, TASKS
from xpe.types import Evaluator

Plans = Mapping[str, Mapping[str, Plain]]


def build_evaluators(
    tasks: Mapping[str, Any],
    chosen: Mapping[str, Plain],
    *,
    unsafe_confirmed: bool,
    predict_only: bool,
    others: Mapping[str, Any],
) -> dict[str, dict[str, Evaluator]]:
    """Return the evaluators of each task by key, built and checked.

    Parameters
    ----------
    tasks
        The tasks by name; `evaluators` and `metrics` of a task are what `auto` stands for.
    others
        What evaluators that ask somebody have to know of the run; goes to those with such a
        setting.
    chosen
        Settings by key. Those with `kind` were chosen; those without set parameters of what
        `auto` picks.

    Raises
    ------
    ConfigError
        If an evaluator does not fit a task, two metrics have one name, or nothing is scored.
    """
    plans = plan(tasks, chosen)
    built: dict[str, dict[str, Evaluator]] = {}
    for name, task in tasks.items():
        kind = TASKS.kind_of(task)
        built[name] = {
            key: _build(
                key, _for_run(_for_task(settings, task), others), name, kind, unsafe_confirmed
            )
            for key, settings in plans[name].items()
        }
        _check_names(name, built[name])
    return {name: {} for name in tasks} if predict_only else built


def plan(tasks: Mapping[str, Any], chosen: Mapping[str, Plain]) -> Plans:
    """Return the settings of the evaluators of each task, by task and key."""
    entries = checked_entries("evaluator", chosen)
    auto = entries.pop("auto", None) is not None
    picked = {key: entry for key, entry in entries.items() if "kind" in entry}
    parameters = {key: entry for key, entry in entries.items() if "kind" not in entry}
    if not auto and not picked:
        raise ConfigError("evaluator: none is chosen. Choose evaluator=auto or another")
    named = {name: named_by(task) if auto else {} for name, task in tasks.items()}
    _check_parameters(parameters, named, picked, auto=auto)
    return {
        name: {
            **{key: {**own, **parameters.get(key, {})} for key, own in named[name].items()},
            **picked,
        }
        for name in tasks
    }


def named_by(task: Any) -> dict[str, Plain]:
    """Return what a task names: its `evaluators`, and its `metrics`, else those of its kind."""
    evaluators = {
        str(key): {"kind": key, **(settings or {})}
        for key, settings in (getattr(task, "evaluators", None) or {}).items()
    }
    names = list(getattr(task, "metrics", None) or ())
    if evaluators and not names:
        return evaluators
    return {"metrics": {"kind": "metrics", "names": names}, **evaluators}


def _check_parameters(
    parameters: Mapping[str, Plain],
    named: Mapping[str, Mapping[str, Plain]],
    picked: Mapping[str, Plain],
    *,
    auto: bool,
) -> None:
    known = {key for task in named.values() for key in task} | set(picked)
    for key in parameters:
        if key not in known:
            why = "no task names it" if auto else "it is not chosen"
            raise UnknownNameError(
                f"evaluator.{key}: has settings, but {why}. Used: {', '.join(sorted(known))}. "
                f"Choose it with 'evaluator=[auto,{key}]'"
            )


def _for_task(settings: Plain, task: Any) -> Plain:
    """A list of metrics has to know what the task asks for, to pick defaults and to refuse."""
    if settings["kind"] != "metrics" or not hasattr(task, "output_type"):
        return settings
    return {"output_type": task.output_type, **settings}


def _for_run(settings: Plain, others: Mapping[str, Any]) -> Plain:
    known = settings_of(EVALUATORS[str(settings["kind"])])
    return {**settings, **{name: value for name, value in others.items() if name in known}}


def _build(key: str, settings: Plain, task: str, kind: str, unsafe_confirmed: bool) -> Evaluator:
    rest = dict(settings)
    cls = EVALUATORS[str(rest.pop("kind"))]
    fits = getattr(cls, "fits", None)
    if fits is not None and kind not in fits:
        raise ConfigError(
            f"evaluator.{key}: scores tasks of kind {', '.join(sorted(fits))}, and {task} is of "
            f"kind {kind}. Choose another evaluator (`xpe ls evaluators`) or another task"
        )
    if getattr(cls, "unsafe_code", False) and not unsafe_confirmed:
        raise ConfigError(
            f"evaluator.{key}: runs code that a model wrote. "
            "If you want that on this machine, add confirm_run_unsafe_code=true"
        )
    return adapt(build(cls, rest, f"evaluator.{key}"))


def _check_names(task: str, evaluators: Mapping[str, Evaluator]) -> None:
    """Raise if two evaluators of a task, or two of their metrics, would have one key."""
    owners: dict[str, str] = {}
    for key, evaluator in evaluators.items():
        called = f"the name {_result_key(evaluator.name, evaluator)}"
        for name in (called, *_metric_keys(evaluator)):
            if name in owners:
                raise ConfigError(
                    f"task {task}: the evaluators {owners[name]!r} and {key!r} both give {name!r}. "
                    f"Tell them apart: evaluator.{key}.name={key}"
                )
            owners[name] = key


def _metric_keys(evaluator: Evaluator) -> Iterator[str]:
    prefix = getattr(evaluator, "prefix", "")
    return (_result_key(f"{prefix}{metric.name}", evaluator) for metric in evaluator.metrics)


def _result_key(name: str, evaluator: Evaluator) -> str:
    return name if evaluator.filter == "none" else f"{name},{evaluator.filter}"
