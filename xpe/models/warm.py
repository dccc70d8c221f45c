"""Loaded models that the next job of a sweep may want again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from xpe.errors import EngineError, XpeError
from xpe.types import Model

_kept: list[Any] = []
_depth = 0


@contextmanager
def kept() -> Iterator[None]:
    """Keep models loaded from one job to the next within this block; free them at its end."""
    global _depth  # noqa: PLW0603 - jobs are started by Hydra, which hands nothing on
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _free(_kept)


@contextmanager
def taken(models: Mapping[str, Model]) -> Iterator[dict[str, Model]]:
    """Give a job its models: those of the job before where the settings are the same.

    What this job does not want is freed before it begins; so is everything after a job outside
    of `kept`, and after one whose engine died. Only models that can `load` are kept: others
    count what they were asked.
    """
    before = list(_kept)
    _kept.clear()
    given = {name: _twin(model, before) for name, model in models.items()}
    _free(before)
    sound = True
    try:
        yield given
    except BaseException as error:
        sound = isinstance(error, XpeError) and not isinstance(error, EngineError)
        raise
    finally:
        done = list(given.values())
        if _depth and sound:
            _kept.extend(model for model in done if hasattr(model, "load"))
            done = [model for model in done if not hasattr(model, "load")]
        _free(done)


def _twin(model: Model, before: list[Any]) -> Model:
    """Take the model of the same class and settings out of `before`, else `model` itself."""
    for i, other in enumerate(before):
        if other == model:
            twin: Model = before.pop(i)
            return twin
    return model


def _free(models: list[Any]) -> None:
    for model in models:
        close = getattr(model, "close", None)
        if close is not None:
            close()
    models.clear()
