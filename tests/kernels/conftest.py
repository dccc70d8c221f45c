"""The slow twins, loaded by path: folders of tests are no packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def naive() -> ModuleType:
    """The module `naive.py` of this folder."""
    spec = importlib.util.spec_from_file_location("naive", Path(__file__).with_name("naive.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
