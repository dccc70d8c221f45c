"""Fixtures that several folders of tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of handed material: `$XPE_SHARED`, else `../shared` beside the checkout."""
    folder = Path(os.environ.get("XPE_SHARED") or ROOT.parent / "shared")
    if not (folder / "data").is_dir():
        pytest.skip(f"the handed data is not at {folder}")
    return folder
