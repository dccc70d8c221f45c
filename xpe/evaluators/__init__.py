"""Evaluators, one file each, and the documented functions that find them by name.

from xpe.evaluators import get_evaluator
get_evaluator("accuracy", exact_match=True).evaluate(predictions, references)
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from xpe.errors import SettingTypeError, nearest
from xpe.registry import EVALUATORS as EVALUATOR_REGISTRY

if TYPE_CHECKING:
    from xpe.evaluators.accuracy import AccuracyEvaluator
    from xpe.evaluators.base import BaseEvaluator
    from xpe.evaluators.bleu import BLEUEvaluator
    from xpe.evaluators.math import MathEvaluator
    from xpe.evaluators.tcm_diagnosis import TcmDiagnosisEvaluator

__all__ = [
    "EVALUATOR_REGISTRY",
    "AccuracyEvaluator",
    "BLEUEvaluator",
    "BaseEvaluator",
    "MathEvaluator",
    "TcmDiagnosisEvaluator",
    "get_evaluator",
    "get_evaluators",
    "list_evaluators",
    "register_evaluator",
]

_KINDS = {
    "AccuracyEvaluator": "accuracy",
    "BLEUEvaluator": "bleu",
    "MathEvaluator": "math",
    "TcmDiagnosisEvaluator": "tcm_diagnosis",
}


def __getattr__(name: str) -> Any:
    if name == "BaseEvaluator":
        from xpe.evaluators.base import BaseEvaluator

        return BaseEvaluator
    if name in _KINDS:
        return EVALUATOR_REGISTRY[_KINDS[name]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_evaluator(evaluator_name: str, **kwargs: Any) -> BaseEvaluator:
    """Return a new evaluator of the kind `evaluator_name` with the settings `kwargs`.

    Raises
    ------
    ValueError
        If the name is unknown (the message lists the known ones) or a setting is wrong.
    TypeError
        If the evaluator has no such setting; the message names the nearest one.
    """
    cls = EVALUATOR_REGISTRY[evaluator_name]
    known = settings_of(cls)
    _check_settings(kwargs, {evaluator_name: known})
    return _built(evaluator_name, cls, kwargs)


def get_evaluators(evaluator_names: Iterable[str], **kwargs: Any) -> list[BaseEvaluator]:
    """Return one evaluator a name; each takes the settings that it knows.

    Raises
    ------
    ValueError
        If a name is unknown or a setting is wrong.
    TypeError
        If none of the evaluators has a setting of that name.
    """
    classes = {name: EVALUATOR_REGISTRY[name] for name in evaluator_names}
    known = {name: settings_of(cls) for name, cls in classes.items()}
    _check_settings(kwargs, known)
    return [
        _built(name, cls, {key: value for key, value in kwargs.items() if _takes(known[name], key)})
        for name, cls in classes.items()
    ]


def list_evaluators() -> list[str]:
    """Return the names of all evaluators, those of other packages included."""
    return list(EVALUATOR_REGISTRY)


def register_evaluator(name: str, evaluator_class: type[BaseEvaluator]) -> None:
    """Register a class under `name`, or replace what the name stood for.

    Raises
    ------
    TypeError
        If the class does not derive from BaseEvaluator.
    """
    from xpe.evaluators.base import BaseEvaluator

    if not (isinstance(evaluator_class, type) and issubclass(evaluator_class, BaseEvaluator)):
        raise SettingTypeError(
            f"evaluator {name!r} must be a class derived from BaseEvaluator,"
            f" got {evaluator_class!r}"
        )
    EVALUATOR_REGISTRY.register(name, evaluator_class)


def settings_of(cls: type) -> frozenset[str] | None:
    """Return the names of the settings of a class; None if it takes any."""
    if dataclasses.is_dataclass(cls):
        return frozenset(field.name for field in dataclasses.fields(cls) if field.init)
    parameters = list(inspect.signature(cls).parameters.values())
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)


def _takes(known: frozenset[str] | None, key: str) -> bool:
    return known is None or key in known


def _check_settings(kwargs: Iterable[str], known: dict[str, frozenset[str] | None]) -> None:
    for key in kwargs:
        if any(_takes(names, key) for names in known.values()):
            continue
        settings = sorted({name for names in known.values() for name in names or ()})
        hints = nearest(key, settings)
        hint = f" Did you mean {' or '.join(map(repr, hints))}?" if hints else ""
        raise SettingTypeError(
            f"no setting {key!r} in {', '.join(known)}.{hint} Known: {', '.join(settings)}"
        )


def _built(name: str, cls: Any, kwargs: dict[str, Any]) -> BaseEvaluator:
    from pydantic import ValidationError

    from xpe._explain import translated

    try:
        made: BaseEvaluator = cls(**kwargs)
    except ValidationError as error:
        raise translated(error, cls, name) from error
    return made
