"""A result as a document and as a table."""

from __future__ import annotations

import json
import math
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from xpe.errors import DataFileError, OutputError
from xpe.plots import forest
from xpe.report import (
    SCHEMA,
    estimate_json,
    named,
    read_results,
    result_of,
    results_json,
    show_table,
    write_json,
)
from xpe.types import Estimate, Result, TaskResult

GOOD = Estimate(0.62, 0.012, (0.6, 0.64), "wilson", n=1319, count=1319, min=0.0, max=1.0)
HALF = Estimate(
    0.5, None, None, None, n=10, count=8, n_failed=2, partial=True, bounds=(0.4, 0.6), why="off"
)
RESULT = Result(
    {
        "toy": TaskResult("toy", {"acc": GOOD, "ppl,strict": HALF}, 2000, 1319),
    },
    {"all": {"acc": Estimate(0.6, 0.01, (0.5, 0.7), "t", n=5, count=5, extra={"n_tasks": 2})}},
    {"all": ("toy",)},
)


def document() -> dict:
    return {"schema": SCHEMA, **results_json(RESULT)}


def test_undefined_numbers_are_null_with_a_reason() -> None:
    """NaN, infinity and None become null; the reason stands beside them."""
    plain = estimate_json(Estimate(math.nan, math.inf, None, None, n=1, count=1, why="n=1"))

    assert (plain["value"], plain["stderr"], plain["ci"]) == (None, None, None)
    assert plain["why"] == "n=1"
    json.dumps(plain, allow_nan=False)


def test_document_comes_back_as_the_result() -> None:
    """A result file is enough to rebuild every estimate."""
    again = result_of(json.loads(json.dumps(document())))

    assert again == RESULT


def test_arrows_point_to_the_better_side() -> None:
    """Up, down, and nowhere for a count."""
    assert [named("m", better) for better in (True, False, None)] == ["m ↑", "m ↓", "m"]


def test_table_shows_value_error_interval_and_counts() -> None:
    """The row of a partial metric shows what is missing and why an error bar is N/A."""
    out = StringIO()
    show_table(document(), Console(file=out, width=200, color_system=None))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]

    assert lines[0] == "task metric value ± stderr [interval] n (failed, unparsed, truncated)"
    assert "toy acc ↑ 0.6200 ± 0.0120 [0.6000, 0.6400] 1319 (0, 0, 0)" in lines
    assert "ppl,strict ↑ 0.5000 ± N/A N/A 8/10 (2, 0, 0) partial off" in lines
    assert any(line.startswith("all (group) acc") for line in lines)


def test_forest_plot_is_a_picture(tmp_path: Path) -> None:
    """The plot is written as PNG, with metrics of several scales."""
    forest(document(), tmp_path / "forest.png")

    assert (tmp_path / "forest.png").read_bytes().startswith(b"\x89PNG")


def test_unwritable_file_is_named(tmp_path: Path) -> None:
    """A file that cannot be written is an error that names it, not a lost result."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/results\.json cannot be written"):
        write_json(tmp_path / "file" / "results.json", {})


@pytest.mark.parametrize(
    ("text", "said"), [(None, "finished run folder"), ("{", "not JSON"), ("{}", SCHEMA)]
)
def test_what_is_no_result_file_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    """A missing, broken or foreign results.json is one clear error."""
    if text is not None:
        (tmp_path / "results.json").write_text(text)
    with pytest.raises(DataFileError, match=said):
        read_results(tmp_path)
