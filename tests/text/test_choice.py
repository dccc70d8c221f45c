"""Which option an answer commits to."""

from __future__ import annotations

import json
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpe.text.choice import Question, chosen
from xpe.text.labels import alphabet, labels_of
from xpe.text.normalise import nfkc
from xpe.text.options import Options

CITIES = {"A": "London", "B": "Paris", "C": "New York", "D": "York"}
RULES = ("auto", "last", "first", "tag", "strict")


def question(ids="ABCD", *, several=False, options=None):
    return Question(labels_of(tuple(ids), several=several), Options(options or {}))


COMMITTED = [
    ("B", "B"),
    ("b", "B"),
    ("(B)", "B"),
    ("（Ｂ）", "B"),
    ("Ｂ", "B"),
    ("**B**", "B"),
    ("B.", "B"),
    ("B、", "B"),
    ("$\\boxed{C}$", "C"),
    ("\\boxed{\\text{C}}", "C"),
    ("【答案】B", "B"),
    ("答案是：D", "D"),
    ("选C", "C"),
    ("故选B", "B"),
    ("故选：B。", "B"),
    ("The correct answer is (C)", "C"),
    ("B. Eliminated: A, C, D", "B"),
    ("不选A，选B", "B"),
    ("The answer is **B**.", "B"),
    ("Answer: C", "C"),
    ("I think the answer is B because A is wrong.", "B"),
    ("A is wrong. B is correct. C is wrong.", "B"),
    ("C. Incorrect: A, B, D", "C"),
    ("The answer is not A. It is B.", "B"),
    ("The answer is B, not A.", "B"),
    ("Option C is the best choice.", "C"),
    ("选择A", "A"),
    ("我认为答案是B", "B"),
    ("正确选项：Ｃ", "C"),
    ("正确选项为（D）。", "D"),
    ("答案选D项", "D"),
    ("A patient with fever would be given C.", "C"),
    ("Paris", "B"),
    ("paris.", "B"),
    ("The capital is Paris.", "B"),
    ("New York", "C"),
    ("It is New York, surely", "C"),
    ("York", "D"),
    ("The answer is Paris, not London", "B"),
    ("(b) Paris", "B"),
    ("answer: b", "B"),
    ("因此，选项C是正确的。", "C"),
    ("A错误，B错误，D错误，故选C", "C"),
    ("排除A、C、D，故选B", "B"),
    ("排除A、C、D，只剩B", "B"),
    ("故排除ABD三项。C项正确", "C"),
    ("Therefore, B.", "B"),
    ("Let's see. A: no. B: maybe.\n\nB", "B"),
    ("首先分析A选项……其次B选项……\n\n**答案：C**", "C"),
    ("The correct option is: **(A)** London", "A"),
    ("My final answer is $\\mathbf{D}$.", "D"),
    ("答案：C. 项羽\n解析：A项错误", "C"),
    ("B because it is the capital", "B"),
    ("<answer>C</answer>", "C"),
    ("#### A", "A"),
    ("The answer is A. Wait, no: the answer is B.", "B"),
    ("选A还是选B？应该选B。", "B"),
    ("既不是A也不是B，是C", "C"),
    ("正确答案为【C】", "C"),
    ("答案 (A)", "A"),
    ("Ans: D", "D"),
    ("It's C.", "C"),
    ("C) New York", "C"),
    ("C: New York", "C"),
    ("'C'", "C"),
    ("“C”", "C"),
    ("`C`", "C"),
    ("<B>", "B"),
    ("So the final answer is:\n\nB", "B"),
    ("正确的选项是：\nA. London", "A"),
    (
        "Options:\nA. London\nB. Paris\nC. New York\nD. York\n\nParis is the capital. So B. Paris.",
        "B",
    ),
    ("答案：A. London\nB. Paris\nC. New York", "A"),
    ("Both A and B are plausible, but I choose B.", "B"),
    ("本题考查…，A、B、D三项均与题意不符，故答案为C项。", "C"),
    ("选B、因为A不对", "B"),
    ("Neither A nor B; the answer is C", "C"),
    ("I'd go with D", "D"),
    ("Definitely D!", "D"),
    ("DNA is in vitamin C", "C"),
    ("The answer is: A) London", "A"),
    ("**Answer:** C", "C"),
    ("**Answer: C**", "C"),
    ("Answer: **C. New York**", "C"),
    ("The correct choice is option D.", "D"),
    ("So, the best option is B.", "B"),
    ("My answer: (D)", "D"),
    ("I'm not sure, but A seems likely.", "A"),
    ("B is the only one that fits.", "B"),
    ("It can't be A, so it's B.", "B"),
    ("A, B and C are all wrong, so D.", "D"),
    ("A、B、C三项均错误，故选D项。", "D"),
    ("根据题意，A项正确，故选A。", "A"),
    ("正确答案：B．", "B"),
    ("本题答案为：C", "C"),
    ("参考答案：D", "D"),
    ("【正确答案】 A 【解析】B项错误", "A"),
    ("【解析】…A项错误，B项正确。故选B。", "B"),
    ("答：选B", "B"),
    ("我选B", "B"),
    ("我会选择C选项", "C"),
    ("应该选择D", "D"),
    ("答案应该是B吧", "B"),
    ("答案是（B）巴黎", "B"),
    ("B：巴黎", "B"),
    ("b) Paris", "B"),
    ("(B) Paris", "B"),
    ("[B]", "B"),
    ("{B}", "B"),
    ("Option B", "B"),
    ("option b", "B"),
    ("Choice: B", "B"),
    ("选项B", "B"),
    ("B选项", "B"),
    ("B项", "B"),
    ("The answer is B (not A).", "B"),
    ("Not A, but B.", "B"),
    ("The answer is C, because A and B are wrong.", "C"),
    (
        "Each:\nA. London - wrong.\nB. Paris - correct.\nC. New York - wrong.\n\nSo: B.",
        "B",
    ),
    (
        "Each option:\n(A) It is in England.\n(B) It is in France.\n(C) In the US.\nHence (B).",
        "B",
    ),
    ("$$\\boxed{B}$$", "B"),
    ("\\[ \\boxed{\\textbf{(B)}\\ Paris} \\]", "B"),
    ("The final answer is $\\boxed{\\mathrm{D}}$", "D"),
    ("Final Answer: The final answer is $D$. I hope it is correct.", "D"),
    ("答案：$\\text{C}$", "C"),
    ("I would choose A over B", "A"),
    ("Between A and C, I'd pick C.", "C"),
    ("B\n\nExplanation: A is London, C is New York.", "B"),
    ("B - because Paris is the capital of France, unlike A.", "B"),
    ("C?", "C"),
    ("... C", "C"),
    ("答案 C", "C"),
    ("ANSWER: D", "D"),
    ("Answer is d.", "D"),
    ("The answer's B", "B"),
    ("Correct answer - B", "B"),
    ("Correct Answer\nB", "B"),
    ("因为A、C、D都不符合，所以B符合题意", "B"),
    ("只有B符合题意", "B"),
    ("选择题答案：A", "A"),
    ("1. A", "A"),
    ("1、A", "A"),
    ("第1题：A", "A"),
    ("Q1: B", "B"),
    ("故正确答案选B", "B"),
    ("故本题选B。", "B"),
    ("B正确。", "B"),
    ("因此B是正确答案", "B"),
    ("所以正确答案是选项 B：巴黎。", "B"),
    ("The capital of France is Paris (B).", "B"),
    ("Ａ", "A"),
    ("Ⓑ", "B"),
    ("<|im_start|>B", "B"),
    ("B<|im_end|>", "B"),
    ("B</s>", "B"),
    ("答案为B,C项错误", "B"),
]

UNPARSED = [
    "A and B",
    "A or B",
    "A、B",
    "AB",
    "答案是A和B",
    "A is wrong, B is wrong, D is wrong.",
    "A patient walks in. I think we should rest.",
    "Paris or London",
    "the answer is a matter of taste",
    "",
    "I don't know",
    "不知道",
    "A/B",
    "A is incorrect because it is in England; C is incorrect; D is incorrect.",
    "选A或B都可以",
    "A和B都对",
    "可能是A，也可能是B",
    "The answer could be A or C",
    "All of the above",
    "🅱",
    "答案：①",
]

SEVERAL = [
    ("ABD", "ABD"),
    ("A、B、D", "ABD"),
    ("D, B and A", "ABD"),
    ("答案：ABD", "ABD"),
    ("正确的有A、C", "AC"),
    ("A正确，B错误，C正确", "AC"),
    ("【答案】A B D", "ABD"),
    ("选A、B和D，不选C", "ABD"),
    ("\\boxed{A}, \\boxed{C}", "AC"),
    ("\\boxed{A, C}", "AC"),
    ("The correct answers are (A), (B) and (D).", "ABD"),
    ("A", "A"),
    ("abd", "ABD"),
    ("A B D", "ABD"),
    ("A,B,D", "ABD"),
    ("A;C", "AC"),
    ("答案是BD。A错误，C错误。", "BD"),
    ("A\nC", "AC"),
    ("dba", "ABD"),
]

LABELS = [
    ("12345", "3", "3"),
    ("12345", "答案是3", "3"),
    ("12345", "第1题选3", "3"),
    ("12345", "In 1911, 15 people; the answer is (4).", "4"),
    ("甲乙丙丁", "选甲", "甲"),
    ("甲乙丙丁", "甲状腺疾病，故选乙", "乙"),
    ("甲乙丙丁", "丙", "丙"),
    ("甲乙丙丁", "答案：丁。", "丁"),
    (["I", "II", "III", "IV"], "Ⅳ", "IV"),
    (["I", "II", "III", "IV"], "I think the answer is III.", "III"),
    (["I", "II", "III", "IV"], "(iv)", "IV"),
    ("ABCDEFGHIJ", "I think it is J", "J"),
    ("ABCDEFGHIJ", "The answer is I.", "I"),
    (["yes", "no"], "Yes, it is.", "yes"),
    (["A", "B"], "选择A", "A"),
    ("①②③④", "选③", "③"),
    ("①②③④", "答案是①", "①"),
    ("abcd", "B", "b"),
    ("ABCDE", "正确答案是E。", "E"),
]


@pytest.mark.parametrize(("text", "label"), COMMITTED)
def test_commitments_are_read(text, label):
    """What commits to one of four cities is read as that one, however it is written."""

    assert (label,) == chosen(text, question(options=CITIES))


@pytest.mark.parametrize("text", UNPARSED)
def test_what_commits_to_nothing_is_unparsed(text):
    """Several answers to a question with one, or none at all, are no choice."""

    assert chosen(text, question(options=CITIES)) == ()


@pytest.mark.parametrize(("text", "labels"), SEVERAL)
def test_several_answers_in_any_order(text, labels):
    """A question with several answers takes all labels, sorted as the question lists them."""

    assert tuple(labels) == chosen(text, question(several=True))


@pytest.mark.parametrize(("ids", "text", "label"), LABELS)
def test_labels_of_any_set(ids, text, label):
    """Digits, Roman numerals, heavenly stems, words and circled numbers are labels too."""

    assert (label,) == chosen(text, question(ids))


def test_options_that_contain_labels():
    """The A of `vitamin A` is no label where an option is called so."""
    vitamins = {"A": "vitamin C", "B": "vitamin A"}

    assert chosen("It must be vitamin A.", question("AB", options=vitamins)) == ("B",)
    assert chosen("The answer is A, vitamin C", question("AB", options=vitamins)) == ("A",)


def test_equal_options_name_neither():
    """An option text that two labels share commits to none of them."""

    assert chosen("Paris", question("AB", options={"A": "Paris", "B": "paris"})) == ()


def test_strict_wants_nothing_but_the_label():
    """`strict` accepts marks around a label and no words."""

    assert chosen("**(B)**", question(), "strict") == ("B",)
    assert chosen("The answer is B", question(), "strict") == ()


def test_alphabets():
    """Without options the gold label tells the alphabet it is from."""

    assert alphabet("C") == tuple("ABCDEFGHIJ")
    assert alphabet("Ⅳ")[3] == "IV"
    assert alphabet("丙") == tuple("甲乙丙丁戊己庚辛壬癸")
    assert alphabet("yes") == ("yes",)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("rule", "right"), [("last", 217), ("tag", 216), ("first", 127), ("auto", 213)]
)
def test_recorded_answers(shared_data, rule, right):
    """Each rule counts as published on 287 outputs; `auto` is right where one commits."""
    name = "gpt-4-0314_2010-2022_History_MCQs.json"
    with (shared_data / "data" / "gaokao_history" / name).open(encoding="utf-8") as file:
        examples = json.load(file)["example"]

    found = [chosen(example["model_output"], question(), rule) for example in examples]

    golds = [tuple(example["standard_answer"]) for example in examples]
    assert right == sum(map(tuple.__eq__, found, golds))
    if rule == "auto":
        # Ten outputs mark no letter, or several, as the answer.
        assert [index for index, labels in enumerate(found) if not labels] == [
            38,
            52,
            56,
            63,
            103,
            124,
            127,
            135,
            187,
            204,
        ]


@given(st.text())
@settings(max_examples=300)
def test_nfkc_is_that_of_unicode(text):
    """The faster NFKC is the same as the standard library's on any text."""

    assert unicodedata.normalize("NFKC", text) == nfkc(text)


@given(st.text() | st.text(alphabet="ABCD()、,.。: \n答案是选不\\boxed{}【】andortheis"))
@settings(max_examples=300)
def test_no_text_breaks_a_rule(text):
    """Any text gives labels of the question, at most one where one is asked for."""
    for rule in RULES:
        for ids, several in (("ABCD", False), ("12345", True), ("甲乙丙丁", False)):
            found = chosen(text, question(ids, several=several, options=CITIES), rule)
            assert set(found) <= set(ids)
            assert several or len(found) <= 1


BAIT = {
    "digits": "1" * 1_000_000,
    "labels": "A " * 500_000,
    "pairs": "A、B" * 300_000,
    "braces": "\\boxed{" * 100_000,
    "tags": "【答案】" * 100_000,
    "spaces": "答案是" + " " * 1_000_000,
    "not": "not " * 250_000 + "A",
    "listed": "A. x\nB. y\n" * 100_000,
    "answer": "the answer is " * 70_000,
}


@pytest.mark.parametrize("name", BAIT)
def test_long_texts_are_read_in_time(name):
    """A megabyte of bait takes seconds at most by any rule (a third of one on a free core)."""
    for rule in RULES:
        start = time.thread_time()
        chosen(BAIT[name], question(options=CITIES), rule)
        assert time.thread_time() - start < 5
