"""The TCM evaluator on made and on handed cases."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpe.evaluators import get_evaluator
from xpe.evaluators.tcm_diagnosis import TcmDiagnosisEvaluator
from xpe.text.tcm import KINDS, table

EVALUATOR = TcmDiagnosisEvaluator()
SENTENCES = (
    "根据患者症状，四诊合参，本病例应为{}。",
    "该患者头痛发热，恶寒无汗，脉浮紧，辨证为{}，请结合临床。",
    "经过分析，我认为正确答案是{}。",
    "<think>可能是气虚？</think>综上所述，考虑{}。",
    "最终判断：{}。理由是患者舌红苔黄、脉数。",
)
SWAPPED = str.maketrans("肝肺脾肾心胃寒热湿血阴阳", "肾心肝肺脾肠热寒燥气阳阴")


def score(prediction: str, gold: str, kind: str = "syndrome", **given: Any) -> float:
    """Return the score of one answer."""
    evaluator = TcmDiagnosisEvaluator(**given) if given else EVALUATOR
    measured = evaluator.judge_text(prediction, {"answer": {"type": kind, "value": gold}})
    return float(measured["score"])


@pytest.fixture(scope="module")
def cases(shared_data: Path) -> list[dict[str, str]]:
    """The handed textbook cases."""
    text = (shared_data / "data/tcm_cases/cases_even_ids.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("风寒束表、肺阴亏耗、痰热郁肺", "风寒束表、肺阴亏耗", 0.6 * 0.8 + 0.4 * 2 / 3),
        ("风寒束表", "风寒束表、肺阴亏耗", 0.6 * 2 / 3 + 0.4 / 2),
        ("风寒束表、痰热郁肺", "风寒束表、肺阴亏耗", 0.6 / 2 + 0.4 / 3),
        ("血瘀气滞", "气滞血瘀", 1.0),
        ("不知道", "风寒束表", 0.0),
        ("", "风寒束表", 0.0),
        ("脾气虚", "气虚", 1.0),
        ("气虚", "脾气虚", 1.0),
        ("肺气虚", "脾气虚", 0.0),
    ],
)
def test_scores_by_hand(prediction: str, gold: str, expected: float) -> None:
    """The blend of F1 and Jaccard's index; kinds of a term as the documented table has them."""
    assert score(prediction, gold) == pytest.approx(expected)


def test_settings_change_the_score() -> None:
    """Exact match, Jaccard alone, another weight, names without canonical terms."""
    pair = "风寒束表", "风寒束表、肺阴亏耗"
    assert score(*pair, exact_match=True) == 0
    assert score(*pair, partial_credit=False) == 0.5
    assert score(*pair, keywords_weight=1.0) == pytest.approx(2 / 3)
    assert score("气不足", "气虚", normalize_tcm_terms=False) == 0
    assert score("中气下陷", "气虚", synonyms={"气虚": ["中气下陷"]}) == 1


def test_a_disease_is_right_or_gets_partial_credit() -> None:
    """Bracketed names count; without partial credit a part of the diseases is nothing."""
    assert score("腋痈", "痈（腋痈）", "disease") == 1
    assert score("诊断为失眠。", "不寐", "disease") == 1
    assert 0 < score("五迟", "五迟、五软", "disease") < 1
    assert score("五迟", "五迟、五软", "disease", partial_credit=False) == 0


def test_what_names_nothing_is_unparsed_and_unfinished_reasoning_is_no_answer() -> None:
    """Neither is a wrong diagnosis by accident; both score 0."""
    reference = {"answer": {"type": "syndrome", "value": "气虚"}}
    for prediction in ("不知道", "<think>气虚，气虚"):
        measured = EVALUATOR.judge_text(prediction, reference)
        assert (measured["score"], measured["unparsed"]) == (0, 1)
    assert EVALUATOR.judge_text("气虚", {"answer": {"value": "。"}}) == {"invalid": 1}


def test_the_documented_form_of_the_result() -> None:
    """One metric for all, the share of matches, and one for each type that occurs."""
    references = [
        {"answer": {"type": "syndrome", "value": "风寒束表、肺阴亏耗"}},
        {"answer": {"type": "treatment", "value": "益气健脾"}},
    ]
    result = get_evaluator("tcm_diagnosis").evaluate(["风寒束表", "健脾益气"], references)
    assert result == {
        "tcm_diagnosis": {"score": 0.8, "min": 0.6, "max": 1.0, "count": 2},
        "tcm_match": {"score": 0.5, "min": 0.0, "max": 1.0, "count": 2},
        "syndrome": {"score": 0.6, "min": 0.6, "max": 0.6, "count": 1},
        "treatment": {"score": 1.0, "min": 1.0, "max": 1.0, "count": 1},
    }


@pytest.mark.shared
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sentence", ["{}", *SENTENCES])
def test_golds_score_full_marks(cases: list[dict[str, str]], kind: str, sentence: str) -> None:
    """Each gold against itself, bare or inside a sentence, scores 1."""
    wrong = [c[kind] for c in cases if score(sentence.format(c[kind]), c[kind], kind) < 1]
    assert (len(cases), wrong) == (100, [])


@pytest.mark.shared
@pytest.mark.parametrize("kind", KINDS)
def test_golds_in_other_words_score_full_marks(cases: list[dict[str, str]], kind: Any) -> None:
    """Each name of each gold that the table gives scores 1; there are some for many golds."""
    canonical = table(kind).canonical
    tried = 0
    for case in cases:
        for name in (n for n in canonical if canonical.get(case[kind]) == canonical[n]):
            if name in table(kind).symptoms:
                continue
            tried += 1
            assert score(name, case[kind], kind) == 1, (name, case[kind])
            assert score(f"综合分析，考虑{name}。", case[kind], kind) == 1, (name, case[kind])
    assert tried > 20


@pytest.mark.shared
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_answers_score_low(cases: list[dict[str, str]], kind: str) -> None:
    """不知道 scores 0 on every case, and the next case's gold 0.1 on average at most."""
    assert all(score("不知道", case[kind], kind) == 0 for case in cases)
    following = zip(cases, cases[1:] + cases[:1], strict=True)
    scores = [score(wrong[kind], case[kind], kind) for case, wrong in following]
    assert sum(scores) / len(scores) < 0.1


@pytest.mark.shared
def test_graded_corruptions_of_treatments(cases: list[dict[str, str]]) -> None:
    """One term added, one dropped, an organ or nature swapped, another case: in this order."""
    means: dict[str, list[float]] = {"added": [], "dropped": [], "swapped": [], "next": []}
    for index, case in enumerate(cases):
        gold = case["treatment"]
        terms = [term for term in re.split("[，、；。]", gold) if term]
        swapped = next((i for i, t in enumerate(terms) if t.translate(SWAPPED) != t), None)
        if len(terms) < 2 or swapped is None:
            continue
        other = [*terms[:swapped], terms[swapped].translate(SWAPPED), *terms[swapped + 1 :]]
        following = cases[(index + 1) % len(cases)]["treatment"]
        made = {
            "added": "，".join([*terms, "通腑泻下"]),
            "dropped": "，".join(terms[:-1]),
            "swapped": "，".join(other),
            "next": following,
        }
        for name, answer in made.items():
            means[name].append(score(answer, gold, "treatment"))
        if len(terms) == 2:
            assert means["added"][-1] == pytest.approx(0.7467, abs=1e-4), gold
            assert means["dropped"][-1] == pytest.approx(0.6), gold
    values = [sum(scores) / len(scores) for scores in means.values()]
    assert len(means["next"]) > 60
    assert values == sorted(values, reverse=True)
    assert values[2] - values[3] > 0.2


@pytest.mark.parametrize(
    ("gold", "kind"),
    [("肺气郁痹证", "syndrome"), ("疖", "disease"), ("祛瘀消痈，化浊排脓", "treatment")],
)
@pytest.mark.parametrize("sentence", ["{}", *SENTENCES])
def test_golds_outside_the_table_score_full_marks(gold: str, kind: str, sentence: str) -> None:
    """A gold that no table holds whole is found in an answer as it was cut itself."""
    assert score(sentence.format(gold), gold, kind) == 1


def test_a_gold_that_denies_names_nothing() -> None:
    """It is invalid; what it states beside that counts."""
    assert EVALUATOR.judge_text("痹证", {"answer": {"type": "disease", "value": "无痹证"}}) == {
        "invalid": 1
    }
    assert score("胃痛", "胃痛，无痹证", "disease") == 1


@settings(deadline=None)
@given(
    st.text("肺气郁痹证脾虚风寒束表湿热疖、，（）无未见", min_size=1, max_size=12),
    st.sampled_from(KINDS),
)
def test_a_gold_is_its_own_answer(gold: str, kind: str) -> None:
    """Whatever stands in a gold, an equal answer scores 1, or the gold is invalid."""
    measured = EVALUATOR.judge_text(gold, {"answer": {"type": kind, "value": gold}})
    assert measured == {"invalid": 1} or measured["score"] == 1


@pytest.mark.parametrize(
    "method", ["化瘀散结", "健脾化痰", "清肝利胆", "温肾固涩", "养血柔肝", "补肾调冲"]
)
def test_a_method_of_the_vocabulary_is_one_term(method: str) -> None:
    """A gold is not cut inside it, so one of two terms right is F1 2/3 and Jaccard 1/2."""
    assert score(method, f"{method}，凉血止血", "treatment") == pytest.approx(0.6 * 2 / 3 + 0.4 / 2)


@settings(deadline=None)
@given(st.text(max_size=300), st.text(max_size=20), st.sampled_from([*KINDS, "text"]))
def test_no_text_raises(text: str, gold: str, kind: str) -> None:
    """Any text is measured or invalid."""
    EVALUATOR.judge_text(text, {"answer": {"type": kind, "value": gold}})


@pytest.mark.parametrize("unit", ["9", "证", "气", "无", "（", "证型：", "气虚、", "a "])
def test_a_megabyte_takes_seconds(unit: str) -> None:
    """Long answers take linear time."""
    start = time.thread_time()
    score(unit * (1_000_000 // len(unit)), "气虚")
    assert time.thread_time() - start < 5
