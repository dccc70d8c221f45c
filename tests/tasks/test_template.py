from __future__ import annotations

from typing import Any

import pytest

from xpe.data.documents import Documents, Record
from xpe.errors import ConfigError, DataError, MissingFieldError
from xpe.tasks import template
from xpe.tasks.texts import Texts


def record(doc: dict[str, Any], *others: dict[str, Any]) -> Record:
    return Documents((doc, *others), "rows.jsonl", "", "", "line").record(0)


def texts(**stated: Any) -> Texts:
    fields = {"doc_to_text": None, "doc_to_target": None, "doc_to_choice": None}
    delimiters = {"gen_prefix": None, "target_delimiter": " ", "fewshot_delimiter": "\n\n"}
    return Texts(**(fields | delimiters | stated))


def test_a_bare_field_is_its_raw_value() -> None:
    """No conversion to text: lists and numbers stay what they are."""
    assert template.value("n", record({"n": [1, 2]})) == [1, 2]
    assert template.value("n", record({"n": 0})) == 0


def test_jinja_is_rendered_with_its_last_newline() -> None:
    """Trailing newlines are part of a prompt."""
    assert template.value("{{ q }}\n", record({"q": "?"})) == "?\n"


def test_regex_replace() -> None:
    """The harness's one filter: pattern, replacement, count."""
    assert template.value("{{ q | regex_replace('a+', 'b', 1) }}", record({"q": "aa a"})) == "b a"


def test_values_and_functions() -> None:
    """What is not text is taken as it is, and a function is asked."""
    assert template.value(3, record({})) == 3
    assert template.value(("A", "B"), record({})) == ("A", "B")
    assert template.value(lambda doc: doc["q"] * 2, record({"q": "x"})) == "xx"


@pytest.mark.parametrize("stated", ["{{ questoin }}", "{{ questoin.x }}", lambda d: d["questoin"]])
def test_a_missing_field_is_explained(stated: Any) -> None:
    """The message names template, field, place, the nearest field and all fields."""
    with pytest.raises(
        MissingFieldError,
        match=r"rows\.jsonl, line 1: .*'questoin'.*Did you mean 'question'\? .*answer, question",
    ):
        template.value(stated, record({"question": "", "answer": ""}))


def test_a_field_that_only_other_documents_have() -> None:
    """The bare name is not taken for text."""
    with pytest.raises(MissingFieldError, match="'hint'"):
        template.value("hint", record({"q": ""}, {"q": "", "hint": ""}))


def test_a_missing_key_inside_a_field() -> None:
    """A nested key that is missing is an error too, not empty text."""
    with pytest.raises(MissingFieldError, match="'b'"):
        template.value("{{ a.b }}", record({"a": {"c": 1}}))


def test_a_template_that_fails_names_the_document() -> None:
    """Errors inside Jinja are translated."""
    with pytest.raises(DataError, match=r"rows\.jsonl, line 1: the template .* fails"):
        template.value("{{ n / 0 }}", record({"n": 1}))


def test_broken_jinja_is_a_config_error() -> None:
    """It is wrong whatever the data."""
    with pytest.raises(ConfigError, match="line 1"):
        template.value("{{ q ", record({"q": ""}))


def test_a_bare_word_that_is_no_field() -> None:
    """Most likely a misspelt field, else the same text for every document."""
    with pytest.raises(MissingFieldError, match=r"doc_to_text: .*'questoin'"):
        texts(doc_to_text="questoin").check(record({"question": ""}))
    texts(doc_to_text="Which one is true?").check(record({"question": ""}))


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("{{ n }}", 2),  # digits are an index where there are choices
        ("{{ s }}", "B"),
        ("s", "B"),
        ("{{ l }}", [0, 1]),
        ("{{ '[not a list' }}", "[not a list"),
        (1, 1),
    ],
)
def test_forms_of_a_target(stated: Any, expected: Any) -> None:
    """Rendered digits become an index, rendered lists a list; raw values stay."""
    doc = {"n": 2, "s": "B", "l": [0, 1], "c": ["A", "B"]}
    assert texts(doc_to_target=stated, doc_to_choice="c").target(record(doc)) == expected


def test_digits_stay_text_without_choices() -> None:
    """A number that is the answer is not an index."""
    assert texts(doc_to_target="{{ n }}").target(record({"n": 12})) == "12"


@pytest.mark.parametrize(
    "stated", ["c", "{{ [c[0], 'y'] }}", ("x", "y"), {"a": "x", "b": "y"}, lambda doc: doc["c"]]
)
def test_forms_of_choices(stated: Any) -> None:
    """A field, a rendered list, a list, the values of a mapping, a function."""
    assert texts(doc_to_choice=stated).choices(record({"c": ["x", "y"]})) == ("x", "y")
