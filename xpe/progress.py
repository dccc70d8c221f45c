"""A progress bar: samples, tokens a second, the running metric with its interval, time left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from xpe.live import LiveMetrics
from xpe.report import number
from xpe.types import (
    Answer,
    Asked,
    Estimate,
    Failure,
    Generated,
    Measured,
    Reply,
    Scored,
    Task,
    TaskResult,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

_EVERY = 10.0
"""Seconds between lines where there is no terminal."""
_FEW = 10
"""Fewer answers than this say nothing about the time that the others will take."""


class Progress:
    """Shows how far the task under way is: a bar in a terminal, else a line now and then."""

    def __init__(self, console: Console, live: LiveMetrics) -> None:
        self._console = console
        self._live = live
        self._bar: Bar | None = None
        self._task = ""
        self._total = self._answered = self._tokens = self._failed = 0
        self._started = self._shown = 0.0

    def task_started(self, task: Task, n_samples: int) -> None:
        self._task, self._total = task.name, n_samples
        self._answered = self._tokens = self._failed = 0
        self._started = self._shown = time.monotonic()
        if self._console.is_terminal:
            self._bar = self._make_bar()
            self._bar.start()
            self._bar.add_task(task.name, total=n_samples, state="")
        else:
            self._console.print(f"{task.name}: {n_samples} samples", highlight=False)

    def replied(self, asked: Asked, reply: Reply) -> None:
        match reply:
            case Generated(tokens=new, prompt_tokens=read):
                self._tokens += new + read
            case Scored(tokens=tokens):
                self._tokens += sum(tokens)
            case Failure():
                self._failed += 1

    def answered(self, answer: Answer, measured: Mapping[str, Measured]) -> None:
        self._answered += 1
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._answered, state=self._state())
        elif time.monotonic() - self._shown > _EVERY:
            self._shown = time.monotonic()
            self._say(f"{self._answered}/{self._total}  {self._state()}{self._left()}")

    def task_finished(self, result: TaskResult) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], state=self._state())
            self._bar.stop()
            self._bar = None
        else:
            seconds = time.monotonic() - self._started
            self._say(f"{self._answered}/{self._total}  {self._state()}  in {seconds:.1f} s")

    def close(self) -> None:
        """Leave the terminal as it was, also after an error."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _say(self, text: str) -> None:
        self._console.print(f"{self._task}: {text}", highlight=False, soft_wrap=True)

    def _left(self) -> str:
        """Guess the time left, once there is something to guess by."""
        if self._answered < _FEW:
            return ""
        left = (self._shown - self._started) * (self._total / self._answered - 1)
        return f"  {left:.0f} s left"

    def _state(self) -> str:
        seconds = max(time.monotonic() - self._started, 1e-9)
        parts = [f"{self._tokens / seconds:.0f} tok/s"]
        headline = next(iter(self._live.estimates.items()), None)
        if headline is not None:
            parts.append(_running(*headline))
        if self._failed:
            parts.append(f"{self._failed} failed")
        return "  ".join(parts)

    def _make_bar(self) -> Bar:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        return Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=self._console,
        )


def _running(key: str, found: Estimate) -> str:
    interval = "" if found.ci is None else f" [{number(found.ci[0])}, {number(found.ci[1])}]"
    return f"{key} {number(found.value)}{interval}"
