"""Models for conversations with tools: one that answers right, and small parts for others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from players import Silent

from xpe.pipeline import Run, evaluate
from xpe.stats.settings import Stats
from xpe.types import Asked, Estimate, Generated, Model, Reply, Retrieve, Retrieved

SEARCH = {
    "name": "retrieval_tool",
    "arguments": {
        "query": "收入分析",
        "source_filter": "toollist",
        "user_id": 136451106,
        "top_k": 5,
    },
}
REVENUE = {
    "name": "analyze_revenue_by_type",
    "arguments": {"start_date": "2025-06-01", "end_date": "2025-08-31"},
}
EXAMPLE: dict[str, Any] = {
    "conversations": [
        {"from": "human", "value": "帮我看下2025年6月到8月各种收入类型的占比情况"},
        {"from": "function_call", "value": json.dumps(SEARCH, ensure_ascii=False)},
        {
            "from": "observation",
            "value": '[{"name":"analyze_revenue_by_type","description":"收入分析工具"}]',
        },
        {"from": "function_call", "value": json.dumps(REVENUE)},
        {"from": "observation", "value": '{"result":{"收入":"1,285,893.00","门票":"47.1%"}}'},
        {"from": "gpt", "value": "交通收入占50.6%，门票收入占47.1%..."},
    ],
    "system": "# 工具\n\n在 <tools></tools> XML 标签中提供了可用的函数签名：\n<tools>\n</tools>",
    "tools": '[{"name":"retrieval_tool","description":"检索工具"}]',
}
"""The complete example of the document that this task was specified by."""

Change = Callable[[Mapping[str, Any], Asked], Reply | None]


def calling(calls: Sequence[Mapping[str, Any]], *, native: bool = False) -> Generated:
    """A reply that makes calls."""
    if native:
        made = [
            {
                "id": f"c{n}",
                "type": "function",
                "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])},
            }
            for n, c in enumerate(calls)
        ]
        return Generated("", finish="tool_calls", tool_calls=tuple(made))
    texts = [f"<tool_call>{json.dumps(c, ensure_ascii=False)}</tool_call>" for c in calls]
    return Generated("\n".join(texts))


@dataclass
class GoldPlayer:
    """Answers each pair with what its record holds, unless `change` has something else."""

    task: Any
    native: bool = False
    change: Change = lambda pair, asked: None
    asked: list[Asked] = field(default_factory=list)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"backend": "gold"}

    def reply(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        samples = {sample.doc_id: sample for sample in self.task.samples()}
        for one in asked:
            if one is None:
                yield None
                continue
            self.asked.append(one)
            pair = samples[one.origin.doc_id].reference["pairs"][one.origin.repeat]
            yield one, self.change(pair, one) or self._right(pair)

    def _right(self, pair: Mapping[str, Any]) -> Reply:
        if pair["kind"] == 3:
            return Generated(pair["answer"])
        return calling(pair["calls"] or [], native=self.native)


@dataclass
class Library:
    """Retrieves what `find` says."""

    find: Callable[[Retrieve], Reply]
    asked: list[Asked] = field(default_factory=list)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"backend": "library"}

    def reply(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        for one in asked:
            if one is None:
                yield None
            else:
                self.asked.append(one)
                yield one, self.find(one.request)


def always(*names: str) -> Library:
    """A service that always finds the same."""
    return Library(lambda _: Retrieved(names))


@dataclass
class Critic:
    """A judge that says what `say` makes of the question."""

    say: Callable[[Asked], Reply | str]
    asked: list[Asked] = field(default_factory=list)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"backend": "critic"}

    def reply(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        for one in asked:
            if one is None:
                yield None
                continue
            self.asked.append(one)
            said = self.say(one)
            yield one, Generated(said) if isinstance(said, str) else said


def ratings(*four: float) -> str:
    """A verdict as a judge writes it."""
    names = ("content_accuracy", "completeness", "expression_quality", "format_consistency")
    return json.dumps(dict(zip(names, four, strict=True)))


def play(task: Any, evaluator: Any, **models: Model) -> tuple[Mapping[str, Estimate], Silent]:
    """Run one task with one evaluator; returns its estimates and what was seen."""
    seen = Silent()
    run = Run(
        models=models,
        tasks=[task],
        evaluators={task.name: {evaluator.name: evaluator}},
        stats=Stats(bootstrap_iters=200),
    )
    return evaluate(run, watch=seen).tasks[task.name].estimates, seen


def plain_calls(
    calls: Sequence[Mapping[str, Any]], *, optional: bool = True
) -> list[dict[str, Any]]:
    """Calls with the first allowed value of each argument; one whose first is "" is left out."""
    return [{"name": c["name"], "arguments": _first(c["arguments"], optional)} for c in calls]


def _first(allowed: Mapping[str, Any], optional: bool) -> dict[str, Any]:
    return {
        name: _plain(values[0], optional)
        for name, values in allowed.items()
        if values[0] != "" and (optional or "" not in values)
    }


def _plain(value: Any, optional: bool) -> Any:
    if isinstance(value, dict):
        return _first(value, optional)
    return [_plain(item, optional) for item in value] if isinstance(value, list) else value
