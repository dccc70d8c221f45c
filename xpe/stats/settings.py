"""How standard errors and intervals are made: the config group `stats`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.errors import ConfigError
from xpe.registry import STRICT

Method = Literal["bootstrap", "exact"]
IntervalName = Literal["auto", "wilson", "clopper_pearson", "t", "percentile", "bca", "none"]


@dataclass(frozen=True, config=STRICT)
class Stats:
    """Settings of all error bars of a run.

    `bootstrap_iters` counts real replicates, for corpus metrics too; 0 turns bootstrapped errors
    off. `method=exact` takes the closed or exact form where one exists: the limit of infinitely
    many replicates. `interval=auto` picks by kind of metric: Wilson for 0/1 values, t for other
    means, percentile for all that is bootstrapped; a named one applies wherever it can.
    """

    cosmetic: ClassVar[frozenset[str]] = frozenset({"threads"})

    bootstrap_iters: int = Field(default=100_000, ge=0)
    method: Method = "bootstrap"
    level: float = Field(default=0.95, gt=0.0, lt=1.0)
    seed: int = Field(default=1234, ge=0)
    interval: IntervalName = "auto"
    threads: int | None = Field(default=None, ge=1)

    def __post_init__(self) -> None:
        if self.bootstrap_iters == 1:
            message = (
                "stats.bootstrap_iters must be 0 (off) or at least 2, got 1: one has no spread"
            )
            raise ConfigError(message)
