"""Ctrl-C: a run stops once what is under way is answered and stored."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from xpe.types import Asked, Batched, Model, Reply

_TOLD = b"xpe: stopping once what is under way is stored; Ctrl-C again stops at once\n"
_STDERR = 2


class Stop:
    """Whether a run is to stop, and how many of its models are being asked."""

    def __init__(self) -> None:
        self.wanted = False
        self.asked = 0

    @contextmanager
    def on_interrupt(self, models: Iterable[Model]) -> Iterator[None]:
        """Have the first Ctrl-C stop the run in peace.

        A second one interrupts at once, and so does the first where nobody is asked, or where one
        of the models (`ends_at_interrupt`) is ended by the terminal's signal itself.
        """
        at_once = any(getattr(model, "ends_at_interrupt", False) for model in models)
        ours = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGINT) if ours else None
        if at_once or before is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.wanted or not self.asked:
            raise KeyboardInterrupt
        self.wanted = True
        os.write(_STDERR, _TOLD)  # the streams may be in the middle of a line


class StoppableModel:
    """A model that is asked nothing more once the run is to stop.

    What it was asked before is answered; then, when that is true of all models of the run,
    KeyboardInterrupt is raised. Of a model that answers in batches only the present batch is.

    Parameters
    ----------
    model
        The model, with the store around it.
    stop
        That of the run.
    batched
        Whether it answers in batches.
    """

    def __init__(self, model: Model, stop: Stop, *, batched: bool) -> None:
        self.identity: Mapping[str, Any] = model.identity
        self._model = model
        self._stop = stop
        self._batched = batched

    def reply(self, asked: Iterable[Asked | None], /) -> Iterator[tuple[Asked, Reply] | None]:
        """See `types.Model`."""
        self._stop.asked += 1
        try:
            yield from self._replies(asked)
        finally:
            self._stop.asked -= 1
        while self._stop.wanted and self._stop.asked:
            yield None
        if self._stop.wanted:
            raise KeyboardInterrupt

    def _replies(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        for got in self._model.reply(self._until_stop(asked)):
            yield got
            if self._stop.wanted and self._batched:
                return

    def _until_stop(self, asked: Iterable[Asked | None]) -> Iterator[Asked | None]:
        for one in asked:
            if self._stop.wanted:
                return
            yield one


def stoppable(
    wrapped: Mapping[str, Model], models: Mapping[str, Model], stop: Stop
) -> dict[str, Model]:
    """Return the models of a run, each as `wrapped` has it, made to heed `stop`."""
    return {
        name: StoppableModel(model, stop, batched=isinstance(models[name], Batched))
        for name, model in wrapped.items()
    }
