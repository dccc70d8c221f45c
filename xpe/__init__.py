"""Evaluate language models, in English and Chinese, with an honest error bar on every number.

`import xpe` is free: what it offers is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xpe.config import RunConfig as RunConfig
    from xpe.config import compose as compose
    from xpe.launch import run as run
    from xpe.types import Result as Result

__version__ = "0.1.0"

_HOMES = {
    "RunConfig": "xpe.config",
    "compose": "xpe.config",
    "run": "xpe.launch",
    "Result": "xpe.types",
}

__all__ = ["Result", "RunConfig", "__version__", "compose", "run"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'xpe' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
