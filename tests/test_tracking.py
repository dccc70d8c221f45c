"""MLflow: what is logged, under which names, and what a resumed run does."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from xpe.tracking import (
    PARENT,
    MlflowTracker,
    flatten,
    metric_name,
    metric_values,
    samples_to_parquet,
)

DOCUMENT = {
    "results": {
        "toy": {
            "pass@1": {
                "value": 0.5, "stderr": 0.1, "ci": [0.3, 0.7], "n": 10, "n_failed": 1,
            },
            "acc,strict": {"value": None, "stderr": None, "ci": None, "n": 10, "n_failed": 0},
        }
    },
    "groups": {},
    "data": {"toy": ["toy.jsonl", "ab" * 32]},
}  # fmt: skip
LINE = {
    "doc_id": 3, "doc": {"q": "肝"}, "target": "1", "requests": [], "replies": [],
    "measured": {"exact": {"exact": 1.0, "extracted": "B"}},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "run"
    (home / "samples").mkdir(parents=True)
    (home / "samples" / "toy.jsonl").write_text(json.dumps(LINE) + "\n", "utf-8")
    (home / "results.json").write_text(json.dumps(DOCUMENT))
    return home


@pytest.mark.parametrize(
    ("name", "mapped"),
    [
        ("pass@1", "pass_at_1"),
        ("pass^2", "pass_hat_2"),
        ("acc,none", "acc_none"),
        ("toy/准确率", "toy/准确率"),
        ("a(b)%", "a_b__"),
    ],
)
def test_names_are_mapped_to_what_mlflow_takes(name: str, mapped: str) -> None:
    """Characters that MLflow rejects are replaced; Chinese stays."""
    assert metric_name(name) == mapped


def test_metric_values_carry_their_errors() -> None:
    """Each metric brings stderr, interval, n and failures; undefined ones are left out."""
    values = dict(metric_values(DOCUMENT))

    assert values["toy/pass_at_1"] == 0.5
    assert values["toy/pass_at_1_ci_high"] == 0.7
    assert values["toy/pass_at_1_n_failed"] == 1
    assert "toy/acc-strict" not in values
    assert values["toy/acc-strict_n"] == 10
    assert all(math.isfinite(value) for value in values.values())


def test_params_are_flat_and_whole() -> None:
    """Nested settings get dotted keys; lists and null stay as JSON."""
    flat = flatten({"model": {"kind": "hf", "stop": ["a", "b"], "none": None}, "n": {}})

    assert flat == {
        "model.kind": "hf", "model.stop": '["a", "b"]', "model.none": "null", "n": "{}",
    }  # fmt: skip


def test_samples_become_a_table(folder: Path) -> None:
    """A sample file becomes Parquet with a column for each number that was measured."""
    samples_to_parquet(folder / "samples" / "toy.jsonl", folder / "toy.parquet")
    (row,) = pq.read_table(folder / "toy.parquet").to_pylist()

    assert row["doc_id"] == 3
    assert row["exact.exact"] == 1.0
    assert json.loads(row["doc"]) == {"q": "肝"}


@pytest.mark.filterwarnings("ignore")
def test_a_run_is_logged_whole_and_reopened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters, metrics, data set, artifacts and parent are there; a resume adds no run."""
    from mlflow import MlflowClient

    tracker = MlflowTracker()
    monkeypatch.setenv(PARENT, "f" * 32)
    run_id = tracker.begin("cell", {"model": {"kind": "hf"}, "x": "y" * 7000}, {"t": "v"})
    tracker.fail(run_id, killed=True)
    again = tracker.begin("cell", {"model": {"kind": "hf"}}, {}, run_id)
    tracker.finish(run_id, DOCUMENT, folder)
    client = MlflowClient(tracker.store_uri)
    run = client.get_run(run_id)

    assert again == run_id
    assert run.info.status == "FINISHED"
    assert run.data.params == {"model.kind": "hf"}
    assert run.data.tags["mlflow.parentRunId"] == "f" * 32
    assert run.data.metrics["toy/pass_at_1_stderr"] == 0.1
    assert run.inputs.dataset_inputs[0].dataset.name == "toy"
    names = {file.path for file in client.list_artifacts(run_id)}
    assert names == {"long_params.json", "results.json", "samples"}
    assert [f.path for f in client.list_artifacts(run_id, "samples")] == ["samples/toy.parquet"]


@pytest.mark.parametrize(
    ("jobs", "failed", "status"), [(1, False, "FINISHED"), (1, True, "FAILED"), (0, False, None)]
)
def test_the_parent_of_a_sweep_says_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, failed: bool, status: str | None
) -> None:
    """One failed job is a failed sweep; one whose jobs were all there before leaves no run."""
    tracker = MlflowTracker(uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    sweep = tracker.begin("sweep", {}, {"xpe.sweep": "true"})
    monkeypatch.setenv(PARENT, sweep)
    for number in range(jobs):
        tracker.begin(f"job {number}", {}, {})

    tracker.close(sweep, failed=failed)

    client = tracker._client()
    experiment = client.get_experiment_by_name(tracker.experiment).experiment_id
    left = client.search_runs([experiment], "tags.`xpe.sweep` = 'true'")
    assert [run.info.status for run in left] == ([status] if status else [])


def test_cold_store_takes_several_processes(tmp_path: Path) -> None:
    """Three processes that open a store that is not there yet all get their run."""
    code = "from xpe.tracking import MlflowTracker; print(MlflowTracker().begin('x', {}, {}))"
    jobs = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    ids = {job.communicate(timeout=120)[0] for job in jobs}

    assert [job.returncode for job in jobs] == [0, 0, 0]
    assert len(ids) == 3
