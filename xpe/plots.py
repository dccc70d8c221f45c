"""Plots of a result, as PNG files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def forest(document: Mapping[str, Any], path: Path) -> None:
    """Draw every metric of a run with its interval, one panel for each scale.

    Metrics that live in [0, 1] share a panel; each other metric gets one of its own, since
    perplexity 20 and accuracy 0.4 on one axis would show neither.

    Parameters
    ----------
    document
        A result document (`results` and `groups`).
    path
        The PNG file to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = _panels(document)
    if not panels:
        return
    heights = [0.34 * len(rows) + 0.5 for rows in panels.values()]
    figure = Figure(figsize=(8, sum(heights) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, height_ratios=heights, squeeze=False)[:, 0]
    for ax, (scale, rows) in zip(axes, panels.items(), strict=True):
        _draw(ax, scale, rows)
    figure.savefig(path, dpi=130)


def _panels(document: Mapping[str, Any]) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
    panels: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for section in ("results", "groups"):
        for task, estimates in document[section].items():
            for key, found in estimates.items():
                if found["value"] is None:
                    continue
                unit = found.get("min") is not None and 0 <= found["min"] <= found["max"] <= 1
                scale = "share" if unit else key
                panels.setdefault(scale, []).append((f"{task}  {key}", found))
    return panels


def _draw(ax: Any, scale: str, rows: list[tuple[str, Mapping[str, Any]]]) -> None:
    for place, (_, found) in enumerate(reversed(rows)):
        low, high = found["ci"] or (found["value"], found["value"])
        ax.plot([low, high], [place, place], color="#4477aa", linewidth=2, solid_capstyle="butt")
        ax.plot(found["value"], place, "o", color="#4477aa", markersize=5)
    ax.set_yticks(range(len(rows)), [label for label, _ in reversed(rows)])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    if scale == "share":
        ax.set_xlim(0, 1)
    else:
        ax.set_xlabel(scale)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
