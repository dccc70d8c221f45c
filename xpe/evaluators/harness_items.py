"""The items that lm-evaluation-harness makes of one answer, to the digit.

Its rules differ from ours where a gold is no choice, a choice is empty, a prediction is a list or
several targets are right; they are kept here, so that results can be compared with old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xpe.metrics.texts import cleaned

PASSED_ON = frozenset({"acc", "acc_norm", "bleu", "chrf", "f1", "mcc", "perplexity", "ter"})
"""Metrics whose item of a generated text is `(gold, prediction)`: their aggregation does all."""


def choice_items(
    names: Sequence[str],
    results: Sequence[tuple[float, bool]],
    choices: Sequence[str],
    gold: int | Sequence[int],
) -> dict[str, Any]:
    """Return the items of a multiple-choice answer that `names` asks for.

    Parameters
    ----------
    results
        Log likelihood and greediness a choice, then those without the question, if asked for.
    choices
        Their texts, without delimiter.
    gold
        Index of the right choice, -100 for none; a sequence where several are right.
    """
    n = len(choices)
    lls_C = np.array([value for value, _ in results[:n]])
    greedy = [is_greedy for _, is_greedy in results[:n]]
    alone_C = np.array([value for value, _ in results[n:]])
    with np.errstate(divide="ignore", invalid="ignore"):
        # An empty choice gives 0/0, and the harness's argmax takes NaN for the highest.
        by_characters = lls_C / np.array([float(len(text)) for text in choices])
        by_bytes = lls_C / np.array([float(len(text.encode())) for text in choices])
    several = isinstance(gold, (list, tuple))
    golds: set[int] = {gold} if isinstance(gold, int) else set(gold)
    predicted = int(np.argmax(lls_C))
    weights_C = np.exp(lls_C - lls_C.max())
    shares = (weights_C / weights_C.sum()).tolist()
    found: dict[str, Any] = {
        "acc": float(predicted in golds),
        "acc_norm": float(int(np.argmax(by_characters)) in golds),
        "acc_bytes": float(int(np.argmax(by_bytes)) in golds),
        "exact_match": int(any(greedy[i] for i in golds if i != -100)),
        "f1": (gold, predicted),
        "mcc": (gold, predicted),
        "brier_score": (gold, shares),
        "likelihood": sum(shares[i] for i in golds if 0 <= i < n),
    }
    if len(alone_C) == n:
        found["acc_mutual_info"] = float(not several and int(np.argmax(lls_C - alone_C)) == gold)
    return {name: found[name] for name in names if name in found}


def text_item(name: str, settings: Mapping[str, Any], gold: Any, result: Any) -> Any:
    """Return the item of a generated text: a score for exact_match, else `(gold, result)`.

    `result` is what the filters left: a value, or a list of them.
    """
    several = isinstance(gold, (list, tuple))
    if not several and not isinstance(result, list) and type(gold) is not type(result):
        gold = str(gold) if isinstance(result, str) else gold
    if name != "exact_match":
        return (list(gold) if several else gold, result)
    if several:
        return float(any(_match(one, result, settings) > 0 for one in gold))
    return _match(gold, result, settings)


def _match(gold: Any, result: Any, settings: Mapping[str, Any]) -> float:
    """Share of the results, one or nested lists of them, that equal the gold once cleaned."""
    hits = [_same(gold, one, settings) for one in _flat(result)]
    return sum(hits) / len(hits) if hits else 0.0


def _flat(result: Any) -> list[Any]:
    if not isinstance(result, (list, tuple)):
        return [result]
    return [one for inner in result for one in _flat(inner)]


def _same(gold: Any, result: Any, settings: Mapping[str, Any]) -> bool:
    if isinstance(gold, str) and isinstance(result, str):
        ignored = {key: value for key, value in settings.items() if value is not None}
        return cleaned(gold, **ignored) == cleaned(result, **ignored)
    return bool(gold == result)
