"""Numerals as people write them, and what they are worth."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.text.numerals import NUMERAL, han_integer, plain_math, read_numeral, value_of

NUMERALS = [
    ("18", 18),
    ("1,234", 1234),
    ("1,234,567.89", 1234567.89),
    ("１２３", 123),
    ("1/2", 0.5),
    ("1 1/2", 1.5),
    ("1又1/2", 1.5),
    ("2分之1", 0.5),
    ("二分之一", 0.5),
    ("一又二分之一", 1.5),
    ("百分之二十", 0.2),
    ("20%", 0.2),
    ("百分之20", 0.2),
    ("１２％", 0.12),
    ("12‰", 0.012),
    ("-3", -3),
    ("−3", -3),
    ("负3", -3),
    ("负三", -3),
    ("零点五", 0.5),
    ("零点5", 0.5),
    ("三点一四", 3.14),
    ("1.5e3", 1500),
    ("1.5E+03", 1500),
    ("1.5×10^3", 1500),
    ("1.5 × 10³", 1500),
    ("1.5 x 10^{-3}", 0.0015),
    ("1.5*10**3", 1500),
    ("10^3", 1000),
    ("10⁻³", 0.001),
    ("1.5\\times10^{3}", 1500),
    ("\\frac{1}{2}", 0.5),
    ("1\\frac{1}{2}", 1.5),
    ("\\frac12", 0.5),
    ("½", 0.5),
    ("1½", 1.5),
    ("三千五百六十七", 3567),
    ("一百零五", 105),
    ("两百五", 250),
    ("一万二", 12000),
    ("3千5百", 3500),
    ("二〇二四", 2024),
    ("一亿三千万", 130000000.0),
    ("1.5亿", 150000000.0),
    ("3万", 30000.0),
    ("3万5千", 35000),
    ("1亿2000万", 120000000.0),
    ("一万零五十", 10050),
    ("十五", 15),
    ("十", 10),
    ("百", 100),
    ("半", 0.5),
    ("一半", 0.5),
    ("三个半", 3.5),
    ("3个半", 3.5),
    ("$18", 18),
    ("-$5", -5),
    ("$-5", -5),
    ("￥18.50", 18.5),
    ("3 million", 3000000.0),
    ("1{,}234", 1234),
    ("1\\,234", 1234),
    ("12\\%", 0.12),
    ("六又七分之三", 6.428571428571429),
    ("七分之四十五", 6.428571428571429),
    ("五分之十三", 2.6),
    ("一千零六点六", 1006.6),
    ("二点五万", 25000),
    ("零点零零二", 0.002),
    ("百分之十二点五", 0.125),
    ("七万六千", 76000),
    ("二十一分之一", 0.047619047619047616),
    (".5", 0.5),
    ("二十", 20),
    ("壹佰贰拾叁", 123),
    ("+7", 7),
    ("千分之三", 0.003),
    ("负二分之一", -0.5),
    ("0", 0),
    ("五亿零三万", 500030000),
    ("一千万亿", 1000000000000000.0),
    ("九十九", 99),
    ("\\dfrac{3}{4}", 0.75),
    ("2^{10}", 1024),
    ("一千零一", 1001),
    ("两千", 2000),
    ("十二万三千四百五十六", 123456),
    ("一百二十三万四千五百六十七", 1234567),
    ("负零点三", -0.3),
    ("\\$5", 5),
]

FIGURES = "零一二三四五六七八九"


def spelled(number):
    """Spell a whole number below 10^12 in Chinese, section by section as it is spoken."""
    if number < 10:
        return FIGURES[number]
    for size, unit in ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if number >= size:
            above, below = divmod(number, size)
            zero = "零" if 0 < below < size // 10 else ""
            return spelled(above) + unit + zero + (spelled(below) if below else "")
    raise AssertionError


@pytest.mark.parametrize(("text", "value"), NUMERALS)
def test_numerals_are_read(text, value):
    """Each spelling has its value, to the last bits of a float."""

    assert math.isclose(value, read_numeral(text), rel_tol=1e-14)


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u202f"])
def test_thin_spaces_group_thousands(space):
    """The spaces that typographers put between thousands are no ends of a number."""

    assert read_numeral(f"1{space}234{space}567") == 1234567.0


@pytest.mark.parametrize("text", ["1_000", "1/0", "abc", "", "12 a", "一共", "1,2,3"])
def test_what_is_no_numeral(text):
    """A text that is not one numeral, or has no value, is None."""

    assert read_numeral(text) is None


@given(st.integers(0, 10**12 - 1))
def test_chinese_spelling_comes_back(number):
    """Any whole number below 10^12, spelled as it is spoken, is read as itself."""

    assert number == han_integer(spelled(number))


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_fractions_in_chinese_and_latex(above, below):
    """A fraction is the same number in Chinese, with a slash and in LaTeX."""
    value = above / below

    assert math.isclose(value, read_numeral(f"{spelled(below)}分之{spelled(above)}"))
    assert math.isclose(value, read_numeral(f"{above}/{below}"))
    assert math.isclose(value, read_numeral(rf"\frac{{{above}}}{{{below}}}"))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_python_floats_come_back(number):
    """What Python writes for a float is read as that float."""

    assert number == read_numeral(repr(number))


@given(st.floats(1e-300, 1e300), st.sampled_from(["×", " x ", "*", "·", r" \times "]))
def test_scientific_notation_comes_back(number, times):
    """A power of ten may be written with any sign, raised, in braces or with two stars."""
    digits, _, power = f"{number:.15e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"))

    for spelling in (f"10^{{{int(power)}}}", f"10**{int(power)}", f"10{raised}"):
        assert float(f"{digits}e{power}") == read_numeral(f"{digits}{times}{spelling}")


@given(st.text() | st.text(alphabet="0123456789.,-+/^e×%$一二十百千万亿点分之又半个两零\\{}frac "))
def test_no_text_raises(text):
    """Any text can be searched for numerals, and each of them valued."""
    plain = plain_math(text)

    for match in NUMERAL.finditer(plain):
        value_of(match)
