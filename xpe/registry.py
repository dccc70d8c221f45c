"""Names for parts: `kind:` in a config picks a class here.

Built-in kinds are import paths, resolved on first use, so that listing them imports nothing
heavy. Other packages add kinds through the entry points `xpe.models`, `xpe.tasks`,
`xpe.evaluators` and `xpe.metrics`, which are looked at only when a name is not built in.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from pydantic import ConfigDict

from xpe.errors import unknown

STRICT = ConfigDict(
    extra="forbid",
    coerce_numbers_to_str=True,
    arbitrary_types_allowed=True,
    allow_inf_nan=False,
)
"""For `pydantic.dataclasses.dataclass(frozen=True, config=STRICT)`: every configurable part."""


class Registry(Mapping[str, Any]):
    """A mapping from kind to class.

    Parameters
    ----------
    what
        The noun for error messages (`model`, `task kind`).
    group
        The entry-point group that third parties use.
    builtin
        Kind to `module:attribute`.
    """

    def __init__(self, what: str, group: str, builtin: Mapping[str, str]) -> None:
        self._what = what
        self._group = group
        self._found: dict[str, Any] = dict(builtin)
        self._searched = False

    def register(self, kind: str, part: Any) -> None:
        """Add or replace a kind."""
        self._found[kind] = part

    def __getitem__(self, kind: str) -> Any:
        if kind not in self._found:
            self._search()
        if kind not in self._found:
            raise unknown(self._what, kind, self._found)
        part = self._found[kind]
        if isinstance(part, str):
            module, _, attribute = part.partition(":")
            part = self._found[kind] = getattr(import_module(module), attribute)
        return part

    def kind_of(self, part: Any) -> str:
        """Return the kind whose class `part` is an object of."""
        for kind, found in self._found.items():
            if isinstance(found, str):
                module, _, attribute = found.partition(":")
                found = getattr(sys.modules.get(module), attribute, None)  # noqa: PLW2901
            if found is type(part):
                return kind
        raise unknown(f"{self._what} of class", type(part).__qualname__, self._found)

    def __contains__(self, kind: object) -> bool:
        if kind not in self._found:
            self._search()
        return kind in self._found

    def __iter__(self) -> Iterator[str]:
        self._search()
        return iter(self._found)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _search(self) -> None:
        if not self._searched:
            self._searched = True
            for point in entry_points(group=self._group):
                self._found.setdefault(point.name, f"{point.module}:{point.attr}")


MODELS = Registry(
    "model kind",
    "xpe.models",
    {
        "hf": "xpe.models.hf:Hf",
        "openai": "xpe.models.openai:OpenAi",
        "smollm2": "xpe.models.smollm2:SmolLM2",
        "vllm": "xpe.models.vllm:Vllm",
        "replay": "xpe.models.replay:Replay",
        "panel": "xpe.models.panel:Panel",
        "bm25": "xpe.models.bm25:Bm25",
        "http": "xpe.models.retrieval_http:Http",
    },
)
TASKS = Registry(
    "task kind",
    "xpe.tasks",
    {
        "multiple_choice": "xpe.tasks.multiple_choice:MultipleChoice",
        "generation": "xpe.tasks.generation:Generation",
        "loglikelihood": "xpe.tasks.loglikelihood:LogLikelihoodTask",
        "perplexity": "xpe.tasks.perplexity:Perplexity",
        "tool_call": "xpe.tasks.tool_call:ToolCall",
        "group": "xpe.tasks.group:Group",
    },
)
EVALUATORS = Registry(
    "evaluator",
    "xpe.evaluators",
    {
        "metrics": "xpe.evaluators.metric_list:MetricList",
        "lm_eval": "xpe.evaluators.lm_eval:HarnessMetrics",
        "accuracy": "xpe.evaluators.accuracy:AccuracyEvaluator",
        "bleu": "xpe.evaluators.bleu:BLEUEvaluator",
        "math": "xpe.evaluators.math:MathEvaluator",
        "tcm_diagnosis": "xpe.evaluators.tcm_diagnosis:TcmDiagnosisEvaluator",
        "tool_call": "xpe.evaluators.tool_call:ToolCallEvaluator",
        "judge": "xpe.evaluators.judge:JudgeEvaluator",
    },
)
TRACKERS = Registry("tracker", "xpe.trackers", {"mlflow": "xpe.tracking:MlflowTracker"})
