"""A group of tasks: asks nothing itself, aggregates what its tasks measured."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.registry import STRICT
from xpe.stats.groups import Aggregate


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Group:
    """Names of tasks and groups, and the metrics to aggregate over all tasks below.

    Parameters
    ----------
    name, display_name
        ASCII id; the name that people read.
    tasks
        Members. A task that is reached twice counts once.
    aggregate_metric_list
        What to aggregate; a group without any has no row of its own.
    """

    kind: ClassVar[str] = "group"

    name: str = Field(pattern=r"^[!-~]+$")
    display_name: str | None = None
    tasks: tuple[str, ...] = Field(min_length=1)
    aggregate_metric_list: tuple[Aggregate, ...] = ()
    version: str = "1.0"
    metadata: dict[str, Any] = Field(default_factory=dict)
