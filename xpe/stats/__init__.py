"""Standard errors and intervals by kind of metric, groups, paired comparison."""

from __future__ import annotations

from typing import Any

__all__ = ["Stats", "interval", "stderr"]

_HOMES = {
    "Stats": "xpe.stats.settings",
    "interval": "xpe.stats.items",
    "stderr": "xpe.stats.items",
}


def __getattr__(name: str) -> Any:
    # Looked up on first use, so that a config can name settings without loading the metrics.
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'xpe.stats' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
