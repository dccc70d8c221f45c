"""Shards of a run: asked one after another and merged, they are the run over all documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness_runs import NAMES, TASKS, inside
from pydantic.dataclasses import dataclass
from toy_run import Toy

from xpe.cli import main
from xpe.compare import Finished, find_run
from xpe.config import compose
from xpe.errors import ConfigError, DataError, OutputError
from xpe.export import export
from xpe.launch import run
from xpe.merge import merge
from xpe.registry import MODELS, STRICT
from xpe.seeds import derive
from xpe.tasks.selection import chosen, sharded
from xpe.types import Asked, Generate, Generated, Reply

OF_A_RUN = ("started", "duration_s", "environment", "git_hash", "shards")
"""What tells one run from another that is equal."""
SAID = ("A", "B", "12", "答案是 C", "Paris", "#### 7", "")
HARNESS = (
    "task=lm_eval",
    f"task.lm_eval.names=[{','.join(NAMES)}]",
    f"task.lm_eval.include_path={TASKS}",
    "task.lm_eval.include_defaults=false",
    "trust_task_code=true",
    "num_fewshot=2",
)
SETTINGS = ("model=steady", "tracking=none", "stats.bootstrap_iters=300")
OURS = (
    "task=[capitals,tcm_choice_gen,perplexity_zh,tool_call]",
    "num_fewshot=1",
    "limit=11",
)


@dataclass(frozen=True, config=STRICT)
class Steady(Toy):
    """Replies by the request alone, whatever else is in the batch."""

    def run(self, batch: tuple[Asked, ...]) -> tuple[Reply, ...]:
        return tuple(self._one(one, "") for one in batch)

    def _one(self, one: Asked, seed: str) -> Reply:
        if isinstance(one.request, Generate) and one.origin.doc_id not in self.fails:
            return Generated(SAID[derive(0, str(one.request.prompt)) % len(SAID)], tokens=3)
        return super()._one(one, seed)


if "steady" not in MODELS:
    MODELS.register("steady", Steady)


def ran(folder: Path, *words: str) -> Finished:
    """Run what is typed to a folder."""
    with inside(TASKS):
        run(compose([*SETTINGS, *words, f"output={folder}"]))
    return find_run(str(folder))


def split(folder: Path, count: int, *words: str) -> list[Finished]:
    """Run all shards, the last first."""
    return [
        ran(folder / f"{count}_{number}", *words, f"shard={number}/{count}")
        for number in range(count, 0, -1)
    ]


def told(folder: Path) -> tuple[str, dict[str, str], Any]:
    """Return the bytes of a result, of its samples by task, and the config, without its place."""
    found = json.loads((folder / "results.json").read_text("utf-8"))
    result = json.dumps({key: found[key] for key in found if key not in OF_A_RUN})
    samples = {path.name: path.read_text("utf-8") for path in (folder / "samples").iterdir()}
    config = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    return result, samples, config | {"output": None}


@pytest.fixture(autouse=True)
def _offline_and_without_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "model" / "steady.yaml").write_text("kind: steady\n")
    monkeypatch.setenv("XPE_CONFIG_PATH", str(tmp_path / "conf"))
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    # A plot takes longer than all else that these runs do.
    monkeypatch.setattr("xpe.launch.forest", lambda *_: None)


@pytest.mark.parametrize(
    "words",
    [(*HARNESS, "compat=lm_eval"), HARNESS, OURS],
    ids=["compat=lm_eval", "tasks of the harness", "tasks of ours"],
)
def test_merged_is_whole(words: tuple[str, ...], tmp_path: Path) -> None:
    """1, 2 and 4 shards give the samples, numbers and config of the unsharded run, byte for byte:
    drawn few-shot examples, bootstrapped errors and group rows included.
    """
    expected = told(ran(tmp_path / "whole", *words).folder)
    for count in (1, 2, 4):
        folder, _ = merge(split(tmp_path, count, *words), tmp_path / f"of {count}")
        for part, wanted in zip(told(folder), expected, strict=True):
            assert part == wanted, count


def test_shards_split_the_documents() -> None:
    """Each document is in one shard, by its id alone; a shard may have none."""
    ids = chosen(10, None, [1, 2, 5, 7, 8])
    assert [sharded(ids, f"{n}/3") for n in (1, 2, 3)] == [[], [1, 7], [2, 5, 8]]
    assert sharded(range(4), None) == range(4)


def test_shards_without_documents(tmp_path: Path) -> None:
    """More shards than documents: some ask nothing, and the merged run is whole all the same."""
    words = ("task=[capitals_en,tool_call]", "limit=2", "num_fewshot=0")
    expected = told(ran(tmp_path / "whole", *words).folder)
    folder, _ = merge(split(tmp_path, 3, *words), tmp_path / "merged")
    assert told(folder) == expected


def test_failed_samples_stay_failed(tmp_path: Path) -> None:
    """What failed in a shard is counted in the merged run, which is partial (exit code 3)."""
    words = ("task=capitals_en", "limit=8", "model.fails=[5]")
    runs = split(tmp_path, 2, *words)
    told_words = [str(one.folder) for one in runs]
    assert main(["merge", *told_words, f"output={tmp_path / 'merged'}"]) == 3
    estimate = find_run(str(tmp_path / "merged")).results["results"]["capitals_en"]["acc"]
    assert (estimate["n"], estimate["n_failed"]) == (8, 1)


def test_merged_run_is_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It lies beside other runs, the unsharded command finds it finished, and it is exported."""
    monkeypatch.setenv("XPE_RUNS", str(tmp_path / "runs"))
    words = ("task=capitals_en", "limit=6")
    runs = split(tmp_path, 2, *words)
    assert main(["merge", *(str(one.folder) for one in runs)]) == 0
    (folder,) = (tmp_path / "runs").glob("*_*")
    assert find_run(str(folder)).results["shards"] == ["2_1", "2_2"]
    capsys.readouterr()
    assert run(compose([*SETTINGS, *words]))
    assert "already finished" in capsys.readouterr().out
    assert export(find_run(str(folder)), tmp_path / "exported")


@pytest.mark.parametrize("shard", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "1/4/2"])
def test_what_is_no_shard(shard: str) -> None:
    """A shard is a number of a count, from 1."""
    with pytest.raises(ConfigError, match="expected NUMBER/COUNT"):
        compose(["task=capitals_en", "tracking=none", f"shard='{shard}'"])


def test_shard_of_one_task() -> None:
    """All tasks of a run are split alike, else they could not be merged."""
    with pytest.raises(ConfigError, match=r"task\.capitals_en: runs shard 1/2"):
        compose(["task=capitals_en", "tracking=none", "+task.capitals_en.shard=1/2"])


class TestRefused:
    """What cannot be merged is refused with the reason, and nothing is written."""

    WORDS = ("task=capitals_en", "limit=6")

    @pytest.fixture
    def halves(self, tmp_path: Path) -> list[Finished]:
        return split(tmp_path, 2, *self.WORDS)

    def test_missing(self, halves: list[Finished]) -> None:
        """A shard is missing, or named twice."""
        with pytest.raises(ConfigError, match="shards are missing: 2/2"):
            merge([halves[1]])
        with pytest.raises(ConfigError, match="shard 1/2 is there more than once"):
            merge([halves[1], *halves])

    def test_other_split(self, halves: list[Finished], tmp_path: Path) -> None:
        """Shards of another count, and a run that is none."""
        with pytest.raises(ConfigError, match="shards of one split"):
            merge([halves[0], ran(tmp_path / "other", *self.WORDS, "shard=1/3")])
        with pytest.raises(ConfigError, match="is no shard but a run of its own"):
            merge([halves[0], ran(tmp_path / "whole", *self.WORDS)])

    def test_other_config(self, halves: list[Finished], tmp_path: Path) -> None:
        """Settings that decide results differ: the first is named, with both values."""
        other = ran(tmp_path / "other", *self.WORDS, "shard=1/2", "seed.fewshot=7")
        with pytest.raises(ConfigError, match="fewshot_seed is 7 and 1234"):
            merge([halves[0], other])

    def test_other_model(self, halves: list[Finished]) -> None:
        """Models of one config may still have other weights."""
        self._edited(halves[0], "models", {"model": {"backend": "toy", "weights": "w1"}})
        with pytest.raises(DataError, match=r"had other models: model\.weights is 'w0' and 'w1'"):
            merge([Finished(one.folder) for one in halves])

    def test_other_data(self, halves: list[Finished]) -> None:
        """The data changed between two shards."""
        self._edited(halves[0], "data", {"capitals_en": ["there", "digest"]})
        with pytest.raises(DataError, match="had other data: capitals_en"):
            merge([Finished(one.folder) for one in halves])

    def test_lost_and_foreign_documents(self, halves: list[Finished], tmp_path: Path) -> None:
        """A line is lost, there twice, or of another shard; no half-made folder stays."""
        file = halves[0].folder / "samples" / "capitals_en.jsonl"
        lines = file.read_text("utf-8").splitlines(keepends=True)
        file.write_text("".join(lines[:-1]), "utf-8")
        with pytest.raises(DataError, match="2 samples, but the run answered 3"):
            merge(halves, tmp_path / "merged")
        file.write_text("".join([*lines[:-1], lines[0]]), "utf-8")
        with pytest.raises(DataError, match=r"line 3: document . is there twice"):
            merge(halves, tmp_path / "merged")
        foreign = json.loads(lines[0])
        foreign["doc_id"] += 1
        file.write_text("".join([json.dumps(foreign) + "\n", *lines[1:]]), "utf-8")
        with pytest.raises(DataError, match=r"line 1: document . belongs to shard"):
            merge(halves, tmp_path / "merged")
        file.write_text("{}\n", "utf-8")
        with pytest.raises(DataError, match="line 1: expected an object with a number as doc_id"):
            merge(halves, tmp_path / "merged")
        file.write_bytes("".join(lines).encode("gbk") + b"\xff")
        with pytest.raises(DataError, match="is not UTF-8"):
            merge(halves, tmp_path / "merged")
        assert not list(tmp_path.glob("merged*"))

    def test_without_texts(self, tmp_path: Path) -> None:
        """Samples that were not logged cannot be scored again."""
        runs = split(tmp_path, 1, *self.WORDS, "log_samples=false")
        with pytest.raises(DataError, match="log_samples=false"):
            merge(runs, tmp_path / "merged")

    def test_folder_in_use(self, halves: list[Finished]) -> None:
        """A folder that holds something is not written over."""
        with pytest.raises(OutputError, match="holds something already"):
            merge(halves, halves[0].folder)

    def test_words(self, halves: list[Finished], capsys: pytest.CaptureFixture[str]) -> None:
        """Unknown settings and no run at all are wrong usage: exit code 2."""
        assert main(["merge"]) == 2
        assert main(["merge", str(halves[0].folder), "limit=3"]) == 2
        assert "expected: xpe merge RUN RUN … [output=FOLDER]" in capsys.readouterr().err

    @staticmethod
    def _edited(one: Finished, key: str, value: Any) -> None:
        path = one.folder / "results.json"
        found = json.loads(path.read_text("utf-8"))
        path.write_text(json.dumps(found | {key: value}), "utf-8")
