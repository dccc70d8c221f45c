from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def rows_file(tmp_path: Path) -> Callable[..., str]:
    """Write rows as JSON Lines; returns the path."""

    def write(rows: list[dict[str, Any]], name: str = "rows.jsonl") -> str:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="session")
def harness_cases() -> Callable[[str], list[dict[str, Any]]]:
    """Give the cases of one function that lm-evaluation-harness computed."""
    folder = Path(os.environ.get("XPE_SHARED") or ROOT.parent / "shared")
    file = folder / "conformance" / "lm_eval_cases.json"
    if not file.is_file():
        pytest.skip(f"no conformance cases at {file}")
    cases = json.loads(file.read_text(encoding="utf-8"))

    def of(function: str) -> list[dict[str, Any]]:
        found = [case for case in cases if case["fn"].partition("(")[0] == function]
        assert found, f"no cases of {function}"
        return found

    return of
