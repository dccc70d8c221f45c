"""Sample files of lm-evaluation-harness: compared, scored again, and what is no such file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from xpe.cli import main
from xpe.compare import Options, comparable, compare
from xpe.errors import ConfigError, DataFileError
from xpe.harness_rescore import rescore_harness
from xpe.harness_samples import answer_of
from xpe.types import LogLikelihood, Rolling


def line(doc_id: int, text: str, target: str, **more: Any) -> dict[str, Any]:
    """One sample of a generation task as the harness writes it."""
    return {
        "doc_id": doc_id,
        "doc": {"q": f"q{doc_id}"},
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": f"q{doc_id} ", "arg_1": {"until": ["\n"]}}},
        "resps": [[text]],
        "filtered_resps": [text],
        "filter": "none",
        "metrics": ["exact_match"],
        "doc_hash": "d",
        "prompt_hash": f"p{doc_id}",
        "target_hash": "t",
        "exact_match": float(text == target),
        **more,
    }


def choice(doc_id: int, lls: list[float], gold: int) -> dict[str, Any]:
    """One sample of a multiple-choice task."""
    return {
        **line(doc_id, "", str(gold)),
        "arguments": {
            f"gen_args_{i}": {"arg_0": "Q:", "arg_1": f" {name}"} for i, name in enumerate("abc")
        },
        "resps": [[[str(value), "False"]] for value in lls],
        "filtered_resps": [[str(value), "False"] for value in lls],
        "metrics": ["acc", "f1", "brier_score"],
        "brier_score": [gold, "[0.2 0.3 0.5]"],  # an array, as it is written
        "acc": float(lls.index(max(lls)) == gold),
        "f1": [gold, lls.index(max(lls))],
    }


def written(folder: Path, task: str, lines: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"samples_{task}_2026-01-02T03-04-05.678.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    return path


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs of two tasks: 3 of 6 and 5 of 6 right; 1 of 4 and 2 of 4."""
    both = tmp_path / "a", tmp_path / "b"
    for folder, right, hits in zip(both, (3, 5), (1, 2), strict=True):
        written(folder, "t_x", [line(i, "yes" if i < right else "no", "yes") for i in range(6)])
        lls = [[-1.0, -2.0, -3.0] if i < hits else [-3.0, -2.0, -1.0] for i in range(4)]
        written(folder, "mc", [choice(i, values, 0) for i, values in enumerate(lls)])
    return both


def test_compared(runs: tuple[Path, Path]) -> None:
    """Values and differences are those of the logged metrics, paired by document."""
    cells = compare([comparable(str(run)) for run in runs], Options(iters=50))
    found = {(c.task, c.metric): (c.baseline_value, c.run_value, c.difference.value) for c in cells}
    assert found["t_x", "exact_match"] == pytest.approx((3 / 6, 5 / 6, 2 / 6))
    assert found["mc", "acc"] == pytest.approx((1 / 4, 2 / 4, 1 / 4))
    # No label 1 is right: no hit, hence 0.
    assert found["mc", "f1"] == pytest.approx((0, 0, 0))
    assert {metric for task, metric in found if task == "mc"} == {"acc", "f1"}


def test_command(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """`xpe compare` takes folders of sample files, and single files."""
    assert main(["compare", *map(str, runs), "iters=50"]) == 0
    assert "exact_match" in capsys.readouterr().out
    files = [str(next(run.glob("samples_mc_*"))) for run in runs]
    assert main(["compare", *files, "iters=50"]) == 0


def test_scored_again(runs: tuple[Path, Path]) -> None:
    """Logged replies give the logged scores, with ours or with another evaluator."""
    found = rescore_harness(runs[0], ["stats.bootstrap_iters=0"])
    assert found.tasks["t_x"].estimates["exact_match"].value == pytest.approx(0.5)
    assert found.tasks["mc"].estimates["acc"].value == pytest.approx(0.25)
    path = next(runs[1].glob("samples_t_x_*"))
    other = rescore_harness(path, ["evaluator.accuracy.case_sensitive=true"])
    assert other.tasks["t_x"].estimates["accuracy"].value == pytest.approx(5 / 6)


def test_rescore_command(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """`xpe rescore` writes what it found beside the files."""
    assert main(["rescore", str(runs[0]), "stats.bootstrap_iters=0"]) == 0
    assert "t_x" in capsys.readouterr().out
    document = json.loads((runs[0] / "rescored.json").read_text("utf-8"))
    assert document["results"]["mc"]["acc"]["value"] == pytest.approx(0.25)


def test_what_cannot_be_changed(runs: tuple[Path, Path]) -> None:
    """Only evaluators and statistics may be chosen."""
    with pytest.raises(ConfigError, match=r"evaluator\.KIND"):
        rescore_harness(runs[0], ["model=hf"])


def test_answers() -> None:
    """Choices of one context are one request; texts, and text by text, keep their form."""
    made = answer_of(choice(0, [-1.0, -2.5, -3.0], 2), "mc", "here")
    assert [type(e.request) for e in made.exchanges] == [LogLikelihood]
    assert made.scored[0].log_likelihoods == (-1.0, -2.5, -3.0)
    assert made.sample.target == 2
    rolling = {**line(0, "", "abc"), "arguments": [["abc"]], "resps": [[-7.5]]}
    made = answer_of(rolling, "r", "here")
    assert made.exchanges[0].request == Rolling("abc")
    assert made.scored[0].log_likelihoods == (-7.5,)
    repeats = {**line(0, "", "x"), "resps": [["a", "b", "x"]]}
    assert [g.text for g in answer_of(repeats, "t", "here").generated] == ["a", "b", "x"]


def test_broken_files(tmp_path: Path) -> None:
    """A line that is no sample is named by file and line; an empty file is refused."""
    path = written(tmp_path, "t", [line(0, "a", "b"), {"doc_id": 1}])
    with pytest.raises(DataFileError, match=r"line 2.*resps"):
        rescore_harness(path)
    path.write_text("")
    with pytest.raises(DataFileError, match="no samples"):
        rescore_harness(path)
