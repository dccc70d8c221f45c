"""`xpe ls`: what may be chosen, read from files and registries without composing anything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from xpe._folders import config_folders, options
from xpe.errors import unknown
from xpe.registry import EVALUATORS

SIMPLE = re.compile(r"^(kind|display_name):\s*(.*?)\s*(?:\s#.*)?$", re.MULTILINE)
BASE = re.compile(r"\b(\w+)@_here_")


def ls(words: Sequence[str]) -> int:
    """Print the names of one sort of parts, or of all."""
    for word in words:
        if word not in LISTS:
            raise unknown("list", word, LISTS)
    for number, word in enumerate(words or LISTS):
        print(f"{'' if number == 0 else chr(10)}{word}:")
        for line in _aligned(list(LISTS[word]())):
            print(f"  {line}")
    return 0


def _chosen_by(group: str) -> Callable[[], Iterable[Sequence[str]]]:
    return lambda: (_row(group, name, file) for name, file in options(group).items())


def _evaluators() -> Iterable[Sequence[str]]:
    files = options("evaluator")
    yield from (_row("evaluator", name, file) for name, file in files.items())
    yield from ((kind, kind, "", "") for kind in sorted(EVALUATORS) if kind not in files)


def _metrics() -> Iterable[Sequence[str]]:
    from xpe.metrics import list_metrics

    return ([name] for name in list_metrics())


LISTS: dict[str, Callable[[], Iterable[Sequence[str]]]] = {
    "models": _chosen_by("model"),
    "tasks": _chosen_by("task"),
    "evaluators": _evaluators,
    "metrics": _metrics,
}


def _row(group: str, name: str, file: Path) -> tuple[str, ...]:
    """Return name, kind, display name and the first comment of a config file."""
    text = file.read_text(encoding="utf-8")
    found = _stated(group, text)
    comments = [line[1:].strip() for line in text.splitlines() if line.startswith("#")]
    about = next((c for c in comments if c and not c.startswith("@package")), "")
    return (name, found.get("kind", ""), found.get("display_name", ""), about)


def _stated(group: str, text: str) -> dict[str, str]:
    """Return kind and display name as a file states them, or the bases it builds on."""
    found: dict[str, str] = {}
    for base in BASE.findall(text):
        files = (
            file for folder in config_folders() for file in folder.glob(f"{group}/{base}.yaml")
        )
        found |= _stated(group, next((f.read_text(encoding="utf-8") for f in files), ""))
    return found | {key: value.strip("'\"") for key, value in SIMPLE.findall(text)}


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return ["none"]
    used = [column for column in zip(*rows, strict=True) if any(column)]
    widths = [max(map(_width, column)) for column in used]
    return [
        "  ".join(c + " " * (w - _width(c)) for c, w in zip(cells, widths, strict=True)).rstrip()
        for cells in zip(*used, strict=True)
    ]


def _width(text: str) -> int:
    """Return the columns that a terminal gives to a text; wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
