"""The program that worker processes of `xpe.evaluators.algebra` run: math-verify behind pipes.

Each line of the input is a JSON request, each line of the output its reply. The caller kills
the process where an answer takes too long, so nothing here limits time.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_MEMORY_LIMIT = 4 << 30
_UNREAD = {"parsed": False, "equal": False, "value": None, "gold_value": None}


def serve() -> None:
    """Answer requests until the input ends. The first line of the output says that it is ready."""
    # Whatever libraries print must not mix with the replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _limit_memory()
    # The first formula builds the parser, which is not part of what is limited.
    _parsed("x")
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps(_reply(json.loads(line))), file=replies, flush=True)


def _reply(request: dict[str, str]) -> dict[str, Any]:
    """Compare two formulas.

    The reply says whether the prediction could be `parsed`, whether the two are `equal`, and
    their values where they are numbers.
    """
    from math_verify import verify

    try:
        gold, said = _parsed(request["gold"]), _parsed(request["prediction"])
        if not gold or not said:
            return {**_UNREAD, "parsed": bool(said)}
        equal = verify(
            gold, said, float_rounding=9, allow_set_relation_comp=True, timeout_seconds=None
        )
        return {
            "parsed": True,
            "equal": bool(equal),
            "value": _value(said[0]),
            "gold_value": _value(gold[0]),
        }
    except Exception:  # noqa: BLE001
        # What a model wrote can raise anything inside of the parser and of sympy.
        return _UNREAD


def _parsed(formula: str) -> list[Any]:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse

    found: list[Any] = parse(
        f"${formula}$",
        [LatexExtractionConfig(), ExprExtractionConfig()],
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    return found


def _value(expression: Any) -> float | None:
    try:
        return float(expression)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return None


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:
        # Where the system cannot limit it, the limit of time is the only one.
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))


if __name__ == "__main__":
    serve()
