"""The evaluator of harness tasks: its items, filters, functions, and what fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from xpe._explain import build
from xpe.errors import ConfigError, UnknownNameError
from xpe.evaluators.harness_items import choice_items, text_item
from xpe.evaluators.lm_eval import HarnessMetrics
from xpe.tables import Ledger
from xpe.tasks.choices import harness_gold
from xpe.types import Answer, Exchange, Generate, Generated, LogLikelihood, Mean, Sample, Scored

CODE = """\
def judged(doc, results):
    if doc["n"] == 3:
        raise KeyError("no such field")
    found = {"length": len(results[0])}
    if doc["n"] == 1:
        found["rare"] = 1.0
    return found


def double(items):
    return 2 * sum(items)


def counted(references, predictions, step=1):
    return {"n@1": float(len(predictions[0])), "n@2": float(step)}


def passed_on(items):
    gold, text = items
    return float(gold in text)


class Tail:
    def __init__(self, n=1):
        self.n = n

    def apply(self, resps, docs):
        return [[one[-self.n:] for one in resp] for resp in resps]
"""


@pytest.fixture
def code(tmp_path: Path) -> Any:
    """Names functions of a file, as a finished config does."""
    file = tmp_path / "utils.py"
    file.write_text(CODE, "utf-8")
    return lambda name: {"function": name, "file": str(file)}


def answer(*texts: str, target: Any = "yes", n: int = 0) -> Answer:
    sample = Sample("t", n, {"n": n}, target, {})
    return Answer(sample, tuple(Exchange(Generate("q"), Generated(text)) for text in texts))


# --- items -----------------------------------------------------------------------------------


@pytest.mark.shared
def test_conformance_of_choices(shared_data: Path) -> None:
    """Every case of a multiple-choice answer gives the harness's items (likelihood aside, whose
    pairs it cannot average).
    """
    text = (shared_data / "conformance" / "lm_eval_cases.json").read_text("utf-8")
    cases = [c for c in json.loads(text) if c["fn"].startswith("multiple_choice.process_results")]
    for case in cases:
        names, results, gold, choices, several = [
            given if given is not None else default
            for given, default in zip(
                [*case["args"], *[None] * 5][:5], [[], [], 1, ["A", "B", "C"], 0], strict=True
            )
        ]
        gold = gold if several else harness_gold(gold, choices)
        found = choice_items(names, [tuple(pair) for pair in results], choices, gold)
        expected = {key: value for key, value in case["expect"].items() if key != "likelihood"}
        for key, value in expected.items():
            assert _listed(found[key]) == pytest.approx(_listed(value)), (key, case)
    assert len(cases) >= 9


@pytest.mark.shared
def test_conformance_of_exact_match(shared_data: Path) -> None:
    """Every case of exact_match, text by text."""
    text = (shared_data / "conformance" / "lm_eval_cases.json").read_text("utf-8")
    cases = [case for case in json.loads(text) if case["fn"] == "exact_match"]
    for case in cases:
        predictions, references = case["args"]
        pairs = zip(references, predictions, strict=True)
        hits = [text_item("exact_match", case["kwargs"], gold, text) for gold, text in pairs]
        assert sum(hits) / len(hits) == case["expect"], case
    assert len(cases) >= 8


def test_empty_choice() -> None:
    """An empty choice wins acc_norm in the harness: 0/0 is taken for the highest."""
    found = choice_items(["acc", "acc_norm"], [(0.0, False), (0.0, False)], ["a", ""], 0)
    assert found == {"acc": 1.0, "acc_norm": 0.0}


def test_lists_are_averaged() -> None:
    """A filter that leaves several texts gives the share of right ones."""
    assert text_item("exact_match", {}, "a", ["a", "b", "a"]) == pytest.approx(2 / 3)
    assert text_item("exact_match", {}, ["x", "b"], "b") == 1.0
    assert text_item("bleu", {}, "a", "b") == ("a", "b")


# --- filters and functions -------------------------------------------------------------------


def test_filters_and_fallbacks(code: Any) -> None:
    """Replies go through the pipeline; a fallback is scored as wrong and counted as unparsed."""
    steps = ({"kind": "regex", "regex_pattern": "([a-z]+)!"}, {"kind": "take_first"})
    evaluator = HarnessMetrics(filter="strict", filters=steps)
    assert evaluator.measure(answer("so: yes!")) == {"exact_match": 1.0}
    assert evaluator.measure(answer("yes")) == {"exact_match": 0.0, "unparsed": 1}
    own = HarnessMetrics(filters=({"kind": code("Tail"), "n": 3}, {"kind": "take_first"}))
    assert own.measure(answer("oh yes")) == {"exact_match": 1.0}


def test_default_is_the_first_repeat() -> None:
    """Without filters the first of several replies counts, as in the harness."""
    assert HarnessMetrics().measure(answer("yes", "no", "no"))["exact_match"] == 1.0


def test_process_results(code: Any) -> None:
    """A function gives all items; those not listed are averaged over documents that have them,
    and a document on which it fails is invalid.
    """
    names = ({"metric": "length", "aggregation": code("double"), "higher_is_better": False},)
    evaluator = HarnessMetrics(names=names, process_results=code("judged"))
    ledger = Ledger(evaluator)
    for n, text in enumerate(["a", "bb", "ccc", "x"]):
        one = answer(text, n=n)
        ledger.add(one, evaluator.measure(one))
    metrics = ledger.metrics()
    assert list(metrics) == ["length", "rare"]
    assert metrics["rare"][0].kind == Mean("rare", of="rare.given")
    length, table = metrics["length"]
    assert length.kind.aggregate(table.items["length"]) == 12  # type: ignore[union-attr]
    assert length.higher_is_better is False
    assert table.scored_N.tolist() == [True, True, True, False]
    assert table.column("invalid").tolist() == [0, 0, 0, 1]


def test_metric_of_the_task(code: Any) -> None:
    """A function may give several metrics at once; the harness's other way to call works too."""
    several = HarnessMetrics(names=({"metric": code("counted"), "aggregation": "mean", "step": 2},))
    ledger = Ledger(several)
    ledger.add(answer("abc"), several.measure(answer("abc")))
    assert list(ledger.metrics()) == ["n@1", "n@2"]
    assert ledger.table().column("n@2").tolist() == [2.0]
    other = HarnessMetrics(names=({"metric": code("passed_on"), "aggregation": "mean"},))
    assert other.measure(answer("oh yes"))["passed_on"] == 1.0


def test_corpus_metrics_speak_english_in_compat_mode() -> None:
    """The harness tokenizes Chinese as English; xpe by default does not."""
    names = ({"metric": "bleu"},)
    zh = answer("北京是中国的首都", target="北京是中国的首都。")
    ours = HarnessMetrics(names=names).measure(zh)
    theirs = HarnessMetrics(names=names, compat="lm_eval").measure(zh)
    assert ours["bleu.length"] == 8
    assert theirs["bleu.length"] == 1


def test_loglikelihood() -> None:
    """Log likelihood and greediness of the only continuation."""
    sample = Sample("t", 0, {}, " yes", {})
    request = LogLikelihood("q", (" yes",))
    scored = Answer(sample, (Exchange(request, Scored((-2.0,), (True,), (1,))),))
    evaluator = HarnessMetrics(output_type="loglikelihood", compat="lm_eval")
    assert evaluator.measure(scored) == {"perplexity.ll": -2.0, "perplexity.n": 1.0, "acc": 1.0}


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"names": ({"aggregation": "mean"},)}, "needs `metric`"),
        ({"names": ("word_perplexity",)}, "not generate_until"),
        ({"filters": ({"kind": "regex"},), "output_type": "multiple_choice"}, "read texts"),
        ({"filters": ({"kind": "take_first_k"},)}, "'k'"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    """Contradictions are found when the config is built."""
    with pytest.raises(ConfigError, match=message):
        build(HarnessMetrics, settings, "evaluator.e")


def test_unknown_aggregation() -> None:
    """A misspelt aggregation names the nearest."""
    with pytest.raises(UnknownNameError, match="'median'"):
        build(HarnessMetrics, {"names": ({"metric": "acc", "aggregation": "medan"},)}, "e")


def _listed(value: Any) -> list[float]:
    if not isinstance(value, (list, tuple)):
        return [value]
    return [one for inner in value for one in _listed(inner)]
