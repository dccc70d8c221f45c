"""Groups as rows of a comparison."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xpe.cells import Cell, Options, group_cells, task_cell
from xpe.cli import main
from xpe.compare import compare, find_run
from xpe.config import compose
from xpe.launch import launch
from xpe.tasks.group import Group
from xpe.types import Mean, Metric, Order, Ratio, Sums, Table

OPTIONS = Options(iters=20_000)
SIZES = {"a": 100, "b": 400}


def table(*columns: np.ndarray) -> Table:
    n = len(columns[0])
    rows = np.column_stack(columns).astype(float)
    names = tuple("xy"[: len(columns)])
    return Table(names, rows, tuple(range(n)), np.ones(n, bool), (None,) * n)


def group(*tasks: str, **entry: Any) -> Group:
    return Group(name="g", tasks=tasks, aggregate_metric_list=[{"metric": "acc", **entry}])


def cells(
    tables: dict[str, tuple[Table, Table]], metric: Metric, of: Group, options: Options = OPTIONS
) -> list[Cell]:
    compared = [
        task_cell(name, "acc", "other", ((metric, a), (metric, b)), options)
        for name, (a, b) in tables.items()
    ]
    return list(group_cells({"g": of}, dict.fromkeys(of.tasks), compared, options))


def answers() -> dict[str, tuple[Table, Table]]:
    """Two systems that agree on most questions, on two tasks."""
    rng = np.random.default_rng(3)
    made = {}
    for name, n in SIZES.items():
        before = rng.integers(0, 2, n)
        after = np.where(rng.random(n) < 0.2, 1, before)
        made[name] = table(before), table(after)
    return made


@pytest.mark.parametrize("by_size", [True, False])
def test_means_are_averaged_with_the_error_of_paired_differences(by_size: bool) -> None:
    """Σ w·d / Σ w and √Σ(w·se)² / Σ w, of differences paired within each task."""
    tables = answers()
    (cell,) = cells(tables, Metric("acc", Mean("x")), group("a", "b", weight_by_size=by_size))

    gaps = {k: b.rows_NK[:, 0] - a.rows_NK[:, 0] for k, (a, b) in tables.items()}
    weights = {k: n if by_size else 1 for k, n in SIZES.items()}
    total = sum(weights.values())
    value = sum(weights[k] * gap.mean() for k, gap in gaps.items()) / total
    squares = sum(weights[k] ** 2 * gap.var(ddof=1) / len(gap) for k, gap in gaps.items())
    assert cell.difference.value == pytest.approx(value, rel=1e-12)
    assert cell.difference.stderr == pytest.approx(math.sqrt(squares) / total, rel=1e-12)
    assert cell.run_value - cell.baseline_value == pytest.approx(value, rel=1e-9)
    assert (cell.difference.n, cell.members, cell.label) == (500, ("a", "b"), "g (group)")
    assert cell.difference.ci is not None
    assert cell.difference.ci[0] < value < cell.difference.ci[1]
    assert cell.mde == pytest.approx(2.8015852 * math.sqrt(squares) / total, rel=1e-6)


def test_macro_test_is_that_of_welch() -> None:
    """The sum of two independent means: p of Welch's t test of one against minus the other."""
    from scipy.stats import ttest_ind

    tables = answers()
    (cell,) = cells(tables, Metric("acc", Mean("x")), group("a", "b", weight_by_size=False))

    a, b = (after.rows_NK[:, 0] - before.rows_NK[:, 0] for before, after in tables.values())
    expected = ttest_ind(a, -b, equal_var=False)
    assert cell.difference.p == pytest.approx(expected.pvalue, rel=1e-9)
    ends = expected.confidence_interval()
    assert cell.difference.ci == pytest.approx((ends.low / 2, ends.high / 2), rel=1e-9)


def ratios(n: int) -> tuple[Table, Table]:
    rng = np.random.default_rng(n)
    h = rng.integers(5, 15, n).astype(float)
    m = np.round(h * rng.random(n))
    return table(m, h), table(np.minimum(m + rng.integers(0, 3, n), h), h)


@pytest.mark.parametrize(
    "kind", [Ratio("x", "y"), Sums(("x", "y"), lambda s: s[..., 0] / s[..., 1])]
)
def test_summed_rows_are_scored_together(kind: Any) -> None:
    """The ratio of all sums, not the mean of ratios; the error is the delta method's by stratum."""
    tables = {"a": ratios(300), "b": ratios(301)}
    (cell,) = cells(tables, Metric("acc", kind), group("a", "b"))

    pairs = [(np.vstack([t[i].rows_NK for t in tables.values()])) for i in (0, 1)]
    before, after = (rows[:, 0].sum() / rows[:, 1].sum() for rows in pairs)
    assert (cell.baseline_value, cell.run_value) == (pytest.approx(before), pytest.approx(after))
    assert cell.difference.value == pytest.approx(after - before, rel=1e-12)
    total, squares = pairs[0][:, 1].sum(), 0.0
    for a, b in tables.values():
        gap = b.rows_NK @ [1, -after] - a.rows_NK @ [1, -before]
        squares += len(gap) * gap.var()
    assert cell.difference.stderr == pytest.approx(math.sqrt(squares) / total, rel=0.03)
    assert cell.difference.test == "paired bootstrap"


def test_two_tasks_alike_are_drawn_apart() -> None:
    """The error of both is that of one over √2: equal sizes do not share their draws."""
    one = ratios(300)
    metric = Metric("acc", Ratio("x", "y"))
    (both,) = cells({"a": one, "b": one}, metric, group("a", "b"))
    alone = task_cell("a", "acc", "other", ((metric, one[0]), (metric, one[1])), OPTIONS).cell
    assert both.difference.value == pytest.approx(alone.difference.value)
    stderrs = [cell.difference.stderr or 0.0 for cell in (both, alone)]
    assert stderrs[0] == pytest.approx(stderrs[1] / math.sqrt(2), rel=0.03)


def test_what_does_not_add_up_has_no_row_but_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A median is refused for weighting by size, and averaged without."""
    tables = {name: (table(np.arange(9.0)), table(np.arange(9.0) + 1)) for name in "ab"}
    metric = Metric("acc", Order("x"))
    with caplog.at_level(logging.WARNING):
        assert cells(tables, metric, group("a", "b")) == []
    assert "do not add up" in caplog.text
    (cell,) = cells(tables, metric, group("a", "b", weight_by_size=False))
    assert cell.difference.value == pytest.approx(1.0)


def test_a_task_without_the_metric_is_listed() -> None:
    """The group's row is made of the rest, and says what it lacks."""
    (cell,) = cells(answers(), Metric("acc", Mean("x")), group("a", "b", "c"))
    assert (cell.missing, cell.label) == (("c",), "g (group, without c)")


def test_tasks_that_have_no_error_leave_the_group_without() -> None:
    """One pair has no spread to speak of; equal systems have no test."""
    one = (table(np.ones(1)), table(np.zeros(1)))
    (cell,) = cells({**answers(), "c": one}, Metric("acc", Mean("x")), group("a", "c"))
    assert (cell.difference.stderr, cell.difference.p, cell.difference.why) == (None, None, "n=1")
    same = {name: (a, a) for name, (a, _) in answers().items()}
    (equal,) = cells(same, Metric("acc", Mean("x")), group("a", "b"))
    found = equal.difference
    assert (found.value, found.stderr, found.p, found.why) == (0.0, 0.0, None, "no spread")


# --- out of run folders ----------------------------------------------------------------------


def run_of(home: Path, name: str, wrong: Sequence[int]) -> Path:
    """Run the replay model on both tasks of `capitals`, wrong on some documents of each."""
    words = ["task=capitals", "limit=15", "tracking=none", "model=replay"]
    path = home / f"{name}.jsonl"
    config = compose([*words, "stats.bootstrap_iters=0", f"model.path={path}"])
    lines = []
    for task in config.leaves:
        for sample in task.samples():
            said = (sample.target + (sample.doc_id in wrong)) % 4
            scores = [0.0 if choice == said else -5.0 for choice in range(4)]
            line = {"task": task.name, "id": sample.doc_id, "log_likelihoods": scores}
            lines.append(json.dumps(line) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    launch(config, home / name, ())
    return home / name


def test_runs_of_a_group_have_its_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both tasks and the group, in the table and in the file; p-values are of one family."""
    folders = [run_of(tmp_path, "first", [1, 4, 7, 9]), run_of(tmp_path, "other", [4, 12])]
    found = compare([find_run(str(folder)) for folder in folders], OPTIONS)

    acc = {cell.task: cell for cell in found if cell.metric == "acc"}
    assert set(acc) == {"capitals", "capitals_en", "capitals_zh"}
    whole = acc["capitals"]
    assert whole.difference.value == pytest.approx((4 - 2) / 15)
    # Four flips of 15 in each of two tasks alike: three gained, one lost.
    gap = np.array([1, 1, 1, -1] + [0] * 11)
    assert whole.difference.stderr == pytest.approx(gap.std(ddof=1) / math.sqrt(15) / math.sqrt(2))
    ps = sorted(cell.difference.p for cell in found if cell.difference.p is not None)
    assert min(cell.p_adjusted for cell in found if cell.p_adjusted is not None) == pytest.approx(
        min(1.0, ps[0] * len(ps))
    )

    markdown = tmp_path / "c.md"
    assert main(["compare", *map(str, folders), f"markdown={markdown}", "iters=100"]) == 0
    assert "capitals (group)" in markdown.read_text("utf-8")
    assert "(group)" in capsys.readouterr().out.replace("\n", "")
