from __future__ import annotations

import hashlib
import json
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.data.source import Source
from xpe.errors import ConfigError, DataError, DataFileError, FieldTypeError, UnknownNameError

ROWS = [{"q": "一加一？", "a": "二"}, {"q": 'x, "y"\nz', "a": "3"}]


def write(path: Path, text: str, encoding: str = "utf-8") -> Source:
    path.write_bytes(text.encode(encoding))
    return Source(path=str(path))


def as_jsonl(rows: list[dict]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def written(folder: Path, ending: str) -> Source:
    path = folder / f"rows.{ending}"
    if ending == "jsonl":
        path.write_text(as_jsonl(ROWS), encoding="utf-8")
    elif ending == "json":
        path.write_text(json.dumps(ROWS), encoding="utf-8")
    elif ending == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        tab = "\t" if ending == "tsv" else ","
        path.write_text(f'q{tab}a\n一加一？{tab}二\n"x, ""y""\nz"{tab}3\n', encoding="utf-8")
    return Source(path=str(path))


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_every_format_gives_the_same_rows(ending: str, tmp_path: Path) -> None:
    """The ending picks the reader, and the digest is that of the bytes."""
    source = written(tmp_path, ending)
    documents = source.load()
    assert list(documents) == ROWS
    assert [documents[i] for i in range(len(documents))] == ROWS
    assert documents.fields == {"q", "a"}
    content = Path(source.path).read_bytes()
    assert documents.digest == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("ending", "place"),
    [("jsonl", "line 2"), ("json", "record 2"), ("csv", "row 2"), ("parquet", "row 2")],
)
def test_a_place_names_file_and_record(ending: str, place: str, tmp_path: Path) -> None:
    """Places count from 1, as editors do."""
    assert written(tmp_path, ending).load().where(1) == f"rows.{ending}, {place}"


def test_blank_lines_and_the_byte_order_mark_are_skipped(tmp_path: Path) -> None:
    """Line numbers still count the blank lines."""
    source = write(tmp_path / "a.jsonl", '\ufeff{"q": 1}\r\n\n  \n{"q": 2}')
    documents = source.load()
    assert [row["q"] for row in documents] == [1, 2]
    assert documents.where(1) == "a.jsonl, line 4"


def test_a_line_separator_inside_a_string_does_not_end_the_line(tmp_path: Path) -> None:
    """U+2028 and U+0085 are text."""
    source = write(tmp_path / "a.jsonl", '{"q": "a\u2028b\u0085c"}\n')
    assert source.load()[0] == {"q": "a\u2028b\u0085c"}


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers()), min_size=1))
def test_jsonl_round_trip(rows: list[dict]) -> None:
    """What was dumped is read back, whatever the text."""
    from xpe.data import jsonl
    from xpe.data.documents import File

    assert jsonl.read(File(as_jsonl(rows).encode("utf-8"), "x")).rows == rows


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    """File, line and column of the first broken line are in the message."""
    source = write(tmp_path / "a.jsonl", '{"q": 1}\n{"q": 2,}\n')
    with pytest.raises(DataError, match=r"a\.jsonl, line 2, column \d+: not JSON"):
        source.load()


def test_a_line_that_is_no_object_is_a_type_error(tmp_path: Path) -> None:
    """A bare list or string is no document."""
    source = write(tmp_path / "a.jsonl", '{"q": 1}\n[1, 2]\n')
    with pytest.raises(FieldTypeError, match=r"a\.jsonl, line 2: expected an object.*list"):
        source.load()
    assert issubclass(FieldTypeError, TypeError)


def test_nan_is_refused(tmp_path: Path) -> None:
    """NaN is not JSON; it would break the result files later."""
    with pytest.raises(DataError, match=r"line 1: NaN is not JSON"):
        write(tmp_path / "a.jsonl", '{"q": NaN}\n').load()


def test_bytes_of_another_encoding_are_named(tmp_path: Path) -> None:
    """The line is named, and the right `encoding` reads the file."""
    path = tmp_path / "a.jsonl"
    write(path, '{"q": "a"}\n{"q": "中医"}\n', "gb18030")
    with pytest.raises(DataError, match=r"a\.jsonl, line 2: byte .* is not utf-8"):
        Source(path=str(path)).load()
    assert Source(path=str(path), encoding="gb18030").load()[1] == {"q": "中医"}
    with pytest.raises(ConfigError, match="unknown encoding 'utf-9'"):
        Source(path=str(path), encoding="utf-9").load()


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", "\n\n"), ("a.json", "[]"), ("a.csv", "q,a\n"), ("b.csv", "")]
)
def test_an_empty_data_set_is_an_error(name: str, text: str, tmp_path: Path) -> None:
    """Nothing to evaluate is a mistake, not a result."""
    with pytest.raises(DataError, match=f"{name} has no documents"):
        write(tmp_path / name, text).load()


def test_a_missing_file_lists_the_nearest(tmp_path: Path) -> None:
    """The message helps with a slip of the finger, and is an OSError too."""
    (tmp_path / "questions.jsonl").write_text("{}")
    with pytest.raises(DataFileError, match=r"no file .*question\.jsonl.*questions\.jsonl"):
        Source(path=str(tmp_path / "question.jsonl")).load()
    with pytest.raises(OSError, match="there is no folder"):
        Source(path=str(tmp_path / "no" / "q.jsonl")).load()


def test_a_missing_shipped_file_lists_the_nearest() -> None:
    """`shipped:` looks in the package."""
    assert len(Source(path="shipped:capitals_en.jsonl").load()) >= 150
    with pytest.raises(DataFileError, match=r"capital_en\.jsonl.*capitals_en\.jsonl"):
        Source(path="shipped:capital_en.jsonl").load()


def test_csv_with_a_ragged_row(tmp_path: Path) -> None:
    """A row with a value too many is named."""
    with pytest.raises(DataError, match=r"a\.csv, row 2: 3 values for 2 columns"):
        write(tmp_path / "a.csv", "q,a\n1,2\n1,2,3\n").load()


def test_csv_with_a_header_of_its_own_and_long_fields(tmp_path: Path) -> None:
    """Files without a header get one, and fields may be longer than the csv module's default."""
    path = tmp_path / "a.csv"
    path.write_text("1;" + "x" * 200_000 + "\n")
    rows = Source(path=str(path), columns=("q", "a"), delimiter=";").load()
    assert rows[0] == {"q": "1", "a": "x" * 200_000}


def test_csv_with_a_column_named_twice(tmp_path: Path) -> None:
    """One of the two would be lost."""
    with pytest.raises(DataError, match="named twice"):
        write(tmp_path / "a.csv", "q,q\n1,2\n").load()


def test_json_that_holds_its_list_under_a_key(tmp_path: Path) -> None:
    """One list is found by itself; among several the split says which."""
    assert len(write(tmp_path / "a.json", '{"v": 1, "data": [{}, {}]}').load()) == 2
    path = tmp_path / "b.json"
    path.write_text('{"train": [{}], "test": [{}, {}]}')
    assert len(Source(path=str(path), split="test").load()) == 2
    with pytest.raises(FieldTypeError, match="lists 'train', 'test'; name one as `split:`"):
        Source(path=str(path)).load()


def test_json_lines_under_the_name_json(tmp_path: Path) -> None:
    """Many `.json` files hold one object a line."""
    documents = write(tmp_path / "a.json", '{"q": 1}\n{"q": 2}\n').load()
    assert [row["q"] for row in documents] == [1, 2]
    assert documents.where(1) == "a.json, line 2"


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
    """The error is ours and names the file."""
    with pytest.raises(DataError, match=r"a\.parquet: not a readable Parquet file"):
        write(tmp_path / "a.parquet", "PAR0").load()


def test_an_unknown_ending_needs_a_format(tmp_path: Path) -> None:
    """Nothing is guessed from content."""
    path = tmp_path / "a.txt"
    path.write_text('{"q": 1}\n')
    with pytest.raises(DataError, match="say `format:`"):
        Source(path=str(path)).load()
    assert len(Source(path=str(path), format="jsonl").load()) == 1


def test_remap_reads_the_local_file_in_place_of_the_hub(tmp_path: Path) -> None:
    """No hub call is made for what is local."""
    source = written(tmp_path, "jsonl")
    assert list(Source(path="org/name", split="test").load({"org/name": source.path})) == ROWS
    with pytest.raises(DataFileError, match="no file"):
        Source(path="org/name").load({"org/name": str(tmp_path / "nothing")})


def test_a_folder_with_a_file_for_each_split(tmp_path: Path) -> None:
    """`SPLIT.ENDING` is found in a folder, in that of the subset first."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "test.jsonl").write_text('{"q": 1}\n')
    (tmp_path / "sub" / "test.csv").write_text("q\n2\n")
    assert Source(path=str(tmp_path), split="test").load()[0] == {"q": 1}
    assert Source(path="a/b", name="sub", split="test").load({"a/b": str(tmp_path)})[0] == {
        "q": "2"
    }


def test_the_split_fills_a_path(tmp_path: Path) -> None:
    """`{split}` stands for the split."""
    (tmp_path / "dev.jsonl").write_text('{"q": 1}\n')
    assert len(Source(path=str(tmp_path / "{split}.jsonl"), split="dev").load()) == 1


def test_a_folder_of_data_files_in_the_layout_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A downloaded data set is read as it lies, without the network."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "mmlu" / "data"
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, folder / "test-00000-of-00001.parquet")
    pq.write_table(table.slice(0, 1), folder / "dev-00000-of-00001.parquet")
    remap = {"cais/mmlu": str(tmp_path / "mmlu")}
    assert list(Source(path="cais/mmlu", split="test").load(remap)) == ROWS


def test_a_data_set_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to use a local copy."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataFileError, match=r"'data\.remap=\{org/none: FILE_OR_FOLDER\}'"):
        Source(path="org/none").load()


def test_save_to_disk_folders(tmp_path: Path) -> None:
    """A data set saved by `datasets` is mapped; the split is found or asked for."""
    rows = datasets.Dataset.from_list(ROWS)
    rows.save_to_disk(tmp_path / "one")
    datasets.DatasetDict(test=rows, train=rows).save_to_disk(tmp_path / "two")
    one = Source(path=str(tmp_path / "one")).load()
    assert list(one) == ROWS
    assert one.fields == {"q", "a"}
    assert one.digest == Source(path=str(tmp_path / "one")).load().digest
    two = Source(path=str(tmp_path / "two")).load()
    assert two.where(1) == "two[test], record 2"
    assert two.identity != Source(path=str(tmp_path / "two"), split="train").load().identity
    with pytest.raises(UnknownNameError, match=r"'tset'.*'test'"):
        Source(path=str(tmp_path / "two"), split="tset").load()
