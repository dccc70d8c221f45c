"""Finishes a composed config, as plain dicts, before any object is built.

What stands at the top of a config (few-shot count, limit, generation settings …) is handed to
the tasks here, so that a finished task says all that decides its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xpe._explain import build, settings_of, unknown_key
from xpe._folders import options
from xpe.errors import ConfigError, SettingTypeError, unknown
from xpe.registry import MODELS, TASKS

Plain = dict[str, Any]
Note = Callable[[str], None]

LM_EVAL = "lm_eval"
"""The kind of an entry that names tasks of lm-evaluation-harness."""

HANDED_DOWN = {
    "limit": "limit",
    "shard": "shard",
    "num_fewshot": "num_fewshot",
    "apply_chat_template": "chat",
    "system_instruction": "system_instruction",
}
"""Top-level setting to the task's own; null leaves the task's."""


def typed_keys(overrides: Iterable[str]) -> frozenset[str]:
    """Return the dotted keys that overrides set, without `+` and `~`."""
    return frozenset(text.partition("=")[0].lstrip("+~") for text in overrides)


def checked_limit(limit: Any, where: str = "limit") -> int | float | None:
    """Return a limit that is a count, a share or None.

    Raises
    ------
    ConfigError
        For 0, a negative number, a share that is not inside (0, 1), or anything else.
    """
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        raise SettingTypeError(
            f"{where}: expected a count (1, 2, …) or a share inside (0, 1), "
            f"got {limit!r} ({type(limit).__name__})"
        )
    if isinstance(limit, int) and limit >= 1:
        return limit
    if isinstance(limit, float) and 0 < limit < 1:
        return limit
    if isinstance(limit, float) and limit >= 1:
        whole = f"{where}={int(limit)} for a count of {int(limit)}" if limit < 1e15 else "a count"
        advice = f"write {whole}, or leave it out (null) for all documents"
    else:
        advice = f"write {where}=10 for the first ten, {where}=0.1 for a tenth, or leave it out"
    raise ConfigError(
        f"{where}: expected a count (1, 2, …) or a share inside (0, 1), got {limit!r}; {advice}"
    )


def finish_tasks(
    tasks: Mapping[str, Plain], cfg: Mapping[str, Any], typed: frozenset[str], note: Note
) -> dict[str, Plain]:
    """Return the settings of each task with the top-level ones handed down.

    `cfg` holds the whole config with `seed`, `data` and `gen_kwargs` complete. What was typed for
    a task wins over the top level, which wins over the task's file; a few-shot count that the
    file pins at 0 stays.
    """
    tasks = _expanded(tasks, cfg, note)
    whole = {**cfg, "samples": checked_samples(cfg.get("samples"), tasks)}
    return {name: _finish_task(name, task, whole, typed, note) for name, task in tasks.items()}


def _expanded(
    tasks: Mapping[str, Plain], cfg: Mapping[str, Any], note: Note
) -> Mapping[str, Plain]:
    """Put the tasks and groups that an entry of kind `lm_eval` names in its place.

    Settings of one of them (`task.mmlu_anatomy.num_fewshot=2`) are an entry without a kind.
    """
    if not any(task.get("kind") == LM_EVAL for task in tasks.values()):
        return tasks
    from xpe.tasks.lm_eval.expanding import LmEval

    found: dict[str, Plain] = {}
    for name, task in tasks.items():
        if task.get("kind") != LM_EVAL:
            found[name] = _over(found.get(name, {}), task)
            continue
        where = f"task.{name}"
        settings = build(LmEval, {k: v for k, v in task.items() if k != "kind"}, where)
        for made, plain in settings.expanded(cfg.get("compat"), note).items():
            found[made] = _over(plain, found.get(made, {}))
    return found


def _over(below: Plain, above: Mapping[str, Any]) -> Plain:
    """Lay settings over others, mappings key by key."""
    return below | {
        key: _over(below[key], value)
        if isinstance(value, Mapping) and isinstance(below.get(key), Mapping)
        else value
        for key, value in above.items()
    }


def checked_entries(group: str, entries: Any) -> dict[str, Plain]:
    """Return what several chosen files of a group hold, by key.

    Raises
    ------
    ConfigError
        If a file spilled its keys into the group because its header line is missing.
    """
    if not isinstance(entries, Mapping):
        raise SettingTypeError(f"{group}: expected a mapping by name, got {entries!r}")
    for key, entry in entries.items():
        if not isinstance(entry, Mapping):
            lacking = [str(file) for file in options(group).values() if not _has_header(file)]
            found = f": {', '.join(lacking)}" if lacking else ""
            raise ConfigError(
                f"{group}.{key}: expected the settings of one {group}, got {entry!r}. The first "
                f"line of a file in {group}/ must be `# @package {group}.<name>`; it is missing "
                f"in the chosen file{found}"
            )
    return {str(key): dict(entry) for key, entry in entries.items()}


def checked_samples(samples: Any, tasks: Iterable[str]) -> Mapping[str, Any]:
    """Return the chosen document ids by task."""
    if samples is None:
        return {}
    if not isinstance(samples, Mapping):
        raise SettingTypeError(
            f"samples: expected document ids by task, got {samples!r}; "
            "write 'samples={capitals_en:[0,5,7]}'"
        )
    names = list(tasks)
    for name in samples:
        if name not in names:
            raise unknown("task in samples", str(name), names)
        if not isinstance(samples[name], (list, tuple)):
            raise SettingTypeError(
                f"samples.{name}: expected a list of document ids, got {samples[name]!r}; "
                f"write 'samples={{{name}:[0,5,7]}}'"
            )
    return samples


def _finish_task(
    name: str, task: Plain, cfg: Mapping[str, Any], typed: frozenset[str], note: Note
) -> Plain:
    where = f"task.{name}"
    if "kind" not in task:
        raise ConfigError(f"{where}: needs `kind`, one of {', '.join(sorted(TASKS))}")
    known = frozenset(settings_of(TASKS[str(task["kind"])]))
    if "limit" in known:
        checked_limit(task.get("limit"), f"{where}.limit")
    given = _handed_down(name, task, cfg, typed, note)
    if cfg["gen_kwargs"] and "generation_kwargs" in known:
        own = task.get("generation_kwargs") or {}
        mine = {key: own[key] for key in own if f"{where}.generation_kwargs.{key}" in typed}
        if "temperature" in cfg["gen_kwargs"] and cfg.get("compat") is None:
            # A temperature that was asked for is not to be undone by a file's `do_sample: false`.
            own = {key: value for key, value in own.items() if key != "do_sample"}
        given["generation_kwargs"] = {**own, **cfg["gen_kwargs"], **mine}
    return {**task, **{key: value for key, value in given.items() if key in known}}


def _handed_down(
    name: str, task: Plain, cfg: Mapping[str, Any], typed: frozenset[str], note: Note
) -> Plain:
    """Return what the top level says about a task, whether or not its class has the field."""
    given: Plain = {
        own: cfg[top]
        for top, own in HANDED_DOWN.items()
        if cfg.get(top) is not None and f"task.{name}.{own}" not in typed
    }
    if "num_fewshot" in given and task.get("num_fewshot") == 0 and given["num_fewshot"] != 0:
        note(
            f"task.{name}: num_fewshot stays 0, which its config pins (not {given['num_fewshot']})"
        )
        del given["num_fewshot"]
    if name in cfg["samples"] and f"task.{name}.sample_ids" not in typed:
        given["sample_ids"] = list(cfg["samples"][name])
        if given.pop("limit", None) is not None:
            note(f"task.{name}: samples names the documents, so limit does not apply")
    multiturn = cfg.get("fewshot_as_multiturn")
    if multiturn is not None and (
        "fewshot_as_multiturn" in typed or "fewshot_as_multiturn" not in task
    ):
        given["fewshot_as_multiturn"] = multiturn
    given |= {"name": name, "compat": cfg.get("compat"), "fewshot_seed": cfg["seed"]["fewshot"]}
    given["remap"] = dict(cfg["data"]["remap"])
    given["recall"] = (cfg.get("retrieval") or {}).get("kind", "none") != "none"
    return given


def finish_retrieval(settings: Any, cfg: Mapping[str, Any]) -> Plain | None:
    """Return the settings of a retrieval, with `data.remap` handed down where it reads data."""
    if settings is None:
        return None
    given = mapping(settings, "retrieval")
    kind = str(given.get("kind"))
    reads = kind in MODELS and "remap" in settings_of(MODELS[kind])
    return {**given, "remap": dict(cfg["data"]["remap"])} if reads else given


def mapping(value: Any, path: str) -> Plain:
    """Return settings as a dict of its own; null is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise SettingTypeError(f"{path}: expected a mapping of settings, got {value!r}")
    return dict(value)


def check_keys(cfg: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise if the root of a config has a key that nothing reads."""
    for key in cfg:
        if key == "experiment":
            raise ConfigError(
                "experiment: the chosen file must begin with the line `# @package _global_`"
            )
        if key not in known:
            raise unknown_key("", str(key), known)


def _has_header(file: Any) -> bool:
    with file.open(encoding="utf-8") as lines:
        return next(lines, "").startswith("# @package")
