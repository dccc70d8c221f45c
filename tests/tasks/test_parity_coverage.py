"""What the tasks of the parity tests cover between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_runs import TASKS

from xpe.metrics import get_metric
from xpe.tasks.lm_eval.reading import merged, outline
from xpe.tasks.lm_eval.translate import KINDS
from xpe.text.filters import FILTERS

FILES = {file.stem: merged(file, outline) for file in sorted(TASKS.glob("[a-z]*.yaml"))}
UNITS = {name: stated for name, stated in FILES.items() if isinstance(stated.get("task"), str)}
FUNCTION = True
"""What `outline` reads in place of a `!function`, without running code."""
DEFAULTS = {
    "loglikelihood": ("perplexity", "acc"),
    "loglikelihood_rolling": ("word_perplexity", "byte_perplexity", "bits_per_byte"),
}
METRICS = [
    "acc",
    "acc_norm",
    "acc_bytes",
    "acc_mutual_info",
    "exact_match",
    "perplexity",
    "word_perplexity",
    "byte_perplexity",
    "bits_per_byte",
    "brier_score",
    "mcc",
    "f1",
    "bleu",
    "chrf",
    "ter",
]
"""Those that the harness registers, but `likelihood`, which ends its run; `acc_all`, a mean that
needs `process_results`; and `bypass`, which is `predict_only`.
"""


def test_number_of_tasks() -> None:
    """There are at least twelve, and groups over them."""
    assert len(UNITS) >= 12
    assert len(FILES) - len(UNITS) >= 2


def test_output_types_metrics_and_filters() -> None:
    """Every output type, every built-in metric and every filter is there."""
    assert {stated.get("output_type", "generate_until") for stated in UNITS.values()} == {*KINDS}
    used = {metric for stated in UNITS.values() for metric in _metrics(stated)}
    assert used >= {*METRICS}
    assert all(get_metric(name) for name in METRICS)
    steps = [
        step["function"]
        for stated in UNITS.values()
        for pipeline in stated.get("filter_list") or ()
        for step in pipeline["filter"]
    ]
    assert {step for step in steps if isinstance(step, str)} == {*FILTERS}
    assert any(step is FUNCTION for step in steps)


def test_examples_groups_and_the_rest() -> None:
    """First and drawn examples, groups weighted and not, tags, prefixes, repeats and functions."""
    shots = [stated for stated in UNITS.values() if stated.get("num_fewshot")]
    samplers = {(one.get("fewshot_config") or {}).get("sampler", "default") for one in shots}
    assert samplers == {"first_n", "default"}
    weights = {
        aggregate.get("weight_by_size", True)
        for stated in FILES.values()
        for aggregate in _listed(stated.get("aggregate_metric_list"))
    }
    assert weights == {True, False}
    keys = {key for stated in FILES.values() for key in stated}
    assert keys >= {
        "tag",
        "group_alias",
        "gen_prefix",
        "repeats",
        "process_docs",
        "process_results",
    }
    assert any(stated.get("doc_to_choice") is FUNCTION for stated in UNITS.values())


def _metrics(stated: Mapping[str, Any]) -> list[str]:
    listed = stated.get("metric_list")
    if listed is None:
        return list(DEFAULTS.get(stated.get("output_type", ""), ()))
    return [entry["metric"] for entry in listed if isinstance(entry["metric"], str)]


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, Mapping) else list(value or ())
