"""Tasks in the harness's format: how files, names, groups and functions are read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from players import Exact, sample

from xpe.cli import main
from xpe.config import compose, dump, finish
from xpe.errors import ConfigError, DataFileError, UnknownNameError, XpeError
from xpe.stats.estimate import estimate_all
from xpe.stats.groups import group_estimates
from xpe.stats.settings import Stats
from xpe.tables import Ledger
from xpe.tasks.lm_eval.index import index_of
from xpe.tasks.lm_eval.reading import known_contents, merged, outline
from xpe.types import Answer, Mean, Metric, TaskResult

BASE = """\
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{data}", train: "{data}"}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "Q: {{{{ q }}}}"
doc_to_choice: choices
doc_to_target: gold
"""
CODE = """\
def shorter(dataset):
    shorter.calls += 1
    return dataset.select(range(2))


shorter.calls = 0


def asked(doc):
    return doc["q"] + "!"
"""
FILES = {
    "_base": BASE,
    "one.yaml": "include: _base\ntask: one\ntag: [few, all_of_them]\nnum_fewshot: 0\n",
    "two.yaml": "include: _base\ntask: two\ntag: few\nmetadata: {{version: 3}}\n",
    "three.yaml": (
        "include: _base\ntask: three\nprocess_docs: !function code.shorter\n"
        "doc_to_text: !function code.asked\n"
    ),
    "both.yaml": (
        "group: both\ngroup_alias: Both\ntask: [one, {{task: two, num_fewshot: 1}}]\n"
        "aggregate_metric_list: {{metric: acc, weight_by_size: false}}\n"
    ),
    "nested.yaml": (
        "group: nested\ntarget_delimiter: '|'\n"
        "task:\n- group: inner\n  task: [one]\n- few\n- task: mine\n  include_nothing: 1\n"
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of task files, and a cache of its own."""
    monkeypatch.setenv("XPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    found = tmp_path / "yamls"
    found.mkdir()
    docs = [{"q": f"q{i}", "choices": ["a", "b", f"c{i}"], "gold": i % 3} for i in range(5)]
    data = found / "data.jsonl"
    data.write_text("".join(json.dumps(doc) + "\n" for doc in docs), "utf-8")
    for name, text in FILES.items():
        (found / name).write_text(text.format(data=data), "utf-8")
    (found / "code.py").write_text(CODE, "utf-8")
    return found


def composed(folder: Path, names: str, *words: str) -> Any:
    return compose(
        [
            "task=lm_eval",
            f"task.lm_eval.names=[{names}]",
            f"task.lm_eval.include_path={folder}",
            "task.lm_eval.include_defaults=false",
            "tracking=none",
            *words,
        ]
    )


# --- files -----------------------------------------------------------------------------------


def test_includes(tmp_path: Path) -> None:
    """Later includes override earlier, own keys win, and a file may come by two ways."""
    texts = {
        "a": "x: a\ny: a\nz: a\ntask_list: [t]\n",
        "b": "include: a\ny: b\n",
        "c": "include: a\nx: c\n",
        "d": "include: [b, c]\nz: d\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert merged(tmp_path / "d", outline) == {"x": "c", "y": "a", "z": "d"}


def test_file_that_includes_itself(tmp_path: Path) -> None:
    """A cycle is an error that shows the way around."""
    (tmp_path / "a").write_text("include: b\n")
    (tmp_path / "b").write_text("include: a\n")
    with pytest.raises(ConfigError, match="a > b > a"):
        merged(tmp_path / "a", known_contents)


def test_broken_files(tmp_path: Path) -> None:
    """A missing file and one that is no YAML are named."""
    (tmp_path / "a").write_text("include: nowhere.yaml\n")
    (tmp_path / "b").write_text("x: [1\n")
    with pytest.raises(DataFileError, match=r"nowhere\.yaml"):
        merged(tmp_path / "a", outline)
    with pytest.raises(DataFileError, match="not YAML"):
        merged(tmp_path / "b", outline)


def test_index_is_kept_and_renewed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unchanged folders are not parsed again; a changed file is seen."""
    first = index_of([folder])
    assert {name: entry.kind for name, entry in first.entries.items()} == {
        "one": "task",
        "two": "task",
        "three": "task",
        "both": "group",
        "nested": "group",
        "few": "tag",
        "all_of_them": "tag",
    }
    assert first.entries["few"].members == ("one", "two")
    with monkeypatch.context() as patched:
        patched.setattr("xpe.tasks.lm_eval.index._parsed", None)
        assert index_of([folder]) == first
    (folder / "four.yaml").write_text("include: _base\ntask: four\n")
    assert "four" in index_of([folder]).entries


# --- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("one", ["one"]),
        ("one,two", ["one", "two"]),
        ("few", ["one", "two"]),
        ('"t*"', ["two"]),
        ("both", ["one", "two", "both"]),
        ("both,one", ["one", "two", "both"]),
    ],
)
def test_names(folder: Path, names: str, expected: list[str]) -> None:
    """Tasks, tags, globs and groups become tasks and groups of their own names."""
    (folder / "three.yaml").unlink()
    assert list(composed(folder, names).task) == expected


def test_one_task_in_two_ways(folder: Path) -> None:
    """A task cannot be asked for with and without the settings of a group at once."""
    with pytest.raises(ConfigError, match="different settings"):
        composed(folder, "both,two")


def test_path_of_a_file(folder: Path) -> None:
    """A YAML file may be named by its path, without include_path."""
    words = ["task=lm_eval", f"task.lm_eval.names=[{folder / 'two.yaml'}]", "tracking=none"]
    assert list(compose([*words, "task.lm_eval.include_defaults=false"]).task) == ["two"]


def test_unknown_name(folder: Path) -> None:
    """A misspelt name lists the nearest, not thousands."""
    with pytest.raises(UnknownNameError, match="'three'") as caught:
        composed(folder, "tree")
    assert len(str(caught.value)) < 400


def test_group(folder: Path) -> None:
    """A group keeps alias, members and aggregates; its members get its overrides."""
    config = composed(folder, "both")
    group = config.groups["both"]
    assert (group.display_name, group.tasks) == ("Both", ("one", "two"))
    assert group.aggregate_metric_list[0].weight_by_size is False
    assert [task.num_fewshot for task in config.leaves] == [0, 1]


GAP = """\
def gap(values, sizes, weight_by_size):
    assert sizes == [5, 5] and not weight_by_size
    return values[0] - values[1]


def broken(values, sizes, weight_by_size):
    return 1 / 0
"""


def test_function_that_aggregates(folder: Path) -> None:
    """A function of a group gets values and sizes of its tasks; the harness ignores it."""
    text = (
        (folder / "both.yaml").read_text().replace("{metric: acc", "{metric: acc, aggregation: !")
    )
    (folder / "both.yaml").write_text(text.replace("!", "!function gaps.gap"))
    (folder / "gaps.py").write_text(GAP, "utf-8")
    ones, halves = scored("one", [1.0] * 5), scored("two", [1.0, 0.0, 1.0, 0.0, 1.0])
    with pytest.raises(ConfigError, match=r"gap of .*trust_task_code=true"):
        composed(folder, "both")
    found = {}
    for compat in ("null", "lm_eval"):
        config = composed(folder, "both", f"compat={compat}", "trust_task_code=true")
        assert finish(json.loads(json.dumps(dump(config)))).fingerprint == config.fingerprint
        tasks, rows = {"one": ones[0], "two": halves[0]}, {"one": ones[1], "two": halves[1]}
        made = group_estimates(config.groups, tasks, rows, config.stats, compat=config.compat)
        found[compat] = made["both"]["acc"]
    assert found["null"].value == pytest.approx(1 - 3 / 5)
    assert (found["null"].stderr, found["null"].why) == (
        None,
        "a function of the tasks gives no error",
    )
    assert found["lm_eval"].value == pytest.approx((1 + 3 / 5) / 2)
    file = folder / "both.yaml"
    file.write_text(file.read_text().replace("gaps.gap", "gaps.broken"))
    config = composed(folder, "both", "trust_task_code=true")
    failed = group_estimates(config.groups, tasks, rows, config.stats)["both"]["acc"]
    assert (failed.value, "ZeroDivisionError" in str(failed.why)) == (None, True)


def scored(name: str, values: list[float]) -> tuple[TaskResult, Any]:
    """A task with these accuracies, and its rows."""
    ledger = Ledger(Exact(metrics=(Metric("acc", Mean("acc")),)))
    for doc_id, value in enumerate(values):
        ledger.add(Answer(sample(doc_id, name), ()), {"acc": value})
    rows = ledger.metrics()
    return TaskResult(name, estimate_all(rows, Stats()), len(values), len(values)), rows


def test_nested_groups(folder: Path) -> None:
    """Groups in place are named after the outer one; settings of a group reach its tasks."""
    with pytest.raises(UnknownNameError, match="include_nothing"):
        composed(folder, "nested")
    text = (folder / "nested.yaml").read_text()
    (folder / "nested.yaml").write_text(text[: text.index("- task: mine")])
    config = composed(folder, "nested")
    assert config.groups["nested"].tasks == ("nested::inner", "one", "two")
    assert config.groups["nested::inner"].tasks == ("one",)
    assert {task.target_delimiter for task in config.leaves} == {"|"}


def test_settings_of_one_task(folder: Path) -> None:
    """What is typed for a task that a tag brought wins; few-shot pinned at 0 stays 0."""
    words = "num_fewshot=3", "+task.two.description=Hm.", "+task.two.fewshot.sampler=first_n"
    config = composed(folder, "few", *words)
    assert [task.num_fewshot for task in config.leaves] == [0, 3]
    assert [task.description for task in config.leaves] == ["", "Hm."]
    assert [task.fewshot.sampler for task in config.leaves] == ["default", "first_n"]
    assert [task.fewshot.split for task in config.leaves] == ["test", "test"]


def test_overrides(folder: Path) -> None:
    """Keys of the format override those of every task."""
    config = composed(folder, "few", "task.lm_eval.overrides={target_delimiter: '->'}")
    assert {task.target_delimiter for task in config.leaves} == {"->"}


def test_unknown_keys(folder: Path) -> None:
    """A key that nothing reads is an error with the nearest right one and the file."""
    (folder / "two.yaml").write_text("include: _base\ntask: two\ndoc_to_txt: q\n")
    with pytest.raises(UnknownNameError, match=r"two\.yaml.*'doc_to_text'"):
        composed(folder, "two")
    (folder / "two.yaml").write_text("include: _base\ntask: two\nfewshot_config: {smpler: x}\n")
    with pytest.raises(UnknownNameError, match="'sampler'"):
        composed(folder, "two")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class: !function code.asked\nrecipe: card=x", "class: a Python class"),
        ("use_prompt: promptsource:x", "use_prompt: .* write doc_to_text"),
        ("fewshot_config: {sampler: !function code.asked}", "sampler of a task's own"),
        ("output_type: multiple_chioce", "'multiple_choice'"),
        ("metric_list: [{metric: acurracy}]", "metric 'acurracy'"),
        ("filter_list: [{name: a, filter: [{function: rgex}]}]", "'regex'"),
    ],
)
def test_refused(folder: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What xpe does not run is refused before data is read (exit code 2), with file and reason."""
    (folder / "two.yaml").write_text(f"include: _base\ntask: two\n{text}\n")
    words = ("task=lm_eval", "task.lm_eval.names=[two]", "task.lm_eval.include_defaults=false")
    code = main(["validate", *words, f"task.lm_eval.include_path={folder}", "trust_task_code=true"])
    assert code == 2
    assert re.search(message, capsys.readouterr().err)


def test_no_split(folder: Path) -> None:
    """A task without a split to evaluate is refused before data is read."""
    (folder / "two.yaml").write_text("include: _base\ntask: two\ntest_split: null\n")
    with pytest.raises(ConfigError, match="test_split or validation_split"):
        composed(folder, "two")


# --- functions -------------------------------------------------------------------------------


def test_functions_need_trust(folder: Path) -> None:
    """Code that a task brings along runs only when asked for, and is named."""
    with pytest.raises(ConfigError, match=r"shorter of .*trust_task_code=true"):
        composed(folder, "three")


def test_functions(folder: Path) -> None:
    """process_docs is called once, whoever asks; the config with it survives a round trip."""
    config = composed(folder, "three", "trust_task_code=true")
    (task,) = config.leaves
    task.check()
    assert task.n_original == 2
    assert task.requests(task.samples()[1])[0].context == "q1!"
    assert vars(task.process_docs.resolved)["calls"] == 1
    again = finish(json.loads(json.dumps(dump(config))))
    assert again.fingerprint == config.fingerprint
    assert again.leaves[0].requests(task.samples()[0]) == task.requests(task.samples()[0])


def test_missing_function(folder: Path) -> None:
    """A function that its file does not define is found before the file is run."""
    text = (folder / "three.yaml").read_text()
    (folder / "three.yaml").write_text(text.replace("code.shorter", "code.shortre"))
    (folder / "code.py").write_text(CODE + "raise SystemError\n")
    with pytest.raises(UnknownNameError, match="'shorter'"):
        composed(folder, "three", "trust_task_code=true")


def test_changed_function(folder: Path) -> None:
    """A file that changed since the config was finished is refused."""
    plain = dump(composed(folder, "three", "trust_task_code=true"))
    made = plain["task"]["three"]["process_docs"]
    made["digest"] = "0" * 64
    with pytest.raises(XpeError, match="has changed"):
        finish(plain).leaves[0].check()


def test_version_and_alias(folder: Path) -> None:
    """Version and metadata are those of the file."""
    (task,) = composed(folder, "two").leaves
    assert (task.version, task.metadata) == ("3", {"version": 3})


# --- data ------------------------------------------------------------------------------------


@pytest.fixture
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **_more: Any) -> None:
        raise AssertionError(f"the network was asked: {given}")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_DATASETS_OFFLINE", raising=False)


@pytest.mark.usefixtures("folder", "_no_network")
def test_remap(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set's name stands for a CSV, JSONL or Parquet file or a saved folder, with its types,
    and for a file a split; the remap may be typed or lie in a YAML. No network is asked.
    """
    import datasets

    text = FILES["_base"].replace("dataset_path: json", "dataset_path: some/where")
    text = "\n".join(line for line in text.splitlines() if "kwargs" not in line)
    text = text.replace("doc_to_choice: choices", "doc_to_choice: [x, y, z]").format()
    (folder / "two.yaml").write_text(f"{text}\ntask: two\n")
    rows = datasets.Dataset.from_list([{"q": "why", "gold": 2}, {"q": "how", "gold": 1}])
    rows.to_csv(str(tmp_path / "d.csv"))
    rows.to_parquet(str(tmp_path / "d.parquet"))
    rows.to_json(str(tmp_path / "d.jsonl"))
    rows.to_json(str(tmp_path / "by_split" / "test.jsonl"))
    rows.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"test": rows}).save_to_disk(str(tmp_path / "saved"))
    places = [tmp_path / name for name in ("d.csv", "d.jsonl", "d.parquet", "saved", "one")]
    (tmp_path / "conf" / "data").mkdir(parents=True)
    remap = f"remap: {{some/where: {tmp_path}/by_split}}"
    (tmp_path / "conf" / "data" / "mine.yaml").write_text(remap)
    monkeypatch.setenv("XPE_CONFIG_PATH", str(tmp_path / "conf"))
    places += [tmp_path / "by_split", tmp_path / "by_split" / "{split}.jsonl"]
    for word in (*(f'data.remap={{some/where: "{place}"}}' for place in places), "data=mine"):
        config = composed(folder, "two", word)
        (task,) = config.leaves
        assert [sample.target for sample in task.samples()] == [2, 1]


def test_split_by_shards(folder: Path) -> None:
    """Requests and examples of a document do not depend on which others are asked."""

    def asked(*words: str) -> dict[int, Any]:
        (task,) = composed(folder, "two", "num_fewshot=2", *words).leaves
        return {sample.doc_id: task.requests(sample) for sample in task.samples()}

    whole = asked()
    for shards in (1, 2, 4):
        merged_up: dict[int, Any] = {}
        for rank in range(shards):
            ids = list(range(rank, 5, shards))
            merged_up |= asked(f"samples={{two: {ids}}}") if ids else {}
        assert merged_up == whole
