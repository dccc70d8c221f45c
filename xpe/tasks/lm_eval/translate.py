"""What a task of lm-evaluation-harness says, as settings of a task of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from xpe.data.code import Function, is_named
from xpe.errors import ConfigError, SettingTypeError, UnknownNameError, nearest

Plain: TypeAlias = dict[str, Any]

KINDS = {
    "multiple_choice": "multiple_choice",
    "generate_until": "generation",
    "loglikelihood": "loglikelihood",
    "loglikelihood_rolling": "perplexity",
}
"""Output type to kind of task."""
TASK_KEYS = frozenset((
    "task", "task_alias", "custom_dataset", "dataset_path", "dataset_name", "dataset_kwargs",
    "training_split", "validation_split", "test_split", "fewshot_split", "process_docs",
    "doc_to_text", "doc_to_target", "doc_to_image", "doc_to_audio", "unsafe_code",
    "doc_to_choice", "process_results", "use_prompt", "description", "target_delimiter",
    "fewshot_delimiter", "fewshot_config", "num_fewshot", "metric_list", "output_type",
    "generation_kwargs", "repeats", "filter_list", "should_decontaminate",
    "doc_to_decontamination_query", "gen_prefix", "metadata", "class",
))  # fmt: skip
"""Every key of a task's file, `include`, `tag` and `group` aside."""
GROUP_KEYS = frozenset({"group", "group_alias", "task", "aggregate_metric_list", "metadata"})
SHOT_KEYS = frozenset((
    "sampler", "split", "process_docs", "fewshot_indices", "samples", "doc_to_text",
    "doc_to_choice", "doc_to_target", "gen_prefix", "fewshot_delimiter", "target_delimiter",
))  # fmt: skip
_TEXTS = ("doc_to_text", "doc_to_target", "doc_to_choice")
_AS_THEY_ARE = ("description", "gen_prefix", "target_delimiter", "fewshot_delimiter")
_AGGREGATE_KEYS = frozenset({"metric", "filter_list", "aggregation", "weight_by_size"})
_MEANT_FOR_GROUPS = {"weight_by_size", "high_is_better"}
"""Keys of metric lists that stand in tasks of the library and mean nothing there."""


def task_settings(
    stated: Mapping[str, Any], compat: str | None, note: Callable[[str], None]
) -> Plain:
    """Return a finished task's settings, all but what the top of a config hands down.

    Parameters
    ----------
    stated
        The keys of its YAML, includes and overrides merged.
    compat
        `lm_eval`: metrics are measured by the harness's own rules.
    note
        Told about keys that mean nothing.

    Raises
    ------
    ConfigError
        If a key is unknown (names the nearest) or a value is impossible.
    """
    _refuse(stated)
    _check_keys(stated, TASK_KEYS, "")
    output_type = stated.get("output_type") or "generate_until"
    if output_type not in KINDS:
        raise _unknown_key("output_type:", output_type, KINDS)
    made: Plain = {
        "kind": KINDS[output_type],
        "display_name": stated.get("task_alias"),
        "data": _source(stated, _evaluated(stated)),
        "process_docs": stated.get("process_docs"),
        "fewshot": _fewshot(stated),
        "num_fewshot": stated.get("num_fewshot"),
        "repeats": stated.get("repeats", 1),
        "evaluators": _evaluators(stated, output_type, compat, note),
        "unsafe_code": bool(stated.get("unsafe_code", False)),
        "modality": _modality(stated),
        "version": str((stated.get("metadata") or {}).get("version", "Yaml")),
        "metadata": dict(stated.get("metadata") or {}),
        **{key: _template(stated[key]) for key in _TEXTS if stated.get(key) is not None},
        **{key: stated[key] for key in _AS_THEY_ARE if stated.get(key) is not None},
    }
    if output_type == "generate_until":
        made["generation_kwargs"] = _generation(stated)
    metrics = _metric_names(stated)
    if "acc_mutual_info" in metrics:
        # The task asks for the choices without a question, too; `metrics` tells it so.
        made["metrics"] = metrics
        made["evaluators"] = {"metrics": next(iter(made["evaluators"].values()))}
    return made


def group_settings(
    name: str,
    stated: Mapping[str, Any],
    members: Sequence[str],
    compat: str | None,
    note: Callable[[str], None],
) -> Plain:
    """Return the settings of a group; the rest as `task_settings`."""
    aggregates = stated.get("aggregate_metric_list") or []
    aggregates = [aggregates] if isinstance(aggregates, Mapping) else aggregates
    metadata = stated.get("metadata") or {}
    return {
        "kind": "group",
        "display_name": stated.get("group_alias"),
        "tasks": list(members),
        "aggregate_metric_list": [_aggregate(name, dict(one), compat, note) for one in aggregates],
        "version": str(metadata.get("version", "N/A")),
        "metadata": dict(metadata),
    }


# --- data ------------------------------------------------------------------------------------


def _evaluated(stated: Mapping[str, Any]) -> str:
    split = stated.get("test_split") or stated.get("validation_split")
    if not split:
        raise ConfigError("needs test_split or validation_split: the documents to evaluate")
    return str(split)


def _source(stated: Mapping[str, Any], split: str | None) -> Plain:
    kwargs = dict(stated.get("dataset_kwargs") or {})
    kwargs.pop("trust_remote_code", None)
    if (make := stated.get("custom_dataset")) is not None:
        if not is_named(make):
            raise SettingTypeError(f"custom_dataset: expected !function, got {make!r}")
        given = {**(stated.get("metadata") or {}), **kwargs}
        return {"path": f"custom:{make['function']}", "make": make, "split": split, "kwargs": given}
    path = stated.get("dataset_path")
    if not isinstance(path, str) or not path:
        raise SettingTypeError(f"dataset_path: expected the name of a data set, got {path!r}")
    name = stated.get("dataset_name")
    if name is not None and not isinstance(name, (str, int, float)):
        raise SettingTypeError(f"dataset_name: expected a name, got {name!r}")
    return {
        "path": path,
        "format": "hub",
        "name": None if name is None else str(name),
        "split": split,
        "revision": kwargs.pop("revision", None),
        "kwargs": kwargs,
    }


def _fewshot(stated: Mapping[str, Any]) -> Plain:
    """Say where examples come from: the stated split, listed samples, else the first split."""
    own = dict(stated.get("fewshot_config") or {})
    _check_keys(own, SHOT_KEYS, "fewshot_config.")
    split = own.get("split", stated.get("fewshot_split"))
    # The harness compares names, so that two missing splits are "the same" too.
    made: Plain = {"exclude": split == stated.get("test_split")}
    made["sampler"] = own.get("sampler", "default")
    if is_named(made["sampler"]):
        raise ConfigError("fewshot_config.sampler: a sampler of a task's own is not supported")
    samples = own.get("samples")
    if split is None and samples is not None:
        made["samples"] = samples
    else:
        rest = (stated.get(f"{name}_split") for name in ("training", "validation", "test"))
        made["split"] = split or next(filter(None, rest), None)
        if split is not None and "process_docs" in own:
            made["process_docs"] = own["process_docs"]
    texts = (*_TEXTS, "gen_prefix", "fewshot_delimiter", "target_delimiter")
    made |= {key: _template(own[key]) for key in texts if own.get(key) is not None}
    return made


def _template(value: Any) -> Any:
    """Leave a template as it is; a flag or number that YAML read is text to Jinja."""
    return str(value) if isinstance(value, (bool, float)) else value


def _generation(stated: Mapping[str, Any]) -> Plain:
    given = dict(stated.get("generation_kwargs") or {})
    if "temperature" in given:
        given["temperature"] = float(given["temperature"])
    return given


def _modality(stated: Mapping[str, Any]) -> str:
    if stated.get("doc_to_image") is not None:
        return "image"
    return "audio" if stated.get("doc_to_audio") is not None else "text"


# --- scores ----------------------------------------------------------------------------------


def _evaluators(
    stated: Mapping[str, Any], output_type: str, compat: str | None, note: Callable[[str], None]
) -> Plain:
    filters = stated.get("filter_list")
    if filters is None:
        filters = [{"name": "none", "filter": [{"function": "take_first"}]}]
    common = {
        "kind": "lm_eval",
        "names": [_metric(dict(entry), note) for entry in stated.get("metric_list") or []],
        "output_type": output_type,
        "process_results": stated.get("process_results"),
        "compat": compat,
    }
    made: Plain = {}
    for pipeline in filters:
        if not isinstance(pipeline, Mapping) or not {"name", "filter"} <= pipeline.keys():
            raise ConfigError(f"filter_list: expected `name` and `filter`, got {pipeline!r}")
        name = str(pipeline["name"])
        made[name] = {**common, "filter": name, "filters": [_step(s) for s in pipeline["filter"]]}
    return made


def _step(stated: Mapping[str, Any]) -> Plain:
    if "function" not in stated:
        raise ConfigError(f"filter_list: a filter needs `function`, got {dict(stated)!r}")
    return {"kind": stated["function"], **{k: v for k, v in stated.items() if k != "function"}}


def _metric(entry: Plain, note: Callable[[str], None]) -> Plain:
    for key in _MEANT_FOR_GROUPS & entry.keys():
        note(f"metric_list: {key} means nothing in a task and is left out ({entry.get('metric')})")
        del entry[key]
    return entry


def _metric_names(stated: Mapping[str, Any]) -> list[str]:
    return [str(entry.get("metric")) for entry in stated.get("metric_list") or []]


def _aggregate(group: str, entry: Plain, compat: str | None, note: Callable[[str], None]) -> Plain:
    where = f"aggregate_metric_list of {group}"
    _check_keys(entry, _AGGREGATE_KEYS, "aggregate_metric_list.")
    aggregation = entry.get("aggregation", "mean")
    if is_named(aggregation) and compat is not None:
        note(f"{where}: {aggregation['function']} is ignored, as by the harness; the mean counts")
        return {**entry, "aggregation": "mean"}
    if aggregation != "mean" and not is_named(aggregation):
        raise ConfigError(f"{where}: aggregation must be mean or a !function, got {aggregation!r}")
    return entry


# --- checks ----------------------------------------------------------------------------------


def _refuse(stated: Mapping[str, Any]) -> None:
    if "class" in stated:
        raise ConfigError(
            "class: a Python class of the harness builds its own requests and scores, which xpe "
            "cannot run; write what it does as YAML, with !function where needed"
        )
    if stated.get("use_prompt") is not None:
        raise ConfigError(
            "use_prompt: prompts of promptsource are not supported, write doc_to_text"
        )


def check_functions(value: Any) -> None:
    """Check that every function that settings name is defined where they say.

    Raises
    ------
    UnknownNameError
        If a file lacks one.
    """
    if is_named(value):
        Function(**value).check()
    elif isinstance(value, Mapping):
        for inner in value.values():
            check_functions(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            check_functions(inner)


def _check_keys(stated: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in stated:
        if key not in known:
            raise _unknown_key(f"{where}{key}:", key, known)


def _unknown_key(where: str, key: str, known: Iterable[str]) -> UnknownNameError:
    close = nearest(key, known)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return UnknownNameError(f"{where} no such key {key!r}.{hint} Known: {', '.join(sorted(known))}")
