"""One job end to end, with a model that counts what it is asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TASKS = "task=[capitals_en,arithmetic_zh]"


@dataclass
class Runner:
    """Runs xpe in a folder of its own, with the toy model."""

    home: Path
    seconds: float = 0.0

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    @property
    def log(self) -> Path:
        return self.home / "asked.log"

    def start(self, *words: str, model: str = "toy") -> subprocess.Popen[str]:
        configs = self.home / "configs" / "model"
        configs.mkdir(parents=True, exist_ok=True)
        (configs / "toy.yaml").write_text("kind: toy\n")
        env = os.environ | {
            "XPE_RUNS": str(self.runs),
            "XPE_CONFIG_PATH": str(self.home / "configs"),
            "TOY_LOG": str(self.log),
            "TOY_SECONDS": str(self.seconds),
        }
        line = [sys.executable, "-W", "ignore", str(HERE / "toy_run.py"), f"model={model}"]
        return subprocess.Popen(
            [*line, "tracking=none", "stats.bootstrap_iters=0", *words],
            env=env, cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *words: str) -> tuple[int, str, str]:
        job = self.start(*words)
        out, err = job.communicate(timeout=120)
        return job.returncode, out, err

    def batches(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def folders(self) -> list[Path]:
        found = [f for f in self.runs.iterdir() if f.is_dir() and not f.name.startswith(".")]
        return sorted(found, key=lambda folder: folder.name)

    def results(self) -> dict:
        (folder,) = self.folders()
        return json.loads((folder / "results.json").read_text())


@pytest.fixture
def xpe(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_run_leaves_all_its_files(xpe: Runner) -> None:
    """A complete run has results, samples, config, overrides, log, live metrics and a plot."""
    code, out, err = xpe.run(TASKS, "limit=20")
    (folder,) = xpe.folders()
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    lines = [
        json.loads(x)
        for x in (folder / "samples" / "capitals_en.jsonl").read_text("utf-8").splitlines()
    ]
    found = xpe.results()

    assert code == 0, err
    assert names == {
        "results.json", "samples/capitals_en.jsonl", "samples/arithmetic_zh.jsonl",
        "realtime_metrics.json", "evaluation.log", "config.yaml", "overrides.yaml", "forest.png",
    }  # fmt: skip
    assert [line["doc_id"] for line in lines] == list(range(20))
    assert str(folder) in out
    assert found["results"]["capitals_en"]["acc"]["n"] == 20
    assert found["n-samples"]["capitals_en"] == {"original": 165, "effective": 20}
    assert found["config"]["fewshot_seed"] == 1234
    assert (
        json.loads((folder / "realtime_metrics.json").read_text())["tasks"]["capitals_en"][
            "answered"
        ]
        == 20
    )


def test_every_number_can_be_recomputed_from_the_samples(xpe: Runner) -> None:
    """Accuracy by hand from the log likelihoods in the sample file equals the result."""
    xpe.run("task=capitals_en")
    (folder,) = xpe.folders()
    right = []
    for text in (folder / "samples" / "capitals_en.jsonl").read_text("utf-8").splitlines():
        line = json.loads(text)
        scores = line["replies"][0]["log_likelihoods"]
        right.append(scores.index(max(scores)) == line["target"])

    assert xpe.results()["results"]["capitals_en"]["acc"]["value"] == sum(right) / len(right)


def test_a_finished_run_is_shown_and_asks_nothing(xpe: Runner) -> None:
    """The same command again shows the same table, makes no folder and asks nothing."""
    xpe.run("task=capitals_en", "limit=15")
    asked = xpe.batches()
    code, out, _ = xpe.run("task=capitals_en", "limit=15")

    assert code == 0
    assert "already finished" in out
    assert "capitals_en" in out
    assert xpe.batches() == asked
    assert len(xpe.folders()) == 1


def test_rerun_repeats_in_a_folder_of_its_own(xpe: Runner) -> None:
    """`rerun=true` asks everything again and keeps the earlier run."""
    xpe.run("task=capitals_en", "limit=15")
    asked = len(xpe.batches())
    code, _, _ = xpe.run("task=capitals_en", "limit=15", "rerun=true")

    assert code == 0
    assert len(xpe.batches()) == 2 * asked
    assert len(xpe.folders()) == 2


def test_kill_and_resume_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """Killed three times, the run goes on in its folder and ends with the same result bytes."""
    calm = Runner(tmp_path / "calm")
    calm.home.mkdir()
    assert calm.run(TASKS)[0] == 0
    xpe = Runner(tmp_path / "killed", seconds=0.05)
    xpe.home.mkdir()
    for wanted in (3, 15, 30):
        job = xpe.start(TASKS)
        deadline = time.monotonic() + 60
        while len(xpe.batches()) < wanted and time.monotonic() < deadline:
            time.sleep(0.01)
        job.send_signal(signal.SIGKILL)
        job.communicate()
    code, _, err = xpe.run(TASKS)
    # A batch is logged before it is answered, so one under way at a kill may stand twice.
    batches = xpe.batches()

    assert code == 0, err
    assert len(batches) - len(set(batches)) <= 3
    assert set(batches) == set(calm.batches())
    assert json.dumps(xpe.results()["results"]) == json.dumps(calm.results()["results"])
    for task in ("capitals_en", "arithmetic_zh"):
        ours, theirs = (r.folders()[0] / "samples" / f"{task}.jsonl" for r in (xpe, calm))
        assert ours.read_bytes() == theirs.read_bytes()
    assert not list(xpe.runs.rglob("*.sqlite*"))


def test_kept_checkpoint(xpe: Runner) -> None:
    """`store.keep=true` leaves the checkpoint, and the run counts as finished all the same."""
    xpe.run("task=capitals_en", "limit=5", "store.keep=true")
    asked = xpe.batches()
    _, out, _ = xpe.run("task=capitals_en", "limit=5", "store.keep=true")

    assert (xpe.folders()[0] / "evaluation_checkpoint.sqlite").exists()
    assert "already finished" in out
    assert xpe.batches() == asked


def test_cache_serves_another_run(xpe: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `store=cache` a run of other statistics asks the model nothing."""
    monkeypatch.setenv("XPE_CACHE_DIR", str(xpe.home / "cache"))
    xpe.run("task=capitals_en", "limit=15", "store=cache")
    asked = xpe.batches()
    code, _, _ = xpe.run("task=capitals_en", "limit=15", "store=cache", "stats.level=0.9")

    assert code == 0
    assert xpe.batches() == asked


def test_failures_make_the_run_partial(xpe: Runner) -> None:
    """Failed samples are counted, the exit code is 3, and `max_failed` allows some."""
    code, out, _ = xpe.run("task=capitals_en", "limit=15", "model.fails=[3,4]")
    found = xpe.results()["results"]["capitals_en"]["acc"]
    allowed, _, _ = xpe.run("task=capitals_en", "limit=15", "model.fails=[3,4]", "max_failed=2")

    assert code == 3
    assert (found["count"], found["n"], found["n_failed"], found["partial"]) == (13, 15, 2, True)
    assert "partial" in out
    assert allowed == 0


def test_dead_engine_is_code_1_and_resumes(xpe: Runner) -> None:
    """An engine that dies in mid-run is one message and code 1; nothing stored is lost."""
    xpe.run("task=capitals_en", "limit=28", "model.dies_at=20")
    code, _, err = xpe.run("task=capitals_en", "limit=28", "model.dies_at=20")
    before = len(xpe.batches())

    assert code == 1
    assert "the toy engine died" in err
    assert "Traceback" not in err
    # Two batches were stored by the first run; the second asked only the one that dies.
    assert before == 4


def test_resume_refuses_other_weights(xpe: Runner) -> None:
    """An unfinished run goes on only with the model that it was begun with."""
    xpe.run("task=capitals_en", "limit=28", "model.dies_at=20")
    folder = xpe.folders()[0]
    from xpe.store import Store

    with Store(folder / "evaluation_checkpoint.sqlite") as store:
        store["model's identity"] = {"backend": "toy", "weights": "older"}
    code, _, err = xpe.run("task=capitals_en", "limit=28", "model.dies_at=20")

    assert code == 2
    assert "weights: 'older' (now 'w0')" in err
    assert "fresh=true" in err


def test_predict_only_writes_and_scores_nothing(xpe: Runner) -> None:
    """`predict_only=true` leaves the model's outputs and no metric."""
    code, _, err = xpe.run("task=arithmetic_zh", "limit=4", "predict_only=true")
    (folder,) = xpe.folders()
    lines = [
        json.loads(x)
        for x in (folder / "samples" / "arithmetic_zh.jsonl").read_text("utf-8").splitlines()
    ]

    assert code == 0, err
    assert xpe.results()["results"] == {"arithmetic_zh": {}}
    assert [line["replies"][0]["text"] for line in lines] == [f"答案是{i}" for i in range(4)]


def test_samples_without_texts(xpe: Runner) -> None:
    """`log_samples=false` keeps hashes and numbers and drops every text."""
    xpe.run("task=arithmetic_zh", "limit=4", "log_samples=false")
    text = (xpe.folders()[0] / "samples" / "arithmetic_zh.jsonl").read_text()
    line = json.loads(text.splitlines()[0])

    assert "答案" not in text
    assert {"doc_hash", "prompt_hash", "target_hash", "measured"} <= line.keys()


def test_output_names_the_folder(xpe: Runner) -> None:
    """`output=` is the run folder; other results in it are not overwritten."""
    code, _, _ = xpe.run("task=capitals_en", "limit=5", "output=mine")
    other, _, err = xpe.run("task=capitals_en", "limit=6", "output=mine")

    assert code == 0
    assert (xpe.home / "mine" / "results.json").exists()
    assert other == 2
    assert "another run" in err


def test_unwritable_output_is_found_before_the_model(xpe: Runner) -> None:
    """An output folder that cannot be made is code 2, and nobody was asked."""
    (xpe.home / "file").write_text("")
    code, _, err = xpe.run("task=capitals_en", "output=file/below")

    assert code == 2
    assert "cannot be written" in err
    assert xpe.batches() == []


def test_equal_runs_are_kept_apart(xpe: Runner) -> None:
    """A second equal run while the first is under way is refused."""
    xpe.seconds = 0.2
    first = xpe.start("task=capitals_en")
    while not xpe.batches():
        time.sleep(0.02)
    code, _, err = xpe.run("task=capitals_en")
    first.kill()
    first.communicate()

    assert code == 2
    assert "under way" in err


@pytest.mark.parametrize(
    ("number", "said", "most"),
    [(signal.SIGINT, "stopping", 24), (signal.SIGTERM, "interrupted", 25)],
)
def test_interrupt_keeps_what_is_done(xpe: Runner, number: int, said: str, most: int) -> None:
    """Code 130; Ctrl-C ends the batch under way, SIGTERM at once; no stored batch is repeated."""
    xpe.seconds = 0.1
    job = xpe.start("task=capitals_en")
    while len(xpe.batches()) < 4:
        time.sleep(0.02)
    job.send_signal(number)
    _, err = job.communicate(timeout=60)
    xpe.seconds = 0
    code, _, _ = xpe.run("task=capitals_en")

    assert job.returncode == 130
    assert said in err
    assert "interrupted" in err
    assert code == 0
    assert 24 <= len(xpe.batches()) <= most


def test_a_second_interrupt_does_not_wait(xpe: Runner) -> None:
    """Ctrl-C twice ends a run in the middle of a batch."""
    xpe.seconds = 300
    job = xpe.start("task=capitals_en")
    while not xpe.batches():
        time.sleep(0.02)
    while job.poll() is None:
        job.send_signal(signal.SIGINT)
        time.sleep(0.5)
    _, err = job.communicate(timeout=60)

    assert job.returncode == 130
    assert "stopping" in err
    assert "interrupted" in err


def test_damaged_checkpoint_warns_and_goes_on(xpe: Runner) -> None:
    """A checkpoint whose file was damaged is set aside with a warning; the run completes."""
    xpe.run("task=capitals_en", "limit=28", "model.dies_at=20")
    checkpoint = xpe.folders()[0] / "evaluation_checkpoint.sqlite"
    checkpoint.write_bytes(checkpoint.read_bytes()[:100] + b"\0" * 5000)
    code, _, err = xpe.run("task=capitals_en", "limit=28", "model.dies_at=20")

    assert "Traceback" not in err
    assert code == 1
    assert "was damaged" in err


def test_rescore_gives_the_same_bytes(xpe: Runner) -> None:
    """Every score computed again from the files alone is the same, to the byte."""
    xpe.run(TASKS)
    (folder,) = xpe.folders()
    job = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "toy_run.py"), "rescore", str(folder)],
        capture_output=True, text=True, check=False, cwd=xpe.home,
        env=os.environ | {"TOY_LOG": str(xpe.log)},
    )  # fmt: skip
    again = json.loads((folder / "rescored.json").read_text())

    assert job.returncode == 0, job.stderr
    assert "equal to results.json" in job.stdout
    assert json.dumps(again["results"]) == json.dumps(xpe.results()["results"])
