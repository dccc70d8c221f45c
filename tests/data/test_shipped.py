"""The data that ships with the package keeps its formats, its counts and its keys."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SHIPPED = Path(__file__).resolve().parents[2] / "xpe" / "data" / "shipped"
CHOICE_FIELDS = {"question": str, "choices": list, "answer": int, "topic": str}
CAPITAL_FIELDS = {"country": str, "capital": str, "choices": list, "answer": int}
ESSAY_FIELDS = {"title": str, "text": str}
# name -> least number of records, fields and their types
FILES = {
    "arithmetic_zh": (
        120,
        {"question": str, "answer": (int, float), "unit": str, "template": str},
    ),
    "arithmetic_zh_fewshot": (
        8,
        {"question": str, "solution": str, "answer": (int, float), "unit": str},
    ),
    "capitals_en": (160, CAPITAL_FIELDS),
    "capitals_zh": (160, CAPITAL_FIELDS),
    "perplexity_en": (8, ESSAY_FIELDS),
    "perplexity_zh": (8, ESSAY_FIELDS),
    "tcm_cases": (
        48,
        {"id": int, "symptoms": str, "syndrome": str, "disease": str, "treatment": str},
    ),
    "tcm_choice": (80, CHOICE_FIELDS),
    "tcm_choice_fewshot": (5, CHOICE_FIELDS),
    "translation_zh_en": (48, {"zh": str, "references": list, "domain": str}),
}
KEYS = {"capitals": "country", "perplexity": "title", "translation": "zh", "tcm_cases": "symptoms"}
CHOICE_FILES = ("capitals_en", "capitals_zh", "tcm_choice", "tcm_choice_fewshot")
SCRIPTS = {"capitals": ("capitals_en", "capitals_zh"), "arithmetic_zh": ("arithmetic_zh",)}


def load(name):
    text = (SHIPPED / f"{name}.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def key_of(name):
    return next((key for start, key in KEYS.items() if name.startswith(start)), "question")


def chinese_characters(text):
    return len(re.findall(r"[\u4e00-\u9fff]", text))


def test_every_file_is_listed():
    """The folder holds the listed files and no others."""
    assert {path.stem for path in SHIPPED.glob("*.jsonl")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_count_and_fields(name):
    """A file holds at least the promised number of records, each with exactly its fields."""
    least, fields = FILES[name]
    records = load(name)
    assert len(records) >= least
    for record in records:
        assert list(record) == list(fields)
        for field, kind in fields.items():
            assert isinstance(record[field], kind)
            assert not isinstance(record[field], bool)
            if isinstance(record[field], str):
                assert record[field]
                assert record[field] == record[field].strip()


@pytest.mark.parametrize("name", FILES)
def test_no_duplicates(name):
    """No two records of a file ask the same thing."""
    values = [record[key_of(name)] for record in load(name)]
    assert len(set(values)) == len(values)


@pytest.mark.parametrize("task", ["arithmetic_zh", "tcm_choice"])
def test_fewshot_pool_is_disjoint(task):
    """No example of a few-shot pool occurs among the records to be scored."""
    scored = {record["question"] for record in load(task)}
    assert scored.isdisjoint(record["question"] for record in load(f"{task}_fewshot"))


@pytest.mark.parametrize("name", FILES)
def test_card(name):
    """Each file has a card that states its version, licence and number of records."""
    card = (SHIPPED / f"{name}.md").read_text(encoding="utf-8")
    assert "**Version**: 1.0\n" in card
    assert "**Licence**: CC0-1.0\n" in card
    stated = re.search(r"\*\*Records\*\*: (\d+)", card)
    assert stated is not None
    assert int(stated[1]) == len(load(name))
    assert all(f"`{field}`" in card for field in FILES[name][1])


@pytest.mark.parametrize("name", CHOICE_FILES)
def test_choices(name):
    """Choices are distinct strings, four or five of them, and the answer points at one."""
    for record in load(name):
        choices = record["choices"]
        assert len(choices) in ((4,) if name.startswith("capitals") else (4, 5))
        assert all(isinstance(choice, str) and choice for choice in choices)
        assert len(set(choices)) == len(choices)
        assert 0 <= record["answer"] < len(choices)


@pytest.mark.parametrize("name", CHOICE_FILES)
def test_gold_positions_are_balanced(name):
    """No position holds the right answer in more than 40 % of the records."""
    positions = Counter(record["answer"] for record in load(name))
    assert max(positions.values()) <= 0.4 * positions.total()


@pytest.mark.parametrize("name", ["capitals_en", "capitals_zh"])
def test_capital_stands_at_the_answer(name):
    """The capital is the choice that the answer points at, and belongs to one country."""
    records = load(name)
    assert all(record["choices"][record["answer"]] == record["capital"] for record in records)
    assert len({record["capital"] for record in records}) == len(records)


def test_capitals_are_parallel():
    """The English and the Chinese file hold the same items in the same order."""
    chinese_of = {}
    for english, chinese in zip(load("capitals_en"), load("capitals_zh"), strict=True):
        assert english["answer"] == chinese["answer"]
        for name, translated in zip(english["choices"], chinese["choices"], strict=True):
            assert chinese_of.setdefault(name, translated) == translated


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_writes_the_same_bytes(script, tmp_path):
    """Running a generating script again gives the files that are shipped, byte for byte."""
    subprocess.run([sys.executable, SHIPPED / "make" / f"{script}.py", tmp_path], check=True)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    shipped = {f"{n}.jsonl": (SHIPPED / f"{n}.jsonl").read_bytes() for n in SCRIPTS[script]}
    assert written == shipped


def test_arithmetic_answers_are_plain_numbers():
    """Answers are positive, with at most two decimals, and a whole one is an int."""
    for record in load("arithmetic_zh") + load("arithmetic_zh_fewshot"):
        answer = record["answer"]
        assert answer > 0
        assert answer == round(answer, 2)
        assert isinstance(answer, int) == (answer == int(answer))
        assert record["question"].endswith("？")


def test_worked_solutions_end_in_their_answer():
    """A worked solution ends in the sentence that names its answer."""
    for record in load("arithmetic_zh_fewshot"):
        assert record["solution"].endswith(f"所以答案是{record['answer']}。")


def test_worked_solutions_compute():
    """Every equation in a worked solution holds."""
    for record in load("arithmetic_zh_fewshot"):
        plain = re.sub(r"（[^）]*）", "", record["solution"])
        plain = plain.replace("×", "*").replace("÷", "/").replace("%", "/100")
        equations = re.findall(r"([\d.+\-*/]*\d)=([\d./]*\d)(?=[，。])", plain)
        assert equations
        for left, right in equations:
            # Only digits and operators get here, by the pattern above.
            assert eval(left) == pytest.approx(eval(right))


def test_tcm_topics():
    """Questions of Chinese medicine cover at least five topics, some with five options."""
    records = load("tcm_choice")
    assert len({record["topic"] for record in records}) >= 5
    assert {len(record["choices"]) for record in records} == {4, 5}


def test_tcm_cases_name_tongue_and_pulse():
    """Cases are numbered from 0, and each describes tongue and pulse."""
    records = load("tcm_cases")
    assert [record["id"] for record in records] == list(range(len(records)))
    assert all("舌" in record["symptoms"] and "脉" in record["symptoms"] for record in records)


def test_translation_references():
    """Sources have 10 to 40 characters, and at least fifteen have two different references."""
    records = load("translation_zh_en")
    assert {r["domain"] for r in records} == {"daily", "tcm", "science", "news", "literature"}
    assert all(10 <= len(record["zh"]) <= 40 for record in records)
    assert all(len(set(r["references"])) == len(r["references"]) in (1, 2) for r in records)
    assert all(isinstance(text, str) and text for r in records for text in r["references"])
    assert sum(len(record["references"]) == 2 for record in records) >= 15


def test_perplexity_texts_are_long_enough():
    """The essays hold at least 1,800 English words and 2,200 Chinese characters."""
    assert sum(len(record["text"].split()) for record in load("perplexity_en")) >= 1800
    assert sum(chinese_characters(r["text"]) for r in load("perplexity_zh")) >= 2200


@pytest.mark.parametrize("name", ["capitals_en", "perplexity_en"])
def test_english_files_hold_no_chinese(name):
    """The English files hold no Chinese character."""
    assert chinese_characters((SHIPPED / f"{name}.jsonl").read_text(encoding="utf-8")) == 0
