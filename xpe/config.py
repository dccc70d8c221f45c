"""The config of a run: composed by Hydra, finished and checked here, built into objects.

`compose` (Python) and `finish` (the job of a Hydra run) give a `RunConfig`; `dump` is the way
back to YAML, and `finish(dump(config)) == config`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass

from xpe import _hydra
from xpe._dump import plain, without_cosmetics
from xpe._evaluators import build_evaluators
from xpe._explain import build
from xpe._finish import (
    Note,
    Plain,
    check_keys,
    checked_entries,
    checked_limit,
    finish_retrieval,
    finish_tasks,
    mapping,
    typed_keys,
)
from xpe.data.code import functions_in
from xpe.errors import ConfigError, unknown
from xpe.registry import MODELS, STRICT, TASKS, TRACKERS, Registry
from xpe.seeds import Seeds
from xpe.stats.settings import Stats
from xpe.tasks.selection import checked_shard
from xpe.types import Evaluator, Model

logger = logging.getLogger(__name__)

SCHEMA = "xpe.config/1"
"""Marks a dumped config, which is finished: its tasks are taken as they are."""

GROUPS = (
    "model",
    "task",
    "evaluator",
    "judge",
    "retrieval",
    "seed",
    "stats",
    "tracking",
    "store",
    "data",
)
"""The folders of configs; each is a field of RunConfig."""

DECIDES = (
    "model",
    "judge",
    "retrieval",
    "task",
    "evaluator",
    "seed",
    "stats",
    "compat",
    "predict_only",
)
"""What the fingerprint hashes; all else at the top that decides a result is in the tasks."""


@dataclass(frozen=True, config=STRICT)
class StoreConfig:
    """Where replies are kept: a checkpoint in the run folder, or a cache for all runs."""

    kind: Literal["checkpoint", "cache"] = "checkpoint"
    keep: bool = False


@dataclass(frozen=True, config=STRICT)
class DataConfig:
    """`remap` names local files or folders for data sets: `{cais/mmlu: /data/mmlu}`."""

    remap: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, config=STRICT)
class RunConfig:
    """A whole run, checked: nothing in here is loaded yet.

    Parameters
    ----------
    model, judge, retrieval
        Who answers the requests to `model`, `judge`, `retrieval`; None for nobody.
    task
        The tasks by name, in the order in which they run.
    evaluator
        What was chosen, by key; `auto` stands for what each task names (see `evaluators`).
    limit
        The first n documents of each task: a count, or a share inside (0, 1), rounded up.
    samples
        Document ids by task, for those that are not to be asked whole.
    shard
        `1/4`: of the documents that are left, the first of four shards; `xpe merge` joins them.
    max_failed
        How many failed samples a complete run may have.
    fresh, rerun
        Start over although an unfinished run, or a finished one, has the same fingerprint.
    output
        The run folder, instead of one named by time and fingerprint.
    """

    model: Any
    task: Mapping[str, Any]
    evaluator: Mapping[str, dict[str, Any]] = Field(default_factory=lambda: {"auto": {}})
    judge: Any = None
    retrieval: Any = None
    seed: Seeds = Field(default_factory=Seeds)
    stats: Stats = Field(default_factory=Stats)
    tracking: Any = None
    store: StoreConfig = Field(default_factory=StoreConfig)
    data: DataConfig = Field(default_factory=DataConfig)
    num_fewshot: int | None = Field(default=None, ge=0)
    gen_kwargs: dict[str, Any] = Field(default_factory=dict)
    predict_only: bool = False
    limit: int | float | None = None
    samples: dict[str, list[int]] = Field(default_factory=dict)
    shard: str | None = None
    compat: Literal["lm_eval"] | None = None
    confirm_run_unsafe_code: bool = False
    trust_task_code: bool = False
    log_samples: bool = True
    apply_chat_template: bool | None = None
    fewshot_as_multiturn: bool = True
    system_instruction: str | None = None
    max_failed: int = Field(default=0, ge=0)
    fresh: bool = False
    rerun: bool = False
    output: str | None = Field(default=None, min_length=1)

    @field_validator("limit", mode="before")
    @classmethod
    def _limit_is_a_count_or_a_share(cls, limit: Any) -> Any:
        return checked_limit(limit)

    @field_validator("shard")
    @classmethod
    def _shard_is_one_of_several(cls, shard: str | None) -> str | None:
        return checked_shard(shard)

    def __post_init__(self) -> None:
        if self.model is None:
            raise ConfigError("model: no model is chosen; `xpe ls models` lists them")
        if not self.task:
            raise ConfigError(
                "task: no task is chosen. Choose one (task=capitals_en) or several "
                "('task=[capitals_en,tcm_choice]'); `xpe ls tasks` lists them"
            )
        for name, task in self.task.items():
            _check_task(self, name, task)
        for name, group in self.groups.items():
            _check_group(self, name, group)
        _ = self.evaluators

    @cached_property
    def evaluators(self) -> Mapping[str, Mapping[str, Evaluator]]:
        """The evaluators of each task, by task and key; none where nothing is scored."""
        return build_evaluators(
            {task.name: task for task in self.leaves},
            self.evaluator,
            unsafe_confirmed=self.confirm_run_unsafe_code,
            predict_only=self.predict_only,
            others={"judges": self.judges, "retrieves": self.retrieval is not None},
        )

    @property
    def judges(self) -> tuple[bool, ...]:
        """One entry a judge: whether it can be held to a JSON schema."""
        return tuple(bool(getattr(one, "structured_output", False)) for one in self._judges)

    @cached_property
    def _judges(self) -> tuple[Model, ...]:
        seats = getattr(self.judge, "judges", None)
        if seats is None:
            return () if self.judge is None else (self.judge,)
        return tuple(_part(MODELS, seat, f"judge.judges.{n}") for n, seat in enumerate(seats))

    @property
    def models(self) -> dict[str, Model]:
        """Who answers the requests `to` each name; a second judge is `judge.2`."""
        found = {"model": self.model, "retrieval": self.retrieval}
        for number, judge in enumerate(self._judges, 1):
            found["judge" if number == 1 else f"judge.{number}"] = judge
        return {name: model for name, model in found.items() if model is not None}

    @property
    def leaves(self) -> tuple[Any, ...]:
        """The tasks that ask: all but groups."""
        return tuple(task for task in self.task.values() if hasattr(task, "dialogue"))

    @property
    def groups(self) -> dict[str, Any]:
        """The groups of tasks, by name."""
        return {n: task for n, task in self.task.items() if not hasattr(task, "dialogue")}

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits that name what decides the results (see `fingerprint`)."""
        return fingerprint(self)


def compose(overrides: Sequence[str] = ()) -> RunConfig:
    """Compose and check a run: `compose(["task=[capitals_en,tcm_choice]", "limit=20"])`.

    Raises
    ------
    ConfigError
        If a name, key or value is wrong.
    """
    return finish(_hydra.compose(overrides), overrides)


def chosen(override: str) -> Plain:
    """Return the settings of a choice alone: `evaluator=[accuracy,math]` gives those two.

    Raises
    ------
    ConfigError
        If there is no such option.
    """
    group = override.partition("=")[0]
    return mapping(_hydra.plain(_hydra.compose([override]))[group], group)


def finish(cfg: Any, overrides: Sequence[str] = ()) -> RunConfig:
    """Check and build a composed config (a DictConfig or a dict).

    `overrides` are those that were typed: what was typed for one task wins over the top level.
    A dict that `dump` made is taken as it is.

    Raises
    ------
    ConfigError
        If a name, key or value is wrong.
    """
    return finished(cfg, overrides, logger.info)


def finished(cfg: Any, overrides: Sequence[str], note: Note) -> RunConfig:
    """Do what `finish` does; `note` is told where a setting was not followed."""
    settings = _hydra.plain(cfg)
    is_dump = settings.pop("schema", None) == SCHEMA
    check_keys(settings, [f.name for f in dataclasses.fields(RunConfig)])
    checked_limit(settings.get("limit"))
    settings["gen_kwargs"] = mapping(settings.get("gen_kwargs"), "gen_kwargs")
    typed_slots = {"seed": Seeds, "stats": Stats, "store": StoreConfig, "data": DataConfig}
    slots: Plain = {
        name: build(cls, mapping(settings.get(name), name), name)
        for name, cls in typed_slots.items()
    }
    tasks = checked_entries("task", settings.get("task") or {})
    if not is_dump:
        whole = {**settings, **{name: plain(slots[name]) for name in ("seed", "data")}}
        tasks = finish_tasks(tasks, whole, typed_keys(overrides), note)
        settings["retrieval"] = finish_retrieval(settings.get("retrieval"), whole)
    slots["model"] = _part(MODELS, settings.get("model"), "model")
    slots["judge"] = _part(MODELS, settings.get("judge"), "judge")
    slots["retrieval"] = _part(MODELS, settings.get("retrieval"), "retrieval")
    slots["tracking"] = tracker_of(settings.get("tracking"))
    slots["task"] = {name: _part(TASKS, task, f"task.{name}") for name, task in tasks.items()}
    rest = {k: v for k, v in settings.items() if k not in slots and v is not None}
    return build(RunConfig, {**slots, **rest}, "")  # type: ignore[no-any-return]


def tracker_of(settings: Any) -> Any:
    """Build the tracker that settings name; None for the kind `none`."""
    return _part(TRACKERS, settings, "tracking")


def dump(config: RunConfig) -> Plain:
    """Return the config as plain values, with defaults and kinds; there are no secrets in it."""
    registries = {"model": MODELS, "judge": MODELS, "retrieval": MODELS, "tracking": TRACKERS}
    made: Plain = {"schema": SCHEMA}
    for field in dataclasses.fields(RunConfig):
        value = getattr(config, field.name)
        if field.name in registries:
            made[field.name] = _with_kind(registries[field.name], value)
        elif field.name == "task":
            made["task"] = {name: _with_kind(TASKS, task) for name, task in value.items()}
        else:
            made[field.name] = plain(value)
    return made


def fingerprint(config: RunConfig) -> str:
    """Return twelve hex digits of what decides the results, defaults included.

    Not of how and where: tracking, store, output, device, threads, names of keys, and what a
    class lists as `cosmetic`.
    """
    text = json.dumps(decisive(config), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def decisive(config: RunConfig) -> Plain:
    """Return the plain settings that decide the results."""
    made = dump(config)
    parts: Plain = {"schema": SCHEMA}
    for name in DECIDES:
        value = getattr(config, name)
        parts[name] = (
            {key: without_cosmetics(made["task"][key], task) for key, task in value.items()}
            if name == "task"
            else without_cosmetics(made[name], value)
        )
    return parts


def _part(registry: Registry, settings: Any, path: str) -> Any:
    """Build the object that `kind` names; None for the kind `none`."""
    if settings is None:
        return None
    rest = mapping(settings, path)
    kind = rest.pop("kind", None)
    if kind is None:
        raise ConfigError(f"{path}: needs `kind`, one of {', '.join(sorted(registry))}")
    return None if kind == "none" else build(registry[str(kind)], rest, path)


def _with_kind(registry: Registry, part: Any) -> Plain:
    return {"kind": "none"} if part is None else {"kind": registry.kind_of(part), **plain(part)}


def _check_task(config: RunConfig, name: str, task: Any) -> None:
    if getattr(task, "unsafe_code", False) and not config.confirm_run_unsafe_code:
        raise ConfigError(
            f"task.{name}: runs code that a model wrote. "
            "If you want that on this machine, add confirm_run_unsafe_code=true"
        )
    if not config.trust_task_code and (places := functions_in(task)):
        raise ConfigError(
            f"task.{name}: runs Python code that it brings along: {', '.join(places[:3])}. "
            "If you trust it, add trust_task_code=true"
        )
    if hasattr(task, "dialogue") and getattr(task, "shard", None) != config.shard:
        raise ConfigError(
            f"task.{name}: runs shard {getattr(task, 'shard', None)}, the run shard "
            f"{config.shard}. Write shard=… at the top; the kind of each task must have the setting"
        )
    modality = getattr(task, "modality", "text")
    if modality != "text" and not getattr(config.model, "multimodal", False):
        raise ConfigError(
            f"task.{name}: needs a model that takes {modality}, and model="
            f"{MODELS.kind_of(config.model)} takes text only. Choose another model or task"
        )


def _check_group(config: RunConfig, name: str, group: Any) -> None:
    for member in group.tasks:
        if member not in config.task:
            raise unknown(f"task in task.{name}.tasks", member, config.task)


def _resolved_fingerprint(cfg: Any) -> str:
    """Name a run folder. Never raises: in a sweep that would drop the remaining jobs."""
    try:
        typed = cfg.hydra.overrides.task
        return finished(cfg, list(typed), lambda _: None).fingerprint
    except Exception:  # noqa: BLE001
        return "invalid"


_hydra.register([f.name for f in dataclasses.fields(RunConfig)], GROUPS, _resolved_fingerprint)
