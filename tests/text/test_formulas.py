"""Formulas as strings: where they stand, how they are spelled, plain collections."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.text.formulas import (
    collection_of,
    collections_equal,
    formula_of,
    is_algebra,
    latex_of,
    squashed,
)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        (r"So \boxed{x^2+1}, as shown.", "x^2+1"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("The answer is $x^2+1$.", "x^2+1"),
        ("The answer is x^2+1.", "x^2+1"),
        ("答案是 x=1或x=2。", "x=1或x=2"),
        ("#### (1, 2)", "(1, 2)"),
        ("so (2, 1)", "(2, 1)"),
        ("We find $a$ first.\nThen we get $2a+b$.", "2a+b"),
        ("We find a.\nThus x = 2π", "x = 2π"),
        (r"First \(a\), then \[b^2\]", "b^2"),
        ("[0, 1)", "[0, 1)"),
        ("无解", "无解"),
    ],
)
def test_the_formula_of_an_answer(text, formula):
    """What is announced is the formula, else the last one in the text."""

    assert formula == formula_of(text)


@pytest.mark.parametrize(
    "text", ["x^2+1", "2√3", r"\sqrt{3}", "3+5", "[0, 1)", "{1, 2}", "x", "2x", "x < 3", "sin(x)"]
)
def test_algebra(text):
    """Variables, roots, sums and collections are more than a number."""

    assert is_algebra(text)


@pytest.mark.parametrize("text", ["18", r"\frac{1}{2}", "5 km", "18 eggs", "无解", "", "1.5×10^3"])
def test_no_algebra(text):
    """Numbers in any spelling, units and words are not algebra."""

    assert not is_algebra(text)


def test_spellings_become_latex():
    """Unicode signs and functions without backslash are written in LaTeX."""

    assert latex_of("√3") == r"\sqrt{3}"
    assert latex_of("sqrt(3)/2") == r"\sqrt{3}/2"
    assert latex_of("$2π$.") == r"2\pi "
    assert latex_of("x**2") == "x^2"


def test_what_is_too_long_or_deep_is_no_formula():
    """Formulas of thousands of characters, or nested beyond reading, are not compared."""

    assert latex_of("x+" * 1000) is None
    assert latex_of("(" * 100 + "x" + ")" * 100) is None


def test_squashing():
    """Spaces, sizes of brackets and dollars do not tell formulas apart."""

    assert squashed(r"$\left( 1, \dfrac{1}{2} \right)$") == squashed(r"(1,\frac{1}{2})")


@pytest.mark.parametrize(
    ("said", "gold", "equal"),
    [
        ("(1, 2)", "(1,2)", True),
        ("(2, 1)", "(1,2)", False),
        ("{2, 1}", r"\{1, 2\}", True),
        ("{1, 1, 2}", "{1, 2}", True),
        ("{1}", "{1, 2}", False),
        ("[0, 1)", "[0,1)", True),
        ("[0, 1]", "[0,1)", False),
        ("[0, 0.5]", r"[0, \frac{1}{2}]", True),
        ("(2,+∞)∪(-∞,1)", r"(-\infty,1)\cup(2,\infty)", True),
        ("(-∞,1)", r"(-\infty,1)\cup(2,\infty)", False),
        ("（１，２）", "(1, 2)", True),
    ],
)
def test_collections(said, gold, equal):
    """Brackets and values must agree; only sets and unions may be in another order."""

    assert equal is collections_equal(collection_of(said), collection_of(gold), 1e-6)


@pytest.mark.parametrize("text", ["(5)", "5", "(1, x)", "(1, 2", "", "(,)", "f(1,2)"])
def test_no_collections(text):
    """A number in brackets, and anything with a variable, is no collection of numbers."""

    assert collection_of(text) is None


BAIT = ["\\[" * 300_000, "$" * 1_000_000, "{" * 1_000_000, "\\boxed{" * 100_000, "√(" * 300_000]


@pytest.mark.parametrize("bait", BAIT, ids=[text[:8] for text in BAIT])
def test_long_texts_are_read_in_time(bait):
    """A megabyte of bait takes seconds of processor time at most."""
    start = time.thread_time()

    formula = formula_of(bait)
    is_algebra(formula), collection_of(formula), latex_of(formula), squashed(formula)

    assert time.thread_time() - start < 5


@given(st.text() | st.text(alphabet="()[]{}$\\,.0123xy^+√π∞∪或和答案是:boxedfrac \n"))
def test_no_text_raises(text):
    """Any text has a formula, whatever that is worth."""
    formula = formula_of(text)

    is_algebra(formula), collection_of(formula), latex_of(formula), squashed(formula)
