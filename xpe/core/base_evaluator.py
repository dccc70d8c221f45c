"""The base class of all evaluators, at its documented path."""

from xpe.evaluators.base import BaseEvaluator

__all__ = ["BaseEvaluator"]
