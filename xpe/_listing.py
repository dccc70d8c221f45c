"""`xpe ls`: what may be chosen, read from files and registries without composing anything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path

from xpe._folders import config_folders, options
from xpe.errors import unknown
from xpe.registry import EVALUATORS

SIMPLE = re.compile(r"^(kind|display_name):\s*(.*?)\s*(?:\s#.*)?$", re.MULTILINE)
BASE = re.compile(r"\b(\w+)@_here_")
ABOUT = re.compile(r"#\s*(?!@package)\S")
"""A line of a comment that says something."""


def ls(words: Sequence[str]) -> int:
    """Print the names of one sort of parts, or of all."""
    for word in words:
        if word not in LISTS:
            raise unknown("list", word, LISTS)
    lists = LISTS if words else {**LISTS, "tasks": _short_tasks}
    for number, word in enumerate(words or lists):
        print(f"{'' if number == 0 else chr(10)}{word}:")
        for line in _aligned(list(lists[word]())):
            print(f"  {line}")
    return 0


def _chosen_by(group: str) -> Callable[[], Iterable[Sequence[str]]]:
    return lambda: (_row(group, name, file) for name, file in options(group).items())


def _tasks() -> Iterable[Sequence[str]]:
    yield from _chosen_by("task")()
    yield from ((name, f"lm_eval {kind}", "", "") for name, kind in _of_library())


def _short_tasks() -> Iterable[Sequence[str]]:
    """List ours; those of an installed lm_eval are too many to come unasked."""
    yield from _chosen_by("task")()
    if number := sum(1 for _ in _of_library()):
        yield f"({number:,} more of lm_eval: xpe ls tasks)", "", "", ""


def _of_library() -> Iterable[tuple[str, str]]:
    """Yield name and kind of each task, group and tag of the installed lm_eval."""
    from xpe.tasks.lm_eval.index import index_of, library

    folder = library()
    if folder is not None:
        index = index_of([folder])
        yield from ((name, index.entries[name].kind) for name in index.names)


def _evaluators() -> Iterable[Sequence[str]]:
    files = options("evaluator")
    yield from (_row("evaluator", name, file) for name, file in files.items())
    yield from ((kind, kind, "", "") for kind in sorted(EVALUATORS) if kind not in files)


def _metrics() -> Iterable[Sequence[str]]:
    from xpe.metrics import list_metrics

    return ([name] for name in list_metrics())


LISTS: dict[str, Callable[[], Iterable[Sequence[str]]]] = {
    "models": _chosen_by("model"),
    "tasks": _tasks,
    "evaluators": _evaluators,
    "metrics": _metrics,
}


def _row(group: str, name: str, file: Path) -> tuple[str, ...]:
    """Return name, kind, display name and the first comment of a config file."""
    text = file.read_text(encoding="utf-8")
    found = _stated(group, text)
    return (name, found.get("kind", ""), found.get("display_name", ""), _about(text))


def _about(text: str) -> str:
    """Return the first comment, all its lines as one."""
    lines = dropwhile(lambda line: not ABOUT.match(line), text.splitlines())
    return " ".join(line[1:].strip() for line in takewhile(ABOUT.match, lines))


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
    padded = [_padded(column) for column in used]
    return ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]


def _padded(column: Sequence[str]) -> list[str]:
    widths = list(map(_width, column))
    most = max(widths)
    return [text + " " * (most - width) for text, width in zip(column, widths, strict=True)]


def _width(text: str) -> int:
    """Return the columns that a terminal gives to a text; wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
