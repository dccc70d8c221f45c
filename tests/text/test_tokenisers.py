"""Words of English and Chinese text."""

from __future__ import annotations

import time

import jieba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpe.text.tokenisers import language_of, words_en, words_zh


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("plain English", "en"),
        ("辛温解表", "zh"),
        ("abcd辛", "en"),
        ("abc辛", "zh"),
        ("a" * 80 + "辛" * 20, "en"),
    ],
)
def test_more_than_a_fifth_makes_a_text_chinese(text: str, language: str) -> None:
    """Exactly a fifth of Chinese characters is not more than a fifth."""
    assert language_of(text) == language


def test_english_words_need_no_download() -> None:
    """The Treebank rules split contractions and the final full stop; no sentence model is read."""
    assert words_en("It isn't 3.5 km, no.") == ["It", "is", "n't", "3.5", "km", ",", "no", "."]


@settings(deadline=None)  # jieba loads its dictionary on first use
@given(st.text(alphabet="患者头痛发热，恶寒 abc12.5%\n证", max_size=150))
def test_ordinary_chinese_is_cut_as_jieba_cuts_it(text: str) -> None:
    """Where no run is long, nothing but jieba decides."""
    assert words_zh(text) == jieba.lcut(text)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_no_character_is_lost(text: str) -> None:
    """The words of any text put together are the text."""
    assert "".join(words_zh(text)) == text


def test_a_long_run_takes_no_quadratic_time() -> None:
    """100,000 times one character, a minute where jieba is called plainly, takes seconds."""
    start = time.thread_time()
    words = words_zh("证" * 100_000)
    assert "".join(words) == "证" * 100_000
    assert time.thread_time() - start < 5
