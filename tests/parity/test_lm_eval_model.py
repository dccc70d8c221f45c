"""One small model in float32, by the harness's hf backend and by ours: replies, scores, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness_runs import (
    LIKELIHOODS,
    NAMES,
    TASKS,
    assert_same_requests,
    by_harness,
    config_of,
    harness_rows,
    inside,
    replayed,
    samples_by_doc,
)

from xpe.compare import Options, comparable, compare, find_run
from xpe.export import export
from xpe.launch import run
from xpe.models.smollm2 import converted, gguf

pytestmark = [pytest.mark.parity, pytest.mark.model, pytest.mark.filterwarnings("ignore")]

LAYERS = 6
MARGIN = 2e-3
ITERS = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def weights(folder: Path) -> Path:
    """The first layers of the embedded model, which take a fifth of the time of all thirty."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    whole = str(converted(gguf()))
    model = AutoModelForCausalLM.from_pretrained(whole, num_hidden_layers=LAYERS, dtype="float32")
    model.save_pretrained(str(folder / "weights"))
    AutoTokenizer.from_pretrained(whole).save_pretrained(str(folder / "weights"))
    return folder / "weights"


@pytest.fixture(scope="module")
def theirs(folder: Path, weights: Path) -> dict[str, Any]:
    """The harness's run of all tasks, its files written beside."""
    from lm_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=str(folder / "theirs"))
    found = by_harness(NAMES, weights, iters=ITERS, evaluation_tracker=tracker)
    plain = {key: value for key, value in found.items() if key != "samples"}
    tracker.save_results_aggregated(plain, found["samples"])
    for task, samples in found["samples"].items():
        tracker.save_results_samples(task, [dict(sample) for sample in samples])
    return found


@pytest.fixture(scope="module")
def ours(folder: Path, weights: Path) -> Any:
    """Our run of the tasks that ask for log likelihoods."""
    words = ("model=hf", f"model.path={weights}", "model.dtype=float32", "model.device=cpu")
    with pytest.MonkeyPatch.context() as patched, inside(TASKS):
        patched.setenv("XPE_RUNS", str(folder / "runs"))
        config = config_of(
            LIKELIHOODS,
            "compat=lm_eval",
            f"output={folder / 'ours'}",
            *words,
            f"stats.bootstrap_iters={ITERS}",
        )
        return run(config), config


def test_replayed(theirs: dict[str, Any]) -> None:
    """Requests are equal; from the harness's responses every number is, within 1e-9."""
    assert_same_requests(NAMES, theirs, str)
    tasks, _ = replayed(NAMES, theirs, "compat=lm_eval", f"stats.bootstrap_iters={ITERS}")
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
