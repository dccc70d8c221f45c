"""Which calls to a retrieval tool are checked by asking a real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xpe.text.calls import Call, Calls, calls_in, native_calls, same_names
from xpe.text.lenient import plain
from xpe.types import Generated, Reply, Retrieve

FIRST = 5
"""How many results count, whatever number a model asked for."""


def calls_made(reply: Reply) -> Calls | None:
    """Return the calls in a reply; None for a failure."""
    if not isinstance(reply, Generated):
        return None
    return native_calls(reply.tool_calls) if reply.tool_calls else calls_in(reply.text)


def gold_calls(pair: Mapping[str, Any]) -> tuple[Call, ...] | None:
    """Return the calls that a pair of a reference wants; None where they cannot be read."""
    calls = pair["calls"]
    return None if calls is None else tuple(Call(c["name"], c["arguments"]) for c in calls)


def retrievals(reference: Mapping[str, Any], made: Sequence[Calls | None]) -> dict[int, Retrieve]:
    """Return what to ask the retrieval service, by the place of the pair 1 that asks it.

    Asked is for a pair 1 that a pair 2 follows, if the right tools are called, among them the
    retrieval tool with a query.

    Parameters
    ----------
    reference
        That of a sample of the task `tool_call`.
    made
        What was called, one entry a pair; None where there is no answer.
    """
    settings = reference["recall"]
    if settings is None:
        return {}
    asked: dict[int, Retrieve] = {}
    for place, (pair, found) in enumerate(zip(reference["pairs"], made, strict=True)):
        wanted = gold_calls(pair) if "next" in pair else None
        if wanted and found is not None and same_names(found.calls, wanted):
            query = _query(found.calls, settings["tool"], settings["argument"])
            if query is not None:
                asked[place] = query
    return asked


def _query(calls: Sequence[Call], tool: str | None, argument: str) -> Retrieve | None:
    for call in calls:
        query = (call.arguments or {}).get(argument)
        if (tool is None or call.name == tool) and isinstance(query, str) and query.strip():
            given = {name: plain(value) for name, value in (call.arguments or {}).items()}
            arguments = {**given, argument: str(query), "top_k": FIRST}
            return Retrieve(query.strip(), FIRST, arguments)
    return None
