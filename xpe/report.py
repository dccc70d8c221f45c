"""A result as a document, as files and as a table in the terminal."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xpe.errors import DataFileError, OutputError
from xpe.types import Estimate, Result, TaskResult

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "xpe.results/1"
_UNSCORED = {"n_invalid": "invalid", "n_timeout": "timed out"}
"""What is named in the table only where it happened."""
_ALWAYS = ("value", "stderr", "ci", "ci_method", "min", "max")


def estimate_json(found: Estimate) -> dict[str, Any]:
    """Return an estimate as JSON values: undefined numbers are null and `why` says the reason."""
    plain: dict[str, Any] = {}
    for spec in fields(found):
        value = getattr(found, spec.name)
        if spec.name == "extra" or (value is None and spec.name not in _ALWAYS):
            continue
        plain[spec.name] = _defined(value)
    return plain | {key: _defined(value) for key, value in found.extra.items()}


def results_json(result: Result) -> dict[str, Any]:
    """Return the keys `results`, `groups`, `group_subtasks`, `higher_is_better`, `n-samples`."""
    return {
        "results": {
            name: {key: estimate_json(e) for key, e in task.estimates.items()}
            for name, task in result.tasks.items()
        },
        "groups": {
            name: {key: estimate_json(e) for key, e in estimates.items()}
            for name, estimates in result.groups.items()
        },
        "group_subtasks": {name: list(tasks) for name, tasks in result.group_subtasks.items()},
        "higher_is_better": {
            name: {key: e.higher_is_better for key, e in task.estimates.items()}
            for name, task in result.tasks.items()
        },
        "n-samples": {
            name: {"original": task.n_original, "effective": task.n_effective}
            for name, task in result.tasks.items()
        },
    }


def result_of(document: Mapping[str, Any]) -> Result:
    """Build the result that a document holds."""
    tasks = {
        name: TaskResult(
            name,
            {key: _estimate_of(plain) for key, plain in estimates.items()},
            document["n-samples"][name]["original"],
            document["n-samples"][name]["effective"],
        )
        for name, estimates in document["results"].items()
    }
    groups = {
        name: {key: _estimate_of(plain) for key, plain in estimates.items()}
        for name, estimates in document["groups"].items()
    }
    members = {name: tuple(below) for name, below in document["group_subtasks"].items()}
    return Result(tasks, groups, members)


def write_json(path: Path, value: Any) -> None:
    """Replace a file with indented JSON, atomically.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    write_lines(path, [text])


def write_yaml(path: Path, value: Any) -> None:
    """Replace a file with YAML, keys in their order; errors as `write_json`."""
    import yaml

    write_lines(path, [yaml.safe_dump(value, allow_unicode=True, sort_keys=False)])


def write_lines(path: Path, lines: Sequence[str] | Iterator[str]) -> None:
    """Replace a file with `lines`, which bring their own line ends, atomically."""
    partial = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        partial.replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


def read_results(folder: Path) -> dict[str, Any]:
    """Read `results.json` of a run folder.

    Raises
    ------
    DataFileError
        There is none, or it is not a result file of a known schema.
    """
    path = folder / "results.json"
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise DataFileError(f"{path}: {error.strerror}; expected a finished run folder") from error
    except ValueError as error:
        raise DataFileError(f"{path} is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise DataFileError(f"{path}: expected schema {SCHEMA!r}; is it a result file of xpe?")
    if not _is_whole(document):
        raise DataFileError(
            f"{path}: `results` and `n-samples` do not fit each other; was it edited by hand?"
        )
    return document


def terminal() -> Console:
    """Return a console on standard output.

    A file or a pipe has no width: lines there are as long as they need to be.
    """
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=200, soft_wrap=True)


def show_table(document: Mapping[str, Any], console: Console) -> None:
    """Print `metric  value ± stderr  [interval]  n (failed, unparsed, truncated)` by task."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task", overflow="fold")
    table.add_column("metric", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("± stderr", no_wrap=True)
    table.add_column(r"\[interval]", no_wrap=True)
    table.add_column("n (failed, unparsed, truncated)")
    for section in ("results", "groups"):
        for task, estimates in document[section].items():
            label = task if section == "results" else f"{task} (group)"
            for key, found in estimates.items():
                table.add_row(label, *table_row(key, found))
                label = ""
    console.print(table)


def named(metric: str, higher_is_better: bool | None) -> str:
    """Return the name of a metric with an arrow to the better side; none for a count."""
    return metric + {True: " ↑", False: " ↓", None: ""}[higher_is_better]


def table_row(key: str, found: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Return the cells of one estimate: metric, value, stderr, interval, counts."""
    counts = [found.get(name, 0) for name in ("n_failed", "n_unparsed", "n_truncated")]
    n = str(found["n"]) if found["count"] == found["n"] else f"{found['count']}/{found['n']}"
    marks = [f"{found[name]} {word}" for name, word in _UNSCORED.items() if found.get(name)]
    marks += ["partial"] if found.get("partial") else []
    marks += [found["why"]] if "why" in found else []
    return (
        named(key, found.get("higher_is_better")),
        number(found["value"]),
        f"± {number(found['stderr'])}",
        "N/A" if found["ci"] is None else "[" + ", ".join(map(number, found["ci"])) + "]",
        " ".join([f"{n} ({', '.join(map(str, counts))})", *marks]),
    )


def number(value: float | None) -> str:
    """Return four significant decimals, or N/A for what is undefined."""
    if value is None:
        return "N/A"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.6g}"


def _estimate_of(plain: Mapping[str, Any]) -> Estimate:
    known = {spec.name for spec in fields(Estimate)}
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
    extra = {k: v for k, v in values.items() if k not in known}
    return Estimate(**{k: v for k, v in values.items() if k in known}, extra=extra)


def _is_whole(document: Mapping[str, Any]) -> bool:
    """Whether every task with results says how many samples it has."""
    results, counts = document.get("results"), document.get("n-samples")
    if not isinstance(results, dict) or not isinstance(counts, dict):
        return False
    sizes = [counts.get(task) for task in results]
    return all(isinstance(n, dict) and {"original", "effective"} <= n.keys() for n in sizes)


def _defined(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [_defined(item) for item in value]
    return value
