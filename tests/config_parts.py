"""Stand-ins for models and tasks, and a folder of configs that names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.registry import EVALUATORS, MODELS, STRICT, TASKS, TRACKERS
from xpe.types import LogLikelihood, Mean, Metric


@dataclass(frozen=True, config=STRICT)
class Talker:
    cosmetic: ClassVar[frozenset[str]] = frozenset({"colour"})

    path: str = "here"
    device: str = "cpu"
    colour: str = "red"


@dataclass(frozen=True, config=STRICT)
class Painter(Talker):
    multimodal: ClassVar[bool] = True


@dataclass(frozen=True, config=STRICT)
class Part:
    size: int = Field(default=1, ge=1)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Quiz:
    output_type: ClassVar[str] = "multiple_choice"

    name: str
    display_name: str | None = None
    part: Part = Field(default_factory=Part)
    num_fewshot: int | None = Field(default=None, ge=0)
    limit: int | float | None = None
    sample_ids: tuple[int, ...] | None = None
    fewshot_seed: int = 0
    compat: str | None = None
    chat: bool | None = None
    fewshot_as_multiturn: bool = True
    system_instruction: str | None = None
    modality: str = "text"
    unsafe_code: bool = False
    remap: dict[str, str] = Field(default_factory=dict)
    evaluators: dict[str, dict[str, Any]] = Field(default_factory=dict)
    metrics: tuple[str, ...] = ()

    def dialogue(self, sample: Any) -> Any:
        yield (LogLikelihood("Which?", (" this", " that")),)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Essay(Quiz):
    output_type: ClassVar[str] = "generate_until"

    generation_kwargs: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, config=STRICT)
class Marks:
    """Gives the metric `mark`; fits essays."""

    fits: ClassVar[frozenset[str]] = frozenset({"essay"})

    name: str = "Marks"
    filter: str = "none"
    strict: bool = False

    @property
    def prefix(self) -> str:
        return "" if self.name == "Marks" else f"{self.name}_"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("mark", Mean("mark")),)

    def measure(self, answer: Any) -> Any:
        return {"mark": 1.0}


@dataclass(frozen=True, config=STRICT)
class Listed:
    """Stands for the list of metrics."""

    names: tuple[str, ...] = ()
    output_type: str = ""
    name: str = "Listed"
    filter: str = "none"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(Metric(name, Mean(name)) for name in self.names or ("acc",))

    def measure(self, answer: Any) -> Any:
        return dict.fromkeys(self.names or ("acc",), 1.0)


@dataclass(frozen=True, config=STRICT)
class Diary:
    """A tracker that notes what it is told."""

    broken: bool = False
    notes: ClassVar[list[tuple[str, str]]] = []

    def begin(self, name: str, params: Any, tags: Any, run_id: str | None = None) -> str:
        if self.broken:
            raise OSError("no ink")
        self.notes.append(("begin", params["overrides"]))
        return "parent-id"

    def close(self, run_id: str, *, failed: bool) -> None:
        self.notes.append(("failed" if failed else "close", run_id))


FILES = {
    "tracking/diary": "kind: diary\n",
    "model/talker": "kind: talker\n",
    "model/painter": "kind: painter\n",
    "model/faceless": "kind: talker\npath: ???\n",
    "task/quiz": "# @package task.quiz\n# Questions.\nkind: quiz\ndisplay_name: 测验\n",
    "task/essay": (
        "# @package task.essay\nkind: essay\nnum_fewshot: 3\n"
        "generation_kwargs: {max_gen_toks: 9, do_sample: false}\nevaluators: {marks: {}}\n"
    ),
    "task/pinned": "# @package task.pinned\nkind: quiz\nnum_fewshot: 0\n",
    "task/both": (
        "# @package task.both\ndefaults: [quiz, essay, _self_]\nkind: group\ntasks: [quiz, essay]\n"
    ),
    "task/_base": "kind: quiz\nnum_fewshot: 2\n",
    "task/child": "# @package task.child\ndefaults: [_base@_here_, _self_]\nlimit: 7\n",
    "task/headless": "kind: quiz\n",
    "evaluator/marks": "# @package evaluator.marks\nkind: marks\n",
    "experiment/small": (
        "# @package _global_\ndefaults:\n  - override /task: [quiz, pinned]\n  - _self_\nlimit: 4\n"
        "task: {quiz: {num_fewshot: 6}}\n"
    ),
}

STAND_INS = (
    (MODELS, {"talker": Talker, "painter": Painter}),
    (TASKS, {"quiz": Quiz, "essay": Essay}),
    (EVALUATORS, {"marks": Marks, "metrics": Listed}),
    (TRACKERS, {"diary": Diary}),
)


def write(folder: Path, name: str, text: str) -> None:
    """Write one config file."""
    file = folder / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of configs on `$XPE_CONFIG_PATH`, their kinds registered, runs beside it."""
    folder = tmp_path / "configs"
    for name, text in FILES.items():
        write(folder, name, text)
    monkeypatch.setenv("XPE_CONFIG_PATH", str(folder))
    monkeypatch.setenv("XPE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for registry, parts in STAND_INS:
        for kind, part in parts.items():
            monkeypatch.setitem(registry._found, kind, part)
    return folder
