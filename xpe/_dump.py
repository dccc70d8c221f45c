"""Objects to plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

COSMETIC = frozenset(
    {
        "api_key_env",
        "batch_size",
        "concurrency",
        "device",
        "device_map",
        "display_name",
        "max_batch_tokens",
        "remap",
        "replicas",
        "threads",
    }
)
"""Settings of any part that no result depends on; a class adds its own as `cosmetic`."""


def plain(value: Any) -> Any:
    """Return a settings object as dicts, lists and scalars, as YAML and JSON know them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if f.init]
        return {name: plain(getattr(value, name)) for name in fields}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, Enum):
        return plain(value.value)
    return str(value) if isinstance(value, PurePath) else value


def without_cosmetics(settings: Any, part: Any) -> Any:
    """Drop from plain settings what does not decide a result."""
    dropped = COSMETIC | frozenset(getattr(type(part), "cosmetic", ()))
    if not isinstance(settings, Mapping):
        return settings
    return {key: value for key, value in settings.items() if key not in dropped}
