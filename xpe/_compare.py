"""`xpe compare` and `xpe power`: words to tables, files and exit codes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe._explain import build
from xpe.cells import Cell, Options
from xpe.compare import Comparable, comparable, compare, document
from xpe.errors import ConfigError
from xpe.registry import STRICT
from xpe.report import named, number, terminal, write_json, write_lines
from xpe.stats import power

if TYPE_CHECKING:
    from rich.console import Console

_COLUMNS = ("task", "metric", "baseline", "run", "difference", "interval", "ρ", "p", "adjusted p",
            "MDE", "n")  # fmt: skip


@dataclass(frozen=True, config=STRICT)
class Output:
    """Where a comparison goes beside the terminal; `flips` samples a cell are printed."""

    json: str | None = None
    markdown: str | None = None
    plot: str | None = None
    flips: int = Field(default=3, ge=0)


def compare_command(words: Sequence[str]) -> int:
    """Compare the runs that come without `=`; settings of `Options` and `Output` may follow."""
    settings = _settings(words)
    output_keys = Output.__dataclass_fields__.keys() & settings.keys()
    output: Output = build(Output, {key: settings.pop(key) for key in output_keys}, "")
    options: Options = build(Options, settings, "")
    runs = [comparable(word) for word in words if "=" not in word]
    cells = compare(runs, options)
    console = terminal()
    show(runs, cells, options, console)
    found = document(runs, cells, options) if output.json or output.flips else {"flips": []}
    show_flips(found["flips"], output.flips, console)
    if output.json:
        write_json(Path(output.json), found)
    if output.markdown:
        write_lines(Path(output.markdown), [line + "\n" for line in markdown(runs, cells, options)])
    if output.plot:
        draw(cells, Path(output.plot))
    return 0


# --- the table -------------------------------------------------------------------------------


def show(
    runs: Sequence[Comparable], cells: Sequence[Cell], options: Options, console: Console
) -> None:
    """Print the table and what its columns mean."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in _header(options):
        table.add_column(name, overflow="fold")
    for cell in cells:
        table.add_row(*row(cell, options, several=len(runs) > 2))
    console.print(f"baseline: {runs[0].name}", highlight=False)
    console.print(table)
    console.print(_legend(options), highlight=False)


def row(cell: Cell, options: Options, *, several: bool = False) -> list[str]:
    """Return the cells of one comparison as text."""
    found = cell.difference
    ci = "N/A" if found.ci is None else f"[{found.ci[0]:+.4f}, {found.ci[1]:+.4f}]"
    flipped = f" (+{len(cell.gained)} −{len(cell.lost)})" if cell.gained or cell.lost else ""
    cells = [
        cell.label,
        named(cell.metric, cell.higher_is_better) + (f" {cell.run}" if several else ""),
        number(cell.baseline_value),
        number(cell.run_value),
        f"{found.value:+.4f} ± {number(found.stderr)}{flipped}",
        ci,
        "N/A" if found.correlation is None else f"{found.correlation:.2f}",
        "N/A" if found.p is None else f"{found.p:.4f} {found.test}",
        "N/A" if cell.p_adjusted is None else f"{cell.p_adjusted:.4f}",
        number(cell.mde),
        str(found.n) + (f" ({cell.left_out} left out)" if cell.left_out else ""),
    ]
    return [*cells, str(cell.n_needed or "N/A")] if options.delta is not None else cells


def markdown(runs: Sequence[Comparable], cells: Sequence[Cell], options: Options) -> Iterable[str]:
    """Yield the lines of a Markdown table."""
    yield f"Baseline: {runs[0].name}; compared: {', '.join(run.name for run in runs[1:])}"
    yield ""
    yield "| " + " | ".join(_header(options)) + " |"
    yield "|" + "---|" * len(_header(options))
    for cell in cells:
        yield "| " + " | ".join(row(cell, options, several=len(runs) > 2)) + " |"
    yield ""
    yield _legend(options)


def show_flips(flips: Sequence[Mapping[str, Any]], most: int, console: Console) -> None:
    """Print the first samples of each cell that one run has right and the other wrong."""
    shown: dict[tuple[str, str, str], int] = {}
    for flip in flips:
        place = (flip["task"], flip["metric"], f"{flip['run']} {flip['direction']}")
        shown[place] = shown.get(place, 0) + 1
        if shown[place] <= most:
            console.print(
                f"{flip['direction']}: {flip['task']} {flip['metric']} document {flip['doc_id']}, "
                f"target {_short(flip['target'])}: {_short(flip['baseline_reply'])} → "
                f"{_short(flip['run_reply'])}",
                highlight=False,
                markup=False,
            )


def _header(options: Options) -> tuple[str, ...]:
    return _COLUMNS if options.delta is None else (*_COLUMNS, f"n for {options.delta:g}")


def _legend(options: Options) -> str:
    adjusted = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "not adjusted"}[options.adjust]
    return (
        f"difference: run − baseline, paired by document, ± standard error (samples gained, lost); "
        f"{options.level:.0%} interval; adjusted p: {adjusted} over the table; MDE: smallest "
        f"difference found with power {options.power:g} at {options.alpha:g}"
    )


def _short(value: Any, most: int = 60) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def draw(cells: Sequence[Cell], path: Path) -> None:
    """Draw the differences with their intervals, a panel for shares and one for each other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels: dict[str, list[Cell]] = {}
    for cell in cells:
        both = (cell.baseline_value, cell.run_value)
        scale = "share" if all(0 <= value <= 1 for value in both) else cell.metric
        panels.setdefault(scale, []).append(cell)
    heights = [0.34 * len(rows) + 0.5 for rows in panels.values()]
    figure = Figure(figsize=(8, sum(heights) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, height_ratios=heights, squeeze=False)[:, 0]
    for ax, (scale, rows) in zip(axes, panels.items(), strict=True):
        _draw_panel(ax, scale, rows)
    figure.savefig(path, dpi=130)


def _draw_panel(ax: Any, scale: str, rows: Sequence[Cell]) -> None:
    for place, cell in enumerate(reversed(rows)):
        value = cell.difference.value
        low, high = cell.difference.ci or (value, value)
        ax.plot([low, high], [place, place], color="#4477aa", linewidth=2, solid_capstyle="butt")
        ax.plot(value, place, "o", color="#4477aa", markersize=5)
    ax.axvline(0, color="#999999", linewidth=0.8)
    several = len({cell.run for cell in rows}) > 1
    names = [f"{c.label}  {c.metric}" + (f"  {c.run}" if several else "") for c in reversed(rows)]
    ax.set_yticks(range(len(rows)), names)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlabel("difference" if scale == "share" else f"difference of {scale}")
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


# --- before a run ----------------------------------------------------------------------------


@dataclass(frozen=True, config=STRICT)
class Plan:
    """A planned comparison.

    Parameters
    ----------
    delta, n
        The difference to detect; the number of samples at hand. At least one is needed.
    p, rho
        Expected share of right answers, and how far two systems are right on the same samples:
        they give the variance of a 0/1 metric.
    omega2, sigma2, repeats
        Instead: variance of the difference between questions, variance of one answer within a
        question, and answers a question.
    """

    delta: float | None = None
    n: int | None = Field(default=None, ge=1)
    p: float = Field(default=0.5, ge=0, le=1)
    rho: float = Field(default=0.5, ge=-1, le=1)
    omega2: float | None = Field(default=None, ge=0)
    sigma2: float = Field(default=0.0, ge=0)
    repeats: int = Field(default=1, ge=1)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    power: float = Field(default=0.8, gt=0, lt=1)

    @property
    def variance(self) -> float:
        """Variance of the paired difference of one sample."""
        if self.omega2 is None:
            return power.shares_variance(self.p, self.p, self.rho)
        k = self.repeats
        return power.difference_variance(self.omega2, self.sigma2, self.sigma2, k, k)


def power_command(words: Sequence[str]) -> int:
    """Say how many samples a comparison needs, or what the samples at hand can show."""
    plan: Plan = build(Plan, _settings(words), "")
    if unknown := [word for word in words if "=" not in word]:
        raise ConfigError(f"expected KEY=VALUE, got {unknown[0]!r}: xpe power delta=0.03 p=0.7")
    if plan.delta is None and plan.n is None:
        raise ConfigError("expected delta= (to detect) or n= (samples): xpe power delta=0.03 p=0.7")
    for line in answers(plan):
        print(line)
    return 0


def answers(plan: Plan) -> Iterable[str]:
    """Yield what a plan asks for, a line each."""
    variance, how = plan.variance, {"alpha": plan.alpha, "power": plan.power}
    yield (
        f"paired comparison, two-sided {plan.alpha:g}, power {plan.power:g}, "
        f"variance of a difference {variance:.4g}"
    )
    if plan.delta is not None:
        needed = math.ceil(power.needed(plan.delta, variance, **how) - 1e-9)
        yield f"samples needed to detect {plan.delta:g}: {needed:,}"
    if plan.n is not None:
        yield f"{plan.n:,} samples detect {power.detectable(variance, plan.n, **how):.4g}"
    if plan.delta is not None and plan.n is not None:
        found = power.achieved(plan.delta, variance, plan.n, alpha=plan.alpha)
        yield f"power of {plan.n:,} samples against {plan.delta:g}: {found:.1%}"


def _settings(words: Sequence[str]) -> dict[str, Any]:
    """Read `KEY=VALUE`, values as YAML."""
    found: dict[str, Any] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if sign:
            try:
                found[key] = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ConfigError(f"{word}: the value is not YAML: {error}") from error
    return found
