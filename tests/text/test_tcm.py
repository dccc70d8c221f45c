"""Terms of traditional Chinese medicine in golds and answers."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.text.tcm import KINDS, Kind, gold_terms, named_by, named_terms, stated, table

DOCUMENTED = {
    "气虚": ["气虚", "气不足", "气虚证"],
    "阴虚": ["阴虚", "阴不足", "阴亏", "阴津亏", "阴虚证", "津亏"],
    "血虚": ["血虚", "血亏", "血不足", "血少", "血虚证"],
    "阳虚": ["阳虚", "阳不足", "阳气虚", "阳亏", "阳虚证"],
    "湿热": ["湿热", "湿热蕴结", "湿热内蕴", "湿热证"],
    "气滞": ["气滞", "气机不畅", "气机阻滞", "气郁", "气滞证"],
    "血瘀": ["血瘀", "瘀血", "血瘀证", "瘀阻", "血行不畅"],
    "痰湿": ["痰湿", "痰浊", "痰湿内停", "痰湿证", "痰浊内停"],
    "肝郁": ["肝郁", "肝气郁结", "肝气不舒", "肝郁气滞"],
}


def named(text: str, gold: str = "风寒束表", kind: Kind = "syndrome") -> set[str]:
    """Return the terms that an answer names, with the gold's own in the vocabulary."""
    lexicon = table(kind)
    part, how = stated(text, kind)
    found = named_terms(part, lexicon.with_names(gold_terms(gold, lexicon)), how)
    return set().union(*found)


@pytest.mark.parametrize(
    ("term", "name"), [(term, name) for term, names in DOCUMENTED.items() for name in names]
)
def test_the_documented_synonyms_have_one_name(term: str, name: str) -> None:
    """Every documented name is read as its canonical term, the longest first."""
    assert named(name) == {term}


@pytest.mark.parametrize(
    ("gold", "terms"),
    [
        ("风寒束表", {"风寒束表"}),
        ("风寒束表证", {"风寒束表"}),
        ("气滞血瘀", {"气滞", "血瘀"}),
        ("心血不足", {"心血虚"}),
        ("脾肾阳虚", {"脾肾阳虚"}),
        ("瘀血阻滞", {"血瘀"}),
        ("湿热下注，膀胱失约", {"湿热下注", "膀胱失约"}),
        ("气虚毒滞", {"气虚", "毒滞"}),
        ("", set()),
        ("。，", set()),
    ],
)
def test_a_gold_is_cut_at_signs_and_then_at_names(gold: str, terms: set[str]) -> None:
    """What no table holds is one term; states such as 阻滞 belong to the term before them."""
    assert set(gold_terms(gold, table("syndrome")).values()) == terms


def test_brackets_hold_another_name() -> None:
    """Text in brackets stands for the term before it, full or half width."""
    names = gold_terms("痈（腋痈）、疮(癣)", table("disease"))
    assert names == {"痈": "痈", "腋痈": "痈", "疮": "疮", "癣": "疮"}


@pytest.mark.parametrize(
    ("answer", "terms"),
    [
        ("无气虚，属血虚", {"血虚"}),
        ("未见气虚、血虚，辨证为阳虚", {"阳虚"}),
        ("排除湿热，考虑痰湿", {"痰湿"}),
        ("并非气滞。证属血瘀", {"血瘀"}),
        ("证型：气虚，非血虚", {"气虚"}),
        ("恶寒无汗，证属风寒束表", {"风寒束表"}),
    ],
)
def test_what_is_denied_is_not_named(answer: str, terms: set[str]) -> None:
    """A negation covers the term after it and those listed with it, no more."""
    assert named(answer) == terms


@pytest.mark.parametrize(
    ("answer", "terms"),
    [
        ("患者气短、畏寒，舌淡。", set()),
        ("患者气短、畏寒，故辨证为血瘀。", {"血瘀"}),
        ("气短", {"气虚"}),
        ("证型：湿热下注；治法：清热利湿", {"湿热下注"}),
        ("起初考虑证型为气滞。再看脉象，证型为血瘀。", {"血瘀"}),
        ("**证候：** 肝郁脾虚证", {"肝郁脾虚"}),
        ("辨证为风寒束表，因外感风寒所致，请结合临床。", {"风寒束表"}),
        ("不知道", set()),
        ("I do not know.", set()),
    ],
)
def test_only_the_part_that_states_the_diagnosis_counts(answer: str, terms: set[str]) -> None:
    """Symptoms in the reasoning, reasons and phrases of courtesy are no diagnosis."""
    assert named(answer) == terms


@given(st.text(max_size=200), st.text(max_size=30), st.sampled_from(KINDS))
def test_no_text_raises(text: str, gold: str, kind: Kind) -> None:
    """Any text and any gold are read."""
    named(text, gold, kind)


@given(st.text(alphabet="气虚血瘀湿热无未见、，。证（）因", max_size=60))
def test_names_never_overlap(text: str) -> None:
    """No span of a text is counted twice."""
    spans = list(table("syndrome").spans(text))
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(text[span.start : span.end] == span.name for span in spans)


def test_the_table_has_one_canonical_term_for_each_name() -> None:
    """Nothing is listed under two terms, and no canonical term is another's synonym."""
    for kind in KINDS:
        canonical = table(kind).canonical
        assert all(canonical[term] == term for term in canonical.values() if term in canonical)


def test_a_name_may_be_added() -> None:
    """Names from a config stand beside those of the table."""
    lexicon = table("syndrome").with_names(named_by({"气虚": ["中气下陷"]}))
    assert set().union(*named_terms("中气下陷", lexicon, "list")) == {"气虚"}
