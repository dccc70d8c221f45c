from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xpe.errors import ConfigError, UnknownNameError
from xpe.metrics import get_aggregation
from xpe.report import estimate_json, table_row
from xpe.stats.estimate import estimate
from xpe.stats.groups import group_estimates, leaf_names
from xpe.stats.settings import Stats
from xpe.tasks.group import Group
from xpe.types import Estimate, Mean, Metric, Order, Ratio, Table, TaskResult


def bare(value: float, stderr: float | None, n: int, why: str | None = None) -> Estimate:
    return Estimate(value, stderr, None, None, n=n, count=n, why=why)


def task(name: str, **estimates: Estimate) -> TaskResult:
    n = max(e.n for e in estimates.values())
    return TaskResult(name, {k.replace("__", ","): v for k, v in estimates.items()}, n, n)


def group(*members: str, **entry: Any) -> Group:
    return Group(name="g", tasks=members, aggregate_metric_list=[{"metric": "acc", **entry}])


def one(g: Group, tasks: Mapping[str, TaskResult], compat: str | None = None) -> Estimate:
    return group_estimates({"g": g}, tasks, {}, Stats(), compat=compat)["g"]["acc"]


def source(metric: Metric, *columns: np.ndarray) -> tuple[Metric, Table]:
    n = len(columns[0])
    names = tuple("abcdef"[: len(columns)])
    rows = np.column_stack(columns).astype(float)
    return metric, Table(names, rows, tuple(range(n)), np.ones(n, bool), (None,) * n)


def test_macro_mean_has_the_error_of_a_plain_mean() -> None:
    """S17, and with sizes 20 and 1000 not the size-weighted 0.00957."""
    tasks = {
        "a": task("a", acc=bare(0.5, math.sqrt(0.25 / 19), 20)),
        "b": task("b", acc=bare(0.9, math.sqrt(0.09 / 999), 1000)),
    }
    made = one(group("a", "b", weight_by_size=False), tasks)
    assert made.value == pytest.approx(0.7)
    assert made.stderr == pytest.approx(0.0575499, abs=5e-8)


def test_error_of_a_group_is_not_the_average_of_its_tasks() -> None:
    """Three tasks: 0.0213, where the average of their errors is 0.0365."""
    sizes, shares = [100, 150, 250], [0.8, 0.6, 0.7]
    errors = [math.sqrt(p * (1 - p) / (n - 1)) for p, n in zip(shares, sizes, strict=True)]
    tasks = {
        name: task(name, acc=bare(p, e, n))
        for name, p, e, n in zip("abc", shares, errors, sizes, strict=True)
    }
    made = one(group("a", "b", "c", weight_by_size=False), tasks)
    assert np.mean(errors) == pytest.approx(0.0365, abs=5e-4)
    assert made.stderr == pytest.approx(0.0213, abs=5e-5)


def test_task_reached_twice_counts_once() -> None:
    """Nested groups that share a task; under compat it counts twice, as in the harness."""
    tasks = {"a": task("a", acc=bare(1.0, 0.1, 10)), "b": task("b", acc=bare(0.0, 0.1, 10))}
    groups = {
        "g": Group(name="g", tasks=["x", "y"], aggregate_metric_list=[{"metric": "acc"}]),
        "x": Group(name="x", tasks=["a", "b"]),
        "y": Group(name="y", tasks=["a"]),
    }
    assert leaf_names("g", groups, tasks) == ("a", "b")
    assert group_estimates(groups, tasks, {}, Stats())["g"]["acc"].value == 0.5
    harness = group_estimates(groups, tasks, {}, Stats(), compat="lm_eval")
    assert harness["g"]["acc"].value == pytest.approx(2 / 3)


def test_groups_without_metrics_have_no_row() -> None:
    """A group that only bundles tasks is absent from the estimates."""
    tasks = {"a": task("a", acc=bare(1.0, 0.1, 10))}
    assert group_estimates({"g": Group(name="g", tasks=["a"])}, tasks, {}, Stats()) == {}


def test_missing_metric_is_skipped_listed_and_makes_the_row_partial(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One task lacks the metric: the others are aggregated, visibly incomplete."""
    tasks = {"a": task("a", acc=bare(0.8, 0.04, 100)), "b": task("b", f1=bare(0.5, 0.05, 50))}
    with caplog.at_level(logging.WARNING):
        made = one(group("a", "b"), tasks)
    assert (made.value, made.n, made.partial) == (0.8, 100, True)
    assert made.extra["missing"] == ("b",)
    assert table_row("acc", estimate_json(made))[-1] == "100 (0, 0, 0) partial"
    assert made.extra["n_tasks"] == 1
    assert "no acc in b" in caplog.text


def test_undefined_error_of_one_task_makes_that_of_the_group_undefined() -> None:
    """A task of one sample has no error; the group says which."""
    tasks = {"a": task("a", acc=bare(1.0, None, 1, "n=1")), "b": task("b", acc=bare(0.5, 0.05, 99))}
    made = one(group("a", "b"), tasks)
    assert made.stderr is None
    assert made.why == "a: n=1"
    assert made.value == pytest.approx((1 + 0.5 * 99) / 100)


def test_n_is_kept_per_filter() -> None:
    """Each filter of a metric is a row of its own with its own n."""
    tasks = {
        "a": task("a", acc=bare(0.8, 0.1, 10), acc__strict=bare(0.6, 0.1, 8)),
        "b": task("b", acc=bare(0.4, 0.1, 30)),
    }
    made = group_estimates({"g": group("a", "b")}, tasks, {}, Stats())["g"]
    assert made["acc"].n == 40
    assert made["acc,strict"].n == 8
    only = group_estimates({"g": group("a", "b", filter_list="strict")}, tasks, {}, Stats())["g"]
    assert list(only) == ["acc,strict"]


def test_direction_survives_only_if_unanimous() -> None:
    """Tasks that disagree on the direction leave it unknown."""
    low = Estimate(0.1, 0.1, None, None, n=5, count=5, higher_is_better=False)
    tasks = {"a": task("a", acc=bare(0.2, 0.1, 5)), "b": task("b", acc=low)}
    assert one(group("a", "b"), tasks).higher_is_better is None


def test_binary_groups_have_a_wilson_interval_that_never_degenerates() -> None:
    """All answers right in both tasks: the interval is that of 40 right answers of 40."""
    metric = Metric("acc", Mean("a"))
    rows = {name: {"acc": source(metric, np.ones(20))} for name in "ab"}
    tasks = {n: task(n, acc=estimate(*rows[n]["acc"], Stats())) for n in "ab"}
    made = group_estimates({"g": group("a", "b")}, tasks, rows, Stats())["g"]["acc"]
    assert made.ci_method == "wilson"
    assert made.ci == pytest.approx((0.9123783, 1.0), abs=1e-6)  # statsmodels, 40 of 40


def test_ratio_of_a_group_is_the_ratio_of_sums() -> None:
    """Rows that add up are summed: 3/4 and 1/10 are 4/14 together, not 0.425."""
    metric = Metric("acc", Ratio("a", "b"))
    rows = {
        "a": {"acc": source(metric, np.array([1, 2, 0]), np.array([1, 2, 1]))},
        "b": {"acc": source(metric, np.array([0, 1, 0]), np.array([4, 4, 2]))},
    }
    tasks = {n: task(n, acc=estimate(*rows[n]["acc"], Stats(bootstrap_iters=0))) for n in "ab"}
    settings = Stats(bootstrap_iters=0)
    made = group_estimates({"g": group("a", "b")}, tasks, rows, settings)["g"]["acc"]
    assert made.value == pytest.approx(4 / 14)
    assert (made.stderr, made.why) == (None, "off")


@pytest.mark.parametrize("kind", [Order("a")])
def test_what_does_not_add_up_is_refused_for_weighting(kind: Order) -> None:
    """A median of medians weighted by size is no median; unweighted it is a plain mean."""
    metric = Metric("acc", kind)
    rows = {n: {"acc": source(metric, np.arange(5.0) + i)} for i, n in enumerate("ab")}
    tasks = {n: task(n, acc=bare(2.0 + i, 0.1, 5)) for i, n in enumerate("ab")}
    made = group_estimates({"g": group("a", "b")}, tasks, rows, Stats())["g"]["acc"]
    assert made.value is None
    assert "do not add up" in str(made.why)
    plain = group("a", "b", weight_by_size=False)
    assert group_estimates({"g": plain}, tasks, rows, Stats())["g"]["acc"].value == 2.5


def test_corpora_of_other_signatures_are_not_summed() -> None:
    """BLEU of Chinese and of English tokens do not share n-grams."""
    rows = {
        name: {"acc": source(Metric("acc", Ratio("a", "b"), signature=s), np.ones(3), np.ones(3))}
        for name, s in (("a", "tok:zh"), ("b", "tok:13a"))
    }
    tasks = {n: task(n, acc=bare(1.0, 0.1, 3)) for n in "ab"}
    made = group_estimates({"g": group("a", "b")}, tasks, rows, Stats())["g"]["acc"]
    assert made.value is None
    assert "tok:13a" in str(made.why)


def test_members_must_exist_and_groups_must_end() -> None:
    """An unknown member and a group inside itself are config errors."""
    tasks = {"capitals_en": task("capitals_en", acc=bare(1.0, 0.1, 3))}
    with pytest.raises(UnknownNameError, match="capitals_en"):
        leaf_names("g", {"g": group("capitals")}, tasks)
    with pytest.raises(ConfigError, match="contains itself"):
        leaf_names("g", {"g": group("g")}, tasks)
    with pytest.raises(ValueError):
        group()


# --- lm-evaluation-harness -------------------------------------------------------------------


def cases(shared: Path, prefix: str) -> list[dict[str, Any]]:
    text = (shared / "conformance" / "lm_eval_cases.json").read_text(encoding="utf-8")
    found = [case for case in json.loads(text) if case["fn"].startswith(prefix)]
    assert found
    return found


@pytest.mark.shared
def test_group_rows_equal_the_harness(shared_data: Path) -> None:
    """Values, errors and counts of every group case, subgroups and missing metrics included."""
    checked = 0
    for case in cases(shared_data, "group.aggregate("):
        if "raises" in case:
            with pytest.raises(ValueError):
                Group(name="g", tasks=case["args"][2], aggregate_metric_list=case["args"][0])
            continue
        made = _group_of_case(*case["args"])
        for key, expected in case["expect"].items():
            if "," in key and "_stderr" not in key:
                ours = made[key.removesuffix(",none")]
                stderr = case["expect"][key.replace(",", "_stderr,")]
                assert ours.value == expected
                assert ours.stderr == (None if stderr == "N/A" else stderr)
                assert ours.n == case["expect"]["sample_count"][key]
                checked += 1
    assert checked == 7


def _group_of_case(
    entries: list[dict[str, Any]], metrics: dict[str, dict[str, Any]], tree: list[Any]
) -> Mapping[str, Estimate]:
    tasks = {
        name: TaskResult(name, _estimates(found), found["sample_len"], found["sample_len"])
        for name, found in metrics.items()
    }
    members = [m for m in tree if not isinstance(m, list)]
    groups = {sub: Group(name=sub, tasks=of) for sub, of in (m for m in tree if m not in members)}
    names = [m[0] if isinstance(m, list) else m for m in tree]
    # The harness skips a task that it has no metrics of.
    names = [name for name in names if name in groups or name in tasks]
    groups["g"] = Group(name="g", tasks=names, aggregate_metric_list=entries)
    return group_estimates(groups, tasks, {}, Stats(), compat="lm_eval")["g"]


def _estimates(found: dict[str, Any]) -> dict[str, Estimate]:
    values = {k: v for k, v in found.items() if "," in k and "_stderr" not in k}
    errors = {k: found.get(k.replace(",", "_stderr,"), "N/A") for k in values}
    return {
        key.removesuffix(",none"): bare(
            value, None if errors[key] == "N/A" else errors[key], found["sample_len"]
        )
        for key, value in values.items()
    }


def test_rows_of_tasks_are_resampled_within_each_and_independently() -> None:
    """Two tasks alike: the error of the whole is that of one over √2, not that of one."""
    rng = np.random.default_rng(8)
    h = rng.integers(5, 15, 400).astype(float)
    m = np.round(h * rng.random(400) * 10) / 10
    metric = Metric("acc", Ratio("a", "b"))
    settings = Stats(bootstrap_iters=20_000)
    rows = {name: {"acc": source(metric, m, h)} for name in "ab"}
    tasks = {name: task(name, acc=estimate(*rows[name]["acc"], settings)) for name in "ab"}
    made = group_estimates({"g": group("a", "b")}, tasks, rows, settings)["g"]["acc"]
    alone = tasks["a"].estimates["acc"]
    assert made.value == alone.value
    assert made.stderr == pytest.approx(float(alone.stderr or 0) / math.sqrt(2), rel=0.03)
    assert (made.ci_method, made.n) == ("percentile", 800)


def test_bleu_of_a_group_is_that_of_all_sentences() -> None:
    """Not the mean of two BLEUs: sacrebleu on the concatenation."""
    from sacrebleu.metrics import BLEU

    from xpe.stats.items import tabulated

    parts = {
        "a": [("the cat sat on the mat", "the cat sat on a mat"), ("a dog", "a dog barks")],
        "b": [("it rains in the north of the country today", "it rains in the north today")],
    }
    metric = Metric("acc", get_aggregation("bleu").kind("bleu"), signature="13a")
    settings = Stats(bootstrap_iters=0)
    rows = {name: {"acc": (metric, tabulated("bleu", items)[1])} for name, items in parts.items()}
    tasks = {n: task(n, acc=estimate(*rows[n]["acc"], settings)) for n in parts}
    made = group_estimates({"g": group("a", "b")}, tasks, rows, settings)["g"]["acc"]
    every = [item for items in parts.values() for item in items]
    expected = BLEU().corpus_score([t for _, t in every], [[r for r, _ in every]]).score
    assert made.value == pytest.approx(expected, abs=1e-9)
    assert made.value != pytest.approx(
        np.mean([float(t.estimates["acc"].value or 0) for t in tasks.values()]), abs=0.1
    )
