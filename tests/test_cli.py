"""The command line: commands, exit codes, messages, sweeps, and what it imports."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from config_parts import Diary, configs  # noqa: F401

from xpe import __version__
from xpe.cli import main
from xpe.errors import EngineError, UnknownNameError
from xpe.tracking import PARENT

HEAVY = ("torch", "transformers", "mlflow", "numba", "hydra", "omegaconf", "datasets")
parents: list[str | None] = []
"""The parent run that each job of a sweep saw."""

JOB = ("model=talker", "task=quiz", "tracking=none")


@pytest.fixture(autouse=True)
def _logging_restored() -> Iterator[None]:
    """Hydra configures logging for the process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def launched(
    configs: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> list[tuple[Any, Path, list[str]]]:
    """What `xpe.launch.launch` was called with; the model's path says how a job ends."""
    calls: list[tuple[Any, Path, list[str]]] = []
    parents.clear()

    def launch(config: Any, folder: Path, overrides: Sequence[str]) -> int:
        calls.append((config, folder, list(overrides)))
        parents.append(os.environ.get(PARENT))
        match config.model.path:
            case "partial":
                return 3
            case "dead":
                raise EngineError("the engine died")
            case "bug":
                raise ZeroDivisionError("a bug")
            case "stop":
                raise KeyboardInterrupt
        (folder / "results.json").write_text("{}")
        return 0

    module = ModuleType("xpe.launch")
    module.launch = launch  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xpe.launch", module)
    return calls


# --- jobs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], ["run"]])
def test_run_may_be_left_out(
    command: list[str], launched: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job gets the finished config, a folder named by the fingerprint, and what was typed."""
    assert main([*command, *JOB, "limit=2"]) == 0

    ((config, folder, overrides),) = launched
    assert config.limit == config.task["quiz"].limit == 2
    assert folder.parent == tmp_path / "runs"
    assert folder.name.endswith(f"_{config.fingerprint}")
    assert [*JOB, "limit=2"] == overrides
    assert not (folder / ".hydra").exists()


@pytest.mark.parametrize(("path", "code"), [("partial", 3), ("dead", 1), ("stop", 130)])
def test_the_exit_code_is_that_of_the_job(
    path: str, code: int, launched: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """3 partial, 1 a dead engine, 130 interrupted; no traceback."""
    assert main([*JOB, f"model.path={path}"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_bug_is_not_swallowed(launched: list[Any]) -> None:
    """What is not ours to explain keeps its traceback."""
    with pytest.raises(ZeroDivisionError):
        main([*JOB, "model.path=bug"])


def test_chinese_is_quoted_and_said(
    launched: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The line shows how it was read."""
    assert main([*JOB, "model.path=/data/通义千问"]) == 0

    assert launched[0][0].model.path == "/data/通义千问"
    assert "read as 'model.path=\"/data/通义千问\"'" in capsys.readouterr().err


def test_cfg_job_prints_the_finished_config(
    launched: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """With defaults and kinds, and nothing runs."""
    assert main(["--cfg", "job", *JOB, "num_fewshot=2"]) == 0

    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["task"]["quiz"]["num_fewshot"] == 2
    assert shown["model"] == {"kind": "talker", "path": "here", "device": "cpu", "colour": "red"}
    assert not launched


# --- sweeps ----------------------------------------------------------------------------------


def test_a_sweep_goes_on_after_failures_and_ends_with_the_highest_code(
    launched: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each cell is in the table and in `cells.jsonl`."""
    words = ["-m", "model=talker", "model.path=好,bug,dead,partial", "task=quiz", "tracking=none"]

    assert main(words) == 3

    assert [call[0].model.path for call in launched] == ["好", "bug", "dead", "partial"]
    out = capsys.readouterr()
    table = [line.split()[:2] for line in out.out.splitlines() if line.strip()[:1].isdigit()]
    assert table == [["0", "ok"], ["1", "failed"], ["2", "failed"], ["3", "partial"]]
    (sweep,) = (tmp_path / "runs").glob("*_sweep")
    cells = [json.loads(line) for line in (sweep / "cells.jsonl").read_text().splitlines()]
    assert [cell["code"] for cell in cells] == [0, 1, 1, 3]
    assert cells[2]["error"] == "the engine died"


@pytest.mark.parametrize(
    ("how", "code", "end"), [("here", 0, "close"), ("stop", 130, "failed"), ("bug", 1, "failed")]
)
def test_a_sweep_has_a_parent_run_which_is_closed_however_it_ends(
    how: str, code: int, end: str, launched: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id is in the environment of the jobs and nowhere after."""
    monkeypatch.setattr(Diary, "notes", [])
    words = ["model=talker", f"model.path={how}", "task=quiz", "limit=1,2", "tracking=diary"]

    assert main(["-m", *words]) == code

    assert Diary.notes == [("begin", " ".join(words)), (end, "parent-id")]
    assert set(parents) == {"parent-id"}
    assert PARENT not in os.environ


def test_a_tracker_that_fails_costs_no_job(launched: list[Any]) -> None:
    """The sweep has no parent run then."""
    words = ["-m", *JOB[:2], "limit=1,2", "tracking=diary", "tracking.broken=true"]

    assert main(words) == 0
    assert len(launched) == 2


def test_a_wrong_cell_is_reported_and_the_others_run(
    launched: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A setting that is wrong in one job costs that job only."""
    assert main(["-m", *JOB, "limit=0,5"]) == 2

    assert [call[0].limit for call in launched] == [5]
    assert "job 0: limit: expected" in capsys.readouterr().err


def test_a_name_that_does_not_exist_stops_a_sweep_before_it_starts(
    launched: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Hydra would find it only when the job is composed, and drop those after it."""
    assert main(["-m", "model=talker", "task=quiz,quizz", "tracking=none"]) == 2

    assert not launched
    assert "no task 'quizz'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("order", "hinted"),
    [
        (["task=quiz,essay", "model=talker,painter"], True),
        (["model=talker,painter", "task=quiz,essay"], False),
        (["model=talker", "task=quiz,essay"], False),
    ],
)
def test_a_sweep_that_reloads_models_gets_a_hint(
    order: list[str], hinted: bool, launched: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The last override varies fastest."""
    assert main(["-m", *order, "tracking=none"]) == 0

    assert hinted == ("put model= first" in capsys.readouterr().err)


# --- what is wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["task=quizz"], "there is no task 'quizz'. Did you mean 'quiz'"),
        (["tsk=quiz"], "Did you mean 'task'"),
        (["task.quiz.num_fewshots=3"], "Did you mean 'num_fewshot'"),
        (["limit=0"], "write limit=10"),
        (["limit=1.0"], "write limit=1 "),
        (["model=faceless"], "model.path: is needed"),
        (["task=[quiz"], "check its brackets"),
        (["hydra.run.dir=${nowhere}"], "nowhere"),
        (["task=quiz,essay"], "needs -m"),
    ],
)
def test_bad_input_is_exit_2_with_one_clear_message(
    words: list[str],
    message: str,
    launched: list[Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No traceback, nothing launched, no folder left behind."""
    assert main([*JOB, *words]) == 2

    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("xpe: ")
    assert len(err.splitlines()) == 1
    assert not launched
    assert not list((tmp_path / "runs").glob("*"))


def test_runs_that_cannot_be_written_are_exit_2(
    launched: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Found before anything is launched."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XPE_RUNS", str(tmp_path / "file/runs"))

    assert main(list(JOB)) == 2
    assert "Set XPE_RUNS" in capsys.readouterr().err
    assert not launched


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["vlidate"], "Did you mean 'validate'"),
        (["ls", "taks"], "Did you mean 'tasks'"),
        (["info", "x"], "takes no arguments"),
        (["ui"], "no MLflow store at"),
        (["ui", "tracking=none"], "no MLflow store to show"),
        (["ui", "tracking.uri=https://runs.example"], "open https://runs.example"),
    ],
)
@pytest.mark.usefixtures("configs")
def test_commands_explain_what_is_wrong(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command that does not exist is not taken for a setting."""
    assert main(words) == 2
    assert message in capsys.readouterr().err


# --- other commands --------------------------------------------------------------------------


@pytest.mark.usefixtures("configs")
def test_ui_becomes_mlflow_on_the_store_of_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings choose the store, options are passed on."""
    ran: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: ran.append(command))
    store = tmp_path / "runs/mlflow.db"
    store.parent.mkdir()
    store.write_text("")

    main(["ui", "--port", "5001"])

    assert ran == [
        [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", f"sqlite:///{store}",
         "--port", "5001"]
    ]  # fmt: skip


@pytest.mark.usefixtures("configs")
def test_ls_shows_names_kinds_and_comments(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the user's files too; what a base states is found, bases are hidden, and a comment of two
    lines is whole.
    """
    assert main(["ls", "tasks"]) == 0

    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "测验" in lines["quiz"]
    assert "Questions." in lines["quiz"]
    assert lines["child"].split()[1] == "quiz"
    assert "_base" not in lines
    assert lines["tcm"].endswith(
        "a share of right letters and an overlap of terms have no common mean."
    )


def test_info_names_versions_and_folders(
    configs: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a report of a problem needs."""
    assert main(["info"]) == 0

    out = capsys.readouterr().out
    assert f"xpe       {__version__}" in out
    assert str(configs) in out
    assert "hydra-core" in out


def test_validate_shows_the_first_prompts(
    configs: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a task that ships, with a model that is never loaded."""
    assert main(["validate", "model=talker", "task=capitals_en", "limit=2"]) == 0

    out = capsys.readouterr().out
    assert "capitals_en: 2 of " in out
    assert "What is the capital of" in out
    assert "log likelihood of" in out


@pytest.mark.model
def test_validate_renders_messages_with_the_chat_template(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The text that the model would read; its tokenizer is loaded, its weights are not."""
    assert main(["validate", "task=arithmetic_zh", "apply_chat_template=true", "limit=1"]) == 0

    out = capsys.readouterr().out
    assert "<|im_start|>user\n某小学" in out
    assert "<|im_end|>\n<|im_start|>assistant\n" in out


def test_validate_names_targets_that_an_evaluator_cannot_use(
    configs: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An empty answer is a document that no model could get right."""
    data = tmp_path / "own.jsonl"
    data.write_text('{"q": "1+1", "a": "2"}\n{"q": "1+2", "a": " 。"}\n', "utf-8")
    (configs / "task").mkdir(exist_ok=True)
    (configs / "task" / "own.yaml").write_text(
        "# @package task.own\nkind: generation\n"
        f"data: {{path: {data}}}\ndoc_to_text: '{{{{ q }}}}'\ndoc_to_target: a\n",
        "utf-8",
    )
    assert main(["validate", "model=talker", "task=own", "evaluator=math"]) == 0

    out = capsys.readouterr().out
    assert "math cannot use the target of 1 of 2 documents: doc 1" in out


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    """The help is ours and short."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"xpe {__version__}\n"
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 30
    assert all(word in out for word in ("validate", "xpe -m", "limit=20"))


@pytest.mark.parametrize(
    ("words", "most"), [(["--help"], 0.5), (["ls"], 1.0), (["--version"], 0.5)]
)
def test_quick_commands_import_nothing_heavy(words: list[str], most: float) -> None:
    """CPU time of the whole process, and what it imported."""
    code = (
        "import sys, time\nfrom xpe.cli import main\ncode = main(sys.argv[1:])\n"
        f"print(code, time.process_time(), [m for m in {HEAVY} if m in sys.modules],"
        " file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )

    status, seconds, heavy = ran.stderr.split(maxsplit=2)
    assert (status, heavy.strip()) == ("0", "[]")
    assert float(seconds) <= most


def test_an_ascii_terminal_does_not_break_ls() -> None:
    """Chinese names are escaped where they cannot be shown."""
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}

    ran = subprocess.run(
        [sys.executable, "-m", "xpe.cli", "ls", "tasks"], env=env, capture_output=True, check=True
    )

    assert b"\\u" in ran.stdout


def test_errors_of_ours_carry_their_exit_code() -> None:
    """The tree decides, not the command line."""
    assert (UnknownNameError.exit_code, EngineError.exit_code) == (2, 1)
