"""Choices of a question: their ids, and the gold among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xpe.errors import DataError

NO_GOLD = -100
"""What the harness puts for a gold that is no choice; such a document scores 0."""


def choice_id(index: int) -> str:
    """Name a choice as spreadsheets name columns: A … Z, AA, AB …"""
    letters = ""
    while index >= 0:
        letters = chr(ord("A") + index % 26) + letters
        index = index // 26 - 1
    return letters


def gold_index(target: Any, choices: Sequence[str], place: str) -> int:
    """Return the index of the gold, given as an index or as the text of a choice.

    Raises
    ------
    DataError
        If it is out of range or no choice; names the document.
    """
    if isinstance(target, str):
        if target in choices:
            return choices.index(target)
        if not (target.isascii() and target.isdigit()):
            raise DataError(
                f"{place}: the gold {target!r} is none of the choices {list(choices)}; "
                "expected an index from 0 or the text of a choice"
            )
        target = int(target)
    if not isinstance(target, int):
        raise DataError(f"{place}: the gold is {target!r}; expected an index or a choice's text")
    if not 0 <= target < len(choices):
        raise DataError(
            f"{place}: the gold index {target} is out of range for {len(choices)} choices "
            f"(indices count from 0)"
        )
    return int(target)


def harness_gold(target: Any, choices: Sequence[str]) -> int:
    """Return the gold as lm-evaluation-harness reads it: `NO_GOLD` for what is no choice."""
    if isinstance(target, str):
        return choices.index(target) if target in choices else NO_GOLD
    return int(target) if target < len(choices) else NO_GOLD


def check_choices(choices: Sequence[Any], place: str) -> None:
    """Refuse choices that cannot be told apart.

    Raises
    ------
    DataError
        If there are fewer than two, an empty one (null too), or one given twice.
    """
    texts = ["" if choice is None else str(choice) for choice in choices]
    if len(texts) < 2:
        raise DataError(f"{place}: {len(texts)} choices {list(choices)}; expected at least 2")
    if not all(texts):
        raise DataError(f"{place}: an empty choice in {list(choices)}")
    if len(set(texts)) < len(texts):
        raise DataError(f"{place}: a choice is given twice in {list(choices)}")


def choice_reference(golds: Sequence[int], choices: Sequence[str]) -> dict[str, Any]:
    """Return the documented reference of a choice: `{answer: {type, value}, choices: […]}`."""
    ids = [choice_id(gold) if gold >= 0 else "" for gold in golds]
    answer: dict[str, Any] = {"type": "choice", "value": ids[0]}
    if len(ids) > 1:
        answer["values"] = ids
    listed = [{"id": choice_id(i), "text": text} for i, text in enumerate(choices)]
    return {"answer": answer, "choices": listed}
