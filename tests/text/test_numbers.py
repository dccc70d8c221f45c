"""Which number an answer gives."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpe.text.numbers import agree, answer_number, close, numbers

ANSWERS = [
    ("18", 18.0, ""),
    ("#### 5,600", 5600.0, ""),
    ("She has 5 and 6.\nA: 11", 11.0, ""),
    ("5 + 13 makes 18", 18.0, ""),
    ("The answer is 18. I used 3 steps.", 18.0, ""),
    ("The answer is 5 + 13 = 18 eggs, not 20.", 18.0, ""),
    (r"First 3, then \boxed{18}, by rule 4.", 18.0, ""),
    (r"\boxed{18\text{ km}}", 18.0, "km"),
    (r"\boxed{\frac{3}{4}}", 0.75, ""),
    ("答案是：十八个。共3步。", 18.0, "个"),
    ("芳芳有99页，看了90页，还剩九页没有看。", 9.0, "页"),
    ("12+13=25，所以答案为二十五，这是唯一的答案。", 25.0, ""),
    ("第一次3下，第二次拍了68下", 68.0, "下"),
    ("答：一共有12人。", 12.0, "人"),
    ("答：还剩一个", 1.0, "个"),
    ("第一次用了两步，第二次得到一个。", 1.0, "个"),
    ("共18个，这是一个好办法", 18.0, "个"),
    ("答案是 $$x=18$$", 18.0, ""),
    ("The answer is $5.50.", 5.5, "$"),
    ("The answer is $18$ km", 18.0, "km"),
    ("共5−3=2个", 2.0, "个"),
    ("1小时30分", 1.5, "小时"),
    ("5元5角", 5.5, "元"),
    ("三斤二两", 3.2, "斤"),
    ("一百两", 100.0, "两"),
    ("五千克", 5.0, "千克"),
    ("3千5百米", 3500.0, "米"),
    ("- 18 apples", 18.0, ""),
    ("x=-3", -3.0, ""),
    ("5-3", 3.0, ""),
    ("十分钟", 10.0, "分钟"),
    ("速度是60千米/时", 60.0, "千米/时"),
]


@pytest.mark.parametrize(("text", "value", "unit"), ANSWERS)
def test_answers(text, value, unit):
    """What is announced counts, else the last number, each with its unit."""
    found = answer_number(text)

    assert (pytest.approx(value), unit) == (found.value, found.unit)


def test_rules():
    """`first` and `last` take those numbers, `strict` only a text that is one number."""
    text = "The answer is 18: 3 from 21"

    assert answer_number(text, "first").value == 18
    assert answer_number(text, "last").value == 21
    assert answer_number("3 of 21: the answer is 18", "first").value == 3
    assert answer_number(text, "strict") is None
    assert answer_number(" 18 km ", "strict").value == 18


def test_without_normalisation():
    """Full-width digits are numbers only where the text is normalised."""

    assert answer_number("１８").value == 18
    assert answer_number("１８", normalise=False) is None


@pytest.mark.parametrize("text", ["", "no idea", "第2次", "x", "1/0", "∞"])
def test_no_number(text):
    """Ordinals and undefined fractions are no answers."""

    assert answer_number(text) is None


def test_tolerance():
    """The tolerance is relative, and absolute for golds below it."""

    assert close(1000.0005, 1000, 1e-6)
    assert not close(1000.002, 1000, 1e-6)
    assert close(9e-7, 0.0, 1e-6)
    assert not close(2e-6, 0.0, 1e-6)
    assert not close(float("inf"), 1e308, 1e-6)
    assert close(float("inf"), float("inf"), 1e-6)


@pytest.mark.parametrize(
    ("said", "gold", "plainly", "with_units"),
    [
        ("1.5 km", "1500 m", True, True),
        ("1.5 m", "1.5 km", True, False),
        ("1.5", "1.5 km", True, False),
        ("18", "18个", True, True),
        ("五千米", "5000米", True, True),
        ("五千米", "5", True, False),
        ("25 °C", "77 °F", True, True),
        ("90分", "1.5小时", True, True),
        ("18 dollars", "$18", True, True),
        ("18元", "$18", True, False),
        ("2 kg", "3 kg", False, False),
    ],
)
def test_agreement(said, gold, plainly, with_units):
    """Units count where they are required; the same quantity in other units always agrees."""
    left, right = answer_number(said), answer_number(gold)

    assert plainly is agree(left, right, 1e-6, units=False)
    assert with_units is agree(left, right, 1e-6, units=True)


@pytest.mark.shared
def test_golds_of_worked_solutions(shared_data):
    """The number behind #### is found in each of 1319 worked solutions."""
    path = shared_data / "data" / "gsm8k" / "test.jsonl"
    golds = [json.loads(line)["answer"] for line in path.read_text(encoding="utf-8").splitlines()]

    wrong = [
        gold
        for gold in golds
        if answer_number(gold).value != float(gold.rpartition("####")[2].replace(",", ""))
    ]

    assert (len(golds), wrong) == (1319, [])


BAIT = {
    "digits": "9" * 1_000_000,
    "groups": "1,234" * 200_000,
    "signs": "-" * 1_000_000,
    "chinese": "九" * 500_000,
    "ones": "一 " * 500_000,
    "pieces": "一个" * 300_000,
    "fractions": "1/" * 500_000,
    "spaces": "1 " * 500_000,
    "units": "1km" * 300_000,
    "latex": "\\frac{1}" * 100_000,
    "text": "\\text{" * 100_000,
    "boxes": "\\boxed{ " * 100_000,
    "answers": "the answer is " * 70_000,
}


@pytest.mark.parametrize("name", BAIT)
def test_long_texts_are_read_in_time(name):
    """A megabyte of bait takes seconds of processor time at most."""
    start = time.thread_time()

    answer_number(BAIT[name])

    assert time.thread_time() - start < 5


@given(st.text() | st.text(alphabet="0123456789.,-=$一二十百千万点分之第剩个kmg \nA答案是\\{}"))
@settings(max_examples=300)
def test_no_text_raises(text):
    """Any text gives numbers in order, whose spans do not overlap, or none."""
    spans = [(number.start, number.end) for number in numbers(text)]

    assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans))
    for rule in ("auto", "last", "first", "strict"):
        answer_number(text, rule)
