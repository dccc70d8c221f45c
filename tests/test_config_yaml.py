"""Every YAML that ships composes and builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from xpe.config import GROUPS, compose, dump, finish

CONF = Path(__file__).resolve().parent.parent / "conf"
FILES = sorted(CONF.glob("*/**/*.yaml"))
CHOICES = [
    (file.relative_to(CONF).parts[0], file.relative_to(CONF / file.relative_to(CONF).parts[0]))
    for file in FILES
    if not file.name.startswith("_")
]
NEEDED = {
    "model=hf": ["model.path=some/model"],
    "model=replay": ["model.path=predictions.jsonl"],
}
"""Values for what a file marks as needed (`???`)."""


@pytest.fixture(autouse=True)
def _ours_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XPE_CONFIG_PATH", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize(
    "choice", [f"{group}={name.with_suffix('').as_posix()}" for group, name in CHOICES]
)
def test_every_file_composes_builds_and_comes_back(choice: str) -> None:
    """Also from its dump, which `rescore` reads."""
    group, _, name = choice.partition("=")
    chosen = f"evaluator=[auto,{name}]" if group == "evaluator" and name != "auto" else choice
    needed = [*NEEDED.get(choice, []), *_fitting(choice)]

    config = compose([chosen, *needed])

    assert config == finish(dump(config))


def _fitting(choice: str) -> list[str]:
    """An evaluator is tried on a task whose kind it fits, and that names none of its own."""
    if not choice.startswith("evaluator=") or choice == "evaluator=auto":
        return []
    return ["task=translation_zh_en", "task.translation_zh_en.evaluators={}"]


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
