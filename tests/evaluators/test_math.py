"""The math evaluator: numbers, units, collections and formulas."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xpe.evaluators.math import MathEvaluator
from xpe.text.reasoning import MARKERS, split_reasoning

FIGURES = "零一二三四五六七八九"


def judged(prediction, gold, **settings_):
    reference = {"answer": {"type": "number", "value": gold}}
    return MathEvaluator(**settings_).judge_text(prediction, reference)


def test_documented_defaults():
    """The four documented settings have the documented defaults, and the metric its name."""
    evaluator = MathEvaluator()

    assert evaluator.tolerance == 1e-6
    assert evaluator.normalize is True
    assert evaluator.require_units is False
    assert evaluator.strict_format is False
    assert list(evaluator.evaluate(["18"], [{"answer": {"value": 18}}])) == ["math_accuracy"]


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("18", "18"),
        ("18", 18),
        ("1/2", "0.5"),
        ("负3", "-3"),
        ("零点五", "0.5"),
        ("2分之1", "1/2"),
        ("５０％", "0.5"),
        ("5,600", "5600"),
        ("Some 3 steps.\nA: 18", "Work.\n#### 18"),
        (r"\boxed{\frac{1}{2}}", "0.5"),
        ("1.5 km", "1500 m"),
        (r"\boxed{2\sqrt{3}}", "3.4641016151"),
        (r"\boxed{3+5}", "8"),
        (r"The answer is $\sqrt{16}$.", "4"),
        ("The answer is $x^2+1$.", "1+x^2"),
        ("so (1, 2)", "(1,2)"),
        (r"\{2, 1\}", "{1, 2}"),
        ("[0, 1)", "[0,1)"),
        (r"x < 3", r"(-\infty, 3)"),
        ("x=2 或 x=1", "x=1 or x=2"),
        ("√3", r"\sqrt{3}"),
        ("y = 2x + 1", "y=2x+1"),
        ("答案是无解。", "无解"),
        ("It is 4 or so: 4", ["3", "4"]),
        ("<think>17, no: 3.</think>18", "18"),
    ],
)
def test_right_results(prediction, gold):
    """Results that mean the same as the gold are right."""
    measured = judged(prediction, gold)

    assert (measured["math_accuracy"], measured["unparsed"]) == (1.0, 0)


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("18.1", "18"),
        (r"\boxed{3\sqrt{2}}", "3"),
        (r"\boxed{x^2-1}", "x^2+1"),
        ("[0, 1]", "[0,1)"),
        ("so (2, 1)", "(1,2)"),
        ("有解", "无解"),
    ],
)
def test_wrong_results_are_parsed(prediction, gold):
    """What was read and differs is wrong, not unparsed."""
    measured = judged(prediction, gold)

    assert (measured["math_accuracy"], measured["unparsed"]) == (0.0, 0)


SPELLINGS = [
    ("≈3.14", "3.14"),
    ("约等于18", "18"),
    ("18.", "18"),
    ("18。", "18"),
    ("$1,234.56", "1234.56"),
    ("The total is $1,234.56.", "1234.56"),
    ("25%", "25%"),
    ("25 percent", "0.25"),
    ("二十五", "25"),
    ("两千零五", "2005"),
    ("一半", "1/2"),
    ("3又1/2", "3.5"),
    ("三又二分之一", "3.5"),
    ("3½", "3.5"),
    ("7:30", "7:30"),
    ("-18", "−18"),
    ("(−18)", "-18"),
    ("x = 18", "18"),
    ("x=18 and y=3, so the answer is 18", "18"),
    ("答案：18元", "18"),
    ("1.0", "1"),
    ("0.333333333", "1/3"),
    ("18.0000001", "18"),
    ("**18**", "18"),
    ("Answer: 18 apples per 2 boxes", "18"),
    ("The final answer is: $\\boxed{18}$", "18"),
    ("\\boxed{18\\%}", "0.18"),
    ("\\boxed{\\$18}", "18"),
    ("\\boxed{18 \\text{ 元}}", "18"),
    ("\\boxed{1{,}800}", "1800"),
    ("\\boxed{-\\frac{1}{2}}", "-0.5"),
    ("\\boxed{\\dfrac{7}{8}}", "7/8"),
    ("\\boxed{18.5\\text{ cm}^2}", "18.5"),
    ("\\boxed{x=18}", "18"),
    ("\\boxed{18} and not \\boxed{17}", "17"),
    ("so we get 5.\n\n#### 18\n", "18"),
    ("18 (eighteen)", "18"),
    ("A：18", "18"),
    ("答：需要18天。", "18"),
    ("共需要18天", "18"),
    ("答: 18个, 剩余2个", "18"),
    ("它们的和是18,差是2", "2"),
    ("1.5亿", "150000000"),
    ("3.2万人", "32000"),
    ("12万5千", "125000"),
    ("10^6", "1000000"),
    ("1e6", "1000000"),
    ("6.02×10²³", "6.02e23"),
    ("6.02*10^23", "6.02e23"),
    ("2 3/4", "2.75"),
    ("11/4", "2 3/4"),
    ("2的3次方等于8", "8"),
    ("(3, 4)", "(3,4)"),
    ("3:4", "3:4"),
    ("3∶4", "3:4"),
    ("3比4", "3:4"),
    ("-5 ≤ x < 3", "[-5,3)"),
    ("x∈[-5,3)", "[-5,3)"),
    ("a=1,b=2", "a=1,b=2"),
    ("(x-1)(x+2)", "x^2+x-2"),
    ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"),
    ("π", "3.14159265"),
    ("2π cm", "2π"),
    ("45°", "45"),
    ("45度", "45°"),
    ("√2/2", "\\frac{\\sqrt{2}}{2}"),
    ("√(2)/2", "\\frac{1}{\\sqrt{2}}"),
    ("x²+1", "x^2+1"),
    ("No solution", "no solution"),
    ("答案是：x=2", "2"),
    ("x_1=1, x_2=3", "1,3"),
    ("±2", "{-2,2}"),
    ("y=2x", "y-2x=0"),
    ("log_2(8)", "3"),
    ("1,000,000,000,000,000,000,000", "1e21"),
    ("18 19", "19"),
    ("5+13=18只", "18"),
    ("5+13=18（只）\n答：一共有18只小鸡。", "18"),
    ("50 千米/小时", "50km/h"),
    ("0", "0"),
    ("0.0000001", "0"),
    ("-0", "0"),
]


@pytest.mark.parametrize(("prediction", "gold"), SPELLINGS)
def test_spellings_of_right_results(prediction, gold):
    """However a right result is written, in prose, LaTeX or Chinese, it is right."""

    assert judged(prediction, gold)["math_accuracy"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("25", "25%"),
        ("a half", "0.5"),
        ("0.33", "1/3"),
        ("The answer is eighteen", "18"),
        ("第18个", "18"),
        ("3/0", "3"),
        ("七折", "0.7"),
    ],
)
def test_what_only_looks_right(prediction, gold):
    """Percentages are not their figures, ordinals and English words no results."""

    assert judged(prediction, gold)["math_accuracy"] == 0.0


@pytest.mark.parametrize("prediction", ["", "no idea", "<think>18", "第2次"])
def test_unparsed(prediction):
    """A text without a result, and reasoning that never ends, are unparsed."""
    measured = judged(prediction, "18")

    assert (measured["math_accuracy"], measured["unparsed"]) == (0.0, 1)


def test_units_where_they_are_required():
    """The same quantity is right in any unit; another or none is wrong."""

    assert judged("1.5 km", "1500 m", require_units=True)["math_accuracy"] == 1.0
    assert judged("1小时30分", "90分钟", require_units=True)["math_accuracy"] == 1.0
    assert judged("1.5 m", "1.5 km", require_units=True)["math_accuracy"] == 0.0
    assert judged("1.5", "1.5 km", require_units=True)["math_accuracy"] == 0.0
    assert judged("1.5 m", "1.5 km")["math_accuracy"] == 1.0


def test_strict_format():
    """The whole answer must be the number, with or without its unit."""

    assert judged(" 18 个\n", "18", strict_format=True)["math_accuracy"] == 1.0
    assert judged("The answer is 18", "18", strict_format=True)["unparsed"] == 1
    assert judged("It is x^2+1", "x^2+1", strict_format=True)["math_accuracy"] == 0.0
    assert judged("1+x^2", "x^2+1", strict_format=True)["math_accuracy"] == 1.0


def test_extraction_rules():
    """`first` is the documented way, `last` ignores announcements."""
    text = "3 of 21: the answer is 18, for 5"

    assert [judged(text, "0", extract=rule)["extracted"] for rule in ("auto", "first", "last")] == [
        "18",
        "3",
        "5",
    ]


def test_normalisation():
    """Without `normalize` full-width digits are no number."""

    assert judged("１８", "18", normalize=False)["unparsed"] == 1


def test_a_time_out_is_no_score():
    """A comparison that takes too long is a fault of its own."""

    assert judged(r"\boxed{9^{9^{9^{9^9}}}}", "3", time_limit=1.0) == {"timeout": 1}


@pytest.mark.parametrize("gold", ["", "  ", []])
def test_a_reference_without_a_gold_is_invalid(gold):
    """A gold that nothing could equal is a fault of the data."""

    assert judged("18", gold) == {"invalid": 1}


def test_plain_numbers_need_no_worker(monkeypatch):
    """Numbers, units and collections of numbers are compared in this process."""

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr("xpe.evaluators.math.compare", refuse)
    for prediction, gold in (
        ("18", "17"),
        (r"\boxed{18}", "18"),
        ("5 km", "5"),
        ("(1,2)", "(2,1)"),
    ):
        judged(prediction, gold)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("model", "right"),
    [
        ("6b_finetuning", 71),
        ("6b_verification", 118),
        ("175b_finetuning", 113),
        ("175b_verification", 170),
    ],
)
def test_recorded_verdicts(shared_data, model, right):
    """The default agrees with the recorded verdict on each of 300 outputs of each model."""
    folder = shared_data / "data" / "gsm8k"
    golds, outputs = (
        [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in ("test.jsonl", "example_model_solutions_first300.jsonl")
    )

    rows = [
        (judged(output[model]["solution"], gold["answer"]), output[model]["is_correct"])
        for gold, output in zip(golds[:300], outputs, strict=True)
    ]

    assert [row for row in rows if bool(row[0]["math_accuracy"]) is not row[1]] == []
    assert right == sum(row["math_accuracy"] for row, _ in rows)


def spelled(number):
    if number < 10:
        return FIGURES[number]
    for size, unit in ((10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if number >= size:
            above, below = divmod(number, size)
            zero = "零" if 0 < below < size // 10 else ""
            return spelled(above) + unit + zero + (spelled(below) if below else "")
    raise AssertionError


def in_chinese(gold):
    if gold.endswith("%"):
        return f"百分之{in_chinese(gold[:-1])}"
    if "/" in gold:
        above, _, below = gold.partition("/")
        return f"{spelled(int(below))}分之{spelled(int(above))}"
    whole, point, decimals = gold.partition(".")
    return spelled(int(whole)) + (
        f"点{''.join(FIGURES[int(digit)] for digit in decimals)}" if point else ""
    )


SENTENCES = [
    "{}",
    "{}{}",
    "答案是{}{}。",
    "答：一共有{}{}。",
    "因此，小明还剩下{}{}没有看。",
    "他第一次算了两步，第二次得到{}{}。",
    "12+13=25，所以答案为{}{}，这是唯一的答案。",
    "最终答案：\n\n**{}{}**",
    "The answer is {} {}.",
    r"\boxed{{{}}}",
]


@pytest.mark.shared
@pytest.mark.parametrize("sentence", SENTENCES)
def test_golds_in_chinese_with_units_in_a_sentence(shared_data, sentence):
    """Each of 600 golds is read right in Chinese and in digits, with units, in a sentence."""
    path = shared_data / "data" / "cmath" / "cmath_dev.jsonl"
    golds = [json.loads(line)["golden"] for line in path.read_text(encoding="utf-8").splitlines()]

    missed = [
        text
        for gold in golds
        for spelling in (gold, in_chinese(gold))
        for unit in ("个", "元", "页", "米", "千克", "千米", "平方厘米", "小时")
        if judged(text := sentence.format(spelling, unit), gold)["math_accuracy"] != 1.0
    ]

    assert (len(golds), missed) == (600, [])


BAIT = {
    "digits": "9" * 1_000_000,
    "braces": r"\boxed{" + r"\frac{" * 100_000,
    "nested": r"\boxed{" + r"\sqrt{" * 300 + "x" + "}" * 300 + "}",
    "brackets": r"\boxed{" + "(" * 400 + "x" + ")" * 400 + "}",
    "powers": r"\boxed{" + "9^{" * 30 + "9" + "}" * 30 + "}",
    "sum": r"\boxed{" + "x+" * 400 + "x}",
    "factorial": r"\boxed{99999999!!!}",
    "dollars": "$" * 1_000_000,
}


@pytest.mark.parametrize("name", BAIT)
@pytest.mark.parametrize("gold", ["18", "x^2+1"])
def test_no_bait_takes_longer_than_the_limit(name, gold):
    """Bait ends soon after the limit for formulas, in a score or a time-out."""
    judged(r"\boxed{y}", "x^2+1", time_limit=60.0)
    start = time.monotonic()

    measured = judged(BAIT[name], gold, time_limit=1.0)

    assert measured == {"timeout": 1} or measured["math_accuracy"] == 0.0
    # A worker that was killed is started again by the next formula, with its libraries.
    assert time.monotonic() - start < 10


@given(st.text() | st.text(alphabet="0123456789.,-+=$一二十百分之 \\{}[]()xy^boxed答案是:"))
@settings(max_examples=100, deadline=None)
def test_never_raises(text):
    """Whatever stands in an answer, the row has a score or a fault."""
    for gold in ("18", "x^2+1", "(1, 2)"):
        measured = judged(text, gold, time_limit=1.0)
        assert measured == {"timeout": 1} or measured["math_accuracy"] in {0.0, 1.0}


@given(
    (
        st.text(min_size=1)
        | st.text("丁0123.,-=$一百分之 \\{}[]()x^答案是: \x85\u3000。", min_size=1)
    ).filter(lambda gold: split_reasoning(gold, markers=MARKERS).answer == gold)
)
@example("丁\x85")
@example(":.1")
@settings(max_examples=100, deadline=None)
def test_gold_is_right(gold):
    """Whatever stands in a gold, an equal answer is right, or the gold is invalid."""
    assert judged(gold, gold).get("math_accuracy", 1.0) == 1.0
