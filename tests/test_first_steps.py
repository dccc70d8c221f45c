"""What a newcomer's hands do: empty values, edited inputs, golds that are missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xpe.cli import main
from xpe.config import compose

SUMS = """\
# @package task.sums
kind: generation
data: {path: sums.csv}
doc_to_text: question
doc_to_target: answer
answer_type: number
generation_kwargs: {until: [], do_sample: false}
evaluators: {accuracy: {}}
"""
QUESTIONS = "question,answer\n2+3=?,5\n10-4=?,6\n"
SAID = [{"id": 0, "prediction": "5"}, {"id": 1, "prediction": "It is 6."}]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a task, its data and recorded predictions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XPE_RUNS", str(tmp_path / "runs"))
    (tmp_path / "conf" / "task").mkdir(parents=True)
    (tmp_path / "conf" / "task" / "sums.yaml").write_text(SUMS, "utf-8")
    (tmp_path / "sums.csv").write_text(QUESTIONS, "utf-8")
    write(tmp_path / "said.jsonl", SAID)
    return tmp_path


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def run(*words: str) -> int:
    return main(["task=sums", "model=replay", "model.path=said.jsonl", "tracking=none", *words])


def values(here: Path) -> list[float]:
    """The accuracies of all runs, oldest first."""
    found = sorted((here / "runs").glob("*/results.json"), key=lambda path: path.stat().st_mtime)
    return [json.loads(p.read_text())["results"]["sums"]["accuracy"]["value"] for p in found]


@pytest.mark.parametrize(
    "edit",
    [
        lambda here: write(here / "said.jsonl", [SAID[0], {"id": 1, "prediction": "7"}]),
        lambda here: (here / "sums.csv").write_text(QUESTIONS.replace("6", "8"), "utf-8"),
    ],
    ids=["predictions", "data"],
)
def test_a_finished_run_is_not_shown_for_other_inputs(
    here: Path, edit: Callable[[Path], Any]
) -> None:
    """The same command shows a finished run; after an edit of its files it runs again."""
    assert (run(), run()) == (0, 0)
    assert values(here) == [1.0]
    edit(here)
    assert run() == 0
    assert values(here) == [1.0, 0.5]


def test_a_chosen_folder_is_not_replaced_for_other_inputs(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With output= the old results stay, and the message says what changed."""
    assert run("output=out") == 0
    write(here / "said.jsonl", [SAID[0], {"id": 1, "prediction": "7"}])
    assert run("output=out") == 2
    assert "what was recorded changed" in capsys.readouterr().err
    assert run("output=out", "fresh=true") == 0


def test_a_missing_gold_is_named_in_table_and_log(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The document is not scored, and both say so."""
    (here / "sums.csv").write_text("question,answer\n2+3=?,5\n10-4=?,\n", "utf-8")
    assert run("output=out") == 3
    assert "1/2 (0, 0, 0) 1 invalid partial" in " ".join(capsys.readouterr().out.split())
    log = (here / "out" / "evaluation.log").read_text("utf-8")
    assert "sums, document 1: AccuracyEvaluator cannot score by its gold ''" in log


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("model.path=", "model.path: expected a text that is not empty"),
        ("output=", "output: expected a text that is not empty"),
        ("seed.numpy=-1", "seed.numpy"),
        ("seed.numpy=5000000000", "seed.numpy"),
        ("gen_kwargs.temperature=-1", "temperature must be a number from 0"),
        ("task.sums.cluster=qestion", "Did you mean 'question'"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    here: Path, word: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One message, exit code 2, no results."""
    assert run(word) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
    assert not list(here.glob("runs/*/results.json"))


def test_the_number_of_examples_is_a_number(here: Path) -> None:
    """`n-shot` says how many examples stood before a question, not what was typed."""
    assert run("output=none") == 0
    assert run("output=two", "num_fewshot=1") == 0
    found = [json.loads((here / name / "results.json").read_text()) for name in ("none", "two")]
    assert [document["n-shot"] for document in found] == [{"sums": 0}, {"sums": 1}]


def test_a_typed_temperature_is_not_undone_by_the_file(here: Path) -> None:
    """`gen_kwargs.temperature` samples although the task's file says `do_sample: false`."""
    task = compose(["task=sums", "gen_kwargs.temperature=0.7"]).task["sums"]
    assert task.settings["temperature"] == 0.7
    greedy = ["task=sums", "gen_kwargs.temperature=0.7", "gen_kwargs.do_sample=false"]
    assert compose(greedy).task["sums"].settings["temperature"] == 0.0


def test_rescoring_by_another_evaluator(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`xpe rescore` takes the choices of `xpe run`, with their settings."""
    assert run("output=out") == 0
    assert main(["rescore", "out", "evaluator=[accuracy,math]", "evaluator.math.tolerance=9"]) == 0
    found = json.loads((here / "out" / "rescored.json").read_text("utf-8"))["results"]["sums"]
    assert {"accuracy", "math_accuracy"} <= found.keys()
    capsys.readouterr()
    assert main(["rescore", "out", "evaluator=mth"]) == 2
    assert "Did you mean 'math'" in capsys.readouterr().err


def test_predictions_can_be_scored_later(here: Path) -> None:
    """What `predict_only=true` wrote is scored by `xpe rescore`."""
    assert run("output=out", "predict_only=true") == 0
    assert json.loads((here / "out" / "results.json").read_text())["results"] == {"sums": {}}
    assert main(["rescore", "out"]) == 0
    found = json.loads((here / "out" / "rescored.json").read_text())["results"]["sums"]
    assert found["accuracy"]["value"] == 1.0


def test_replaying_a_run_under_another_prompt_is_told(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Replies of a run without examples are not silently those of a run with one."""
    assert run("output=out") == 0
    assert run("model.path=out", "output=same") == 0
    assert "another prompt" not in capsys.readouterr().err
    assert run("model.path=out", "output=other", "num_fewshot=1") == 0
    assert capsys.readouterr().err.count("answers another prompt than this run's") == 1


@pytest.mark.parametrize(
    ("file", "edit", "said"),
    [
        ("samples/sums.jsonl", lambda text: text.splitlines()[0] + "\n", "1 samples, but the run"),
        ("samples/sums.jsonl", lambda text: text + text, "line 3: document 0 is there twice"),
        ("samples/sums.jsonl", lambda _: "[]\n", "line 1: expected an object"),
        ("samples/sums.jsonl", lambda text: text.replace('"replies"', '"replis"'), "'replies'"),
        (
            "samples/sums.jsonl",
            lambda text: text.replace('id": 1', 'id": "one"'),
            "line 2: expected an object",
        ),
        ("results.json", lambda text: text.replace('"original"', '"orginal"'), "`n-samples`"),
        ("results.json", lambda text: text.replace('"results": {', '"reslts": {'), "`results`"),
        ("config.yaml", lambda _: "", "config.yaml: expected the config of a run"),
        ("config.yaml", lambda _: "- sums\n", "config.yaml: expected the config of a run"),
    ],
)
def test_rescoring_refuses_an_edited_run(
    here: Path,
    file: str,
    edit: Callable[[str], str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Lines that are gone, doubled or rewritten are named, never scored as if all were there."""
    assert run("output=out") == 0
    path = here / "out" / file
    path.write_text(edit(path.read_text("utf-8")), "utf-8")
    capsys.readouterr()
    assert main(["rescore", "out"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert file in err
    assert not (here / "out" / "rescored.json").exists()


def test_predictions_that_were_cut_can_be_completed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that stopped at a missing prediction takes the whole file, without fresh=true."""
    write(here / "said.jsonl", SAID[:1])
    assert run() == 2
    assert "nothing is recorded for id 1" in capsys.readouterr().err
    write(here / "said.jsonl", SAID)
    assert run() == 0
    assert values(here) == [1.0]
