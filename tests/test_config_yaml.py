"""Every YAML that ships composes and builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from xpe.config import GROUPS, compose, dump, finish
from xpe.registry import EVALUATORS

CONF = Path(__file__).resolve().parent.parent / "conf"
FILES = sorted(CONF.glob("*/**/*.yaml"))
CHOICES = [
    (file.relative_to(CONF).parts[0], file.relative_to(CONF / file.relative_to(CONF).parts[0]))
    for file in FILES
    if not file.name.startswith("_")
]
TASK_OF_KIND = {
    "generation": "translation_zh_en",
    "multiple_choice": "capitals_en",
    "perplexity": "perplexity_en",
    "tool_call": "tool_call",
}
HARNESS_TASKS = Path(__file__).resolve().parent / "parity" / "tasks"
NAMED = {
    "task=lm_eval": [
        "task.lm_eval.names=[parity_mc_letters]",
        f'task.lm_eval.include_path="{HARNESS_TASKS}"',
    ]
}
"""What a file that runs nothing on its own has to be told."""


@pytest.fixture(autouse=True)
def _ours_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XPE_CONFIG_PATH", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize(
    "choice", [f"{group}={name.with_suffix('').as_posix()}" for group, name in CHOICES]
)
def test_every_file_composes_builds_and_comes_back(choice: str) -> None:
    """Also from its dump, which `rescore` reads."""
    config = compose([choice, *_needed(choice), *_fitting(choice)])

    assert config == finish(dump(config))


def _needed(choice: str) -> list[str]:
    """Give a value to what a file marks as needed (`???`)."""
    group, _, name = choice.partition("=")
    text = (CONF / group / f"{name}.yaml").read_text(encoding="utf-8")
    unset = re.findall(r"^(\w+): \?\?\?", text, re.MULTILINE)
    return [*(f"{group}.{key}=given" for key in unset), *NAMED.get(choice, [])]


def _fitting(choice: str) -> list[str]:
    """An evaluator is tried on a task that it fits."""
    group, _, name = choice.partition("=")
    if group != "evaluator" or name == "auto":
        return []
    text = (CONF / group / f"{name}.yaml").read_text(encoding="utf-8")
    kind = re.findall(r"^kind: (\w+)", text, re.MULTILINE)[0]
    fits = getattr(EVALUATORS[kind], "fits", None) or {"generation"}
    return [f"task={TASK_OF_KIND[min(fits)]}"]


def test_every_group_has_a_folder_and_every_folder_is_a_group() -> None:
    """A folder that no field reads would be a dead one."""
    folders = {path.name for path in CONF.iterdir() if path.is_dir() and path.name[0] not in "_."}

    assert {*GROUPS, "experiment"} == folders


def test_the_defaults_are_what_a_newcomer_runs() -> None:
    """Bare `xpe`: three tasks that ship, the embedded model, MLflow."""
    plain = dump(compose())

    assert list(plain["task"]) == ["capitals_en", "arithmetic_zh", "tcm_choice"]
    assert (
        plain["model"]["kind"],
        plain["tracking"]["kind"],
        plain["store"]["kind"],
    ) == ("smollm2", "mlflow", "checkpoint")
