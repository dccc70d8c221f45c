"""The whole library of the installed lm_eval: read, checked without data, listed quickly."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from xpe._evaluators import build_evaluators
from xpe._explain import build
from xpe._finish import finish_tasks
from xpe.data.code import functions_in
from xpe.errors import XpeError
from xpe.registry import TASKS
from xpe.tasks.lm_eval.index import Index, index_of, library
from xpe.tasks.lm_eval.naming import Resolver
from xpe.tasks.lm_eval.translate import check_functions

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

TOP = {"gen_kwargs": {}, "seed": {"fewshot": 1234}, "data": {"remap": {}}, "samples": None}


@pytest.fixture(scope="module")
def index() -> Index:
    """The names of the installed library."""
    pytest.importorskip("lm_eval")
    folder = library()
    assert folder is not None
    return index_of([folder])


def brings_code(index: Index, name: str) -> bool:
    """Build a task and its evaluators; say whether it needs trust_task_code."""
    resolver = Resolver(index, {}, {}, None, lambda _: None)
    resolver.add([name])
    check_functions(list(resolver.found.values()))
    plain = finish_tasks(resolver.found, TOP, frozenset(), lambda _: None)
    built = {}
    for task, settings in plain.items():
        rest = dict(settings)
        built[task] = build(TASKS[rest.pop("kind")], rest, f"task.{task}")
    more = {"unsafe_confirmed": True, "predict_only": False, "others": {}}
    build_evaluators(built, {"auto": {}}, **more)
    return bool(functions_in(list(resolver.found.values())))


def test_library_is_read(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    """At least 99 % of the tasks that are YAML alone build, 97 % of all; the rest is listed."""
    ok: Counter[bool] = Counter()
    failed: dict[str, str] = {}
    for name, entry in index.entries.items():
        if entry.kind not in ("task", "class"):
            continue
        try:
            ok[brings_code(index, name)] += 1
        except XpeError as error:
            failed[name] = str(error).splitlines()[0]
    said = {name: reason.split(": ", 1)[-1].split()[:12] for name, reason in failed.items()}
    reasons = Counter(" ".join(words) for words in said.values())
    with capsys.disabled():
        print(f"\n{sum(ok.values())} tasks build ({ok[True]} with code), {len(failed)} do not:")
        for reason, number in reasons.most_common():
            example = next(name for name, words in said.items() if " ".join(words) == reason)
            print(f"  {number} like {example}: {reason}")
    code = ("function", "class:")
    without_code = [reason for reason in failed.values() if not any(w in reason for w in code)]
    assert ok[False] / (ok[False] + len(without_code)) >= 0.99
    assert sum(ok.values()) / (sum(ok.values()) + len(failed)) >= 0.97
    assert not index.broken


def test_groups_are_read(index: Index) -> None:
    """Every group of the library resolves, or fails with an error of ours."""
    groups = [name for name, entry in index.entries.items() if entry.kind == "group"]
    failed = {}
    for name in groups[::8]:
        resolver = Resolver(index, {}, {}, None, lambda _: None)
        try:
            resolver.add([name])
        except XpeError as error:
            failed[name] = str(error)
    assert len(failed) <= len(groups[::8]) // 20, failed


def test_listing_is_quick(index: Index) -> None:
    """`xpe ls tasks` over the library takes at most a second once the index is kept.

    A second of CPU everywhere, and of the clock where a core is free for it.
    """
    code = "import sys; from xpe.cli import main; sys.exit(main(['ls', 'tasks']))"
    used, waited = [], []
    for _ in range(5):
        begun = time.perf_counter(), _children()
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd()
        )
        waited.append(time.perf_counter() - begun[0])
        used.append(_children() - begun[1])
    assert found.stdout.count("\n") > len(index.names)
    assert min(used) <= 1.0
    crowded = os.getloadavg()[0] > (os.cpu_count() or 1)
    assert min(waited) <= 1.0 or crowded


def _children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
