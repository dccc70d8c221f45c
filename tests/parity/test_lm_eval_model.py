"""One small model in float32, by the harness's hf backend and by ours: replies, scores, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness_runs import (
    TASKS,
    arguments_of,
    by_harness,
    config_of,
    harness_rows,
    inside,
    replayed,
    samples_by_doc,
    their_arguments,
)

from xpe.compare import Options, comparable, compare, find_run
from xpe.export import export
from xpe.launch import run
from xpe.models.smollm2 import converted, gguf

pytestmark = [pytest.mark.parity, pytest.mark.model, pytest.mark.filterwarnings("ignore")]

LIKELIHOODS = ("parity_all", "parity_mc_binary", "parity_mc_inputs", "parity_ll", "parity_rolling")
TEXTS = ("parity_gen_filters", "parity_gen_letters", "parity_gen_targets", "parity_gen_repeats",
         "parity_gen_corpus", "parity_gen_code", "parity_gen_own_metric")  # fmt: skip
MARGIN = 2e-3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def theirs(folder: Path) -> dict[str, Any]:
    """The harness's run of all tasks, its files written beside."""
    pytest.importorskip("lm_eval")
    from lm_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=str(folder / "theirs"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HF_DATASETS_OFFLINE", "1")
        found = by_harness((*LIKELIHOODS, *TEXTS), converted(gguf()), evaluation_tracker=tracker)
    plain = {key: value for key, value in found.items() if key != "samples"}
    tracker.save_results_aggregated(plain, found["samples"])
    for task, samples in found["samples"].items():
        tracker.save_results_samples(task, [dict(sample) for sample in samples])
    return found


@pytest.fixture(scope="module")
def ours(folder: Path) -> Any:
    """Our run of the tasks that ask for log likelihoods."""
    with pytest.MonkeyPatch.context() as patched, inside(TASKS):
        patched.setenv("HF_DATASETS_OFFLINE", "1")
        patched.setenv("XPE_RUNS", str(folder / "runs"))
        config = config_of(LIKELIHOODS, "compat=lm_eval", f"output={folder / 'ours'}")
        return run(config), config


def test_replayed(theirs: dict[str, Any]) -> None:
    """Requests are equal; from the harness's responses every number is, within 1e-9."""
    with inside(TASKS):
        config = config_of((*LIKELIHOODS, *TEXTS), "compat=lm_eval")
        for task in config.leaves:
            samples = samples_by_doc(theirs, task.name)
            for sample in task.samples():
                asked = arguments_of(task, sample, str)
                assert asked == their_arguments(samples[sample.doc_id]), task.name
        tasks, _ = replayed(config, theirs)
    for name, result in tasks.items():
        for key, value in harness_rows(result.estimates).items():
            expected = theirs["results"][name][key]
            if isinstance(value, str):
                assert value == expected, (name, key)
            else:
                assert value == pytest.approx(expected, rel=1e-9, abs=1e-9), (name, key)


def test_log_likelihoods_and_decisions(theirs: dict[str, Any], ours: Any, folder: Path) -> None:
    """Our log likelihoods are within 1e-3 of theirs, and decide alike where they are not close."""
    result, config = ours
    close = set()
    for task in config.leaves:
        samples = samples_by_doc(theirs, task.name)
        lines = (folder / "ours" / "samples" / f"{task.name}.jsonl").read_text("utf-8").splitlines()
        for line in map(json.loads, lines):
            mine = [v for reply in line["replies"] for v in reply["log_likelihoods"]]
            resps = [one[0] for one in samples[line["doc_id"]]["resps"]]
            theirs_too = [one[0] if isinstance(one, (list, tuple)) else one for one in resps]
            assert mine == pytest.approx(list(map(float, theirs_too)), abs=1e-3), task.name
            best = sorted(mine)[::-1]
            if len(best) > 1 and best[0] - best[1] < MARGIN:
                close.add(task.name)
    for name, found in result.tasks.items():
        for key, value in harness_rows(found.estimates).items():
            expected = theirs["results"][name][key]
            if name in close or isinstance(value, str) or "acc_norm" in key or "acc_bytes" in key:
                continue
            assert value == pytest.approx(expected, rel=1e-3, abs=1e-9), (name, key)


def test_exported_files(theirs: dict[str, Any], ours: Any, folder: Path) -> None:
    """The exported files have the harness's keys, and the hashes of samples are equal."""
    written = export(find_run(str(folder / "ours")), folder / "exported")
    (result_file,) = (folder / "theirs").glob("*/results_*.json")
    expected, found = (json.loads(path.read_text("utf-8")) for path in (result_file, written[0]))
    assert found.keys() == expected.keys()
    common = [name for name in found["results"] if not name.startswith("parity_gen")]
    assert len(common) >= 8
    for name in common:
        assert found["results"][name].keys() == expected["results"][name].keys(), name
    assert found["groups"].keys() == expected["groups"].keys()
    assert found["config"].keys() >= expected["config"].keys() - {
        "model_num_parameters", "model_dtype", "model_revision", "model_sha"
    }  # fmt: skip
    for task in found["task_hashes"]:
        (mine,) = [p for p in written if p.name.startswith(f"samples_{task}_")]
        (their_file,) = (folder / "theirs").glob(f"*/samples_{task}_2*.jsonl")
        pairs = zip(_lines(mine), _lines(their_file), strict=True)
        for line, wanted in pairs:
            assert line.keys() == wanted.keys(), task
            for key in ("doc_id", "doc_hash", "prompt_hash", "target_hash", "filter"):
                assert line[key] == wanted[key], (task, key)
            assert sorted(line["metrics"]) == sorted(wanted["metrics"]), task
            assert line["arguments"].keys() == wanted["arguments"].keys()
        assert found["task_hashes"][task] == expected["task_hashes"][task]


def test_compared_with_files_of_the_harness(
    theirs: dict[str, Any], ours: Any, folder: Path
) -> None:
    """A run is compared with the harness's own files, paired by document."""
    (place,) = {path.parent for path in (folder / "theirs").glob("*/samples_*.jsonl")}
    runs = [comparable(str(place)), comparable(str(folder / "ours"))]
    cells = {(c.task, c.metric): c for c in compare(runs, Options(iters=100))}
    cell = cells["parity_mc_letters", "acc"]
    assert cell.baseline_value == pytest.approx(theirs["results"]["parity_mc_letters"]["acc,none"])
    assert cell.difference.n == 7
    assert cell.difference.value == pytest.approx(0, abs=1e-9)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text("utf-8").splitlines()]
