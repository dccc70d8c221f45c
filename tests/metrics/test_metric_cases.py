"""Cases that another project's authors wrote, metric by metric, within their tolerances."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics import CHRF, TER

from xpe.evaluators import get_evaluator
from xpe.evaluators.base import scores
from xpe.evaluators.metric_list import MetricList
from xpe.types import Answer, Exchange, Generate, Generated, LogLikelihood, Rolling, Sample, Scored

Case = Mapping[str, Any]

DISAGREE: dict[str, str] = {
    "CHRF - High Similarity": "one of the three sentences differs, which the case overlooks",
    "CHRF - Word Order Changes": "a number of no version of chrF in sacrebleu",
    "CHRF - Moderate Similarity": "a number of no version of chrF in sacrebleu",
    "CHRF - Low Similarity": "a number of no version of chrF in sacrebleu",
    "TER - Minor Edits": "one of eleven words differs, which the case overlooks",
    "TER - Completely Different": "one edit too few: no word is in its place",
}
"""Cases where sacrebleu itself gives another number than the case expects."""


def sample_of(doc: Mapping[str, Any]) -> Sample:
    """Turn a document of a case into a sample; several right choices become several targets."""
    gold = doc["gold_index"]
    right = [doc["choices"][i] for i in (gold if isinstance(gold, list) else [gold])]
    choices = [{"id": str(i), "text": text} for i, text in enumerate(doc["choices"])]
    return Sample("t", 0, doc, right, {"answer": {"value": right}, "choices": choices})


def written(doc: Mapping[str, Any], texts: list[str]) -> Answer:
    """Answer with texts, one a repeat."""
    return Answer(sample_of(doc), tuple(Exchange(Generate("q"), Generated(t)) for t in texts))


def chosen(doc: Mapping[str, Any], values: list[float]) -> Answer:
    """Answer with the log likelihoods of the choices."""
    request = LogLikelihood("q", tuple(f" {text}" for text in doc["choices"]))
    n = len(values)
    return Answer(
        sample_of(doc), (Exchange(request, Scored(tuple(values), (False,) * n, (1,) * n)),)
    )


def of_texts(name: str, **settings: Any) -> Callable[[Case], float]:
    """Measure generated texts with one metric, over one document or many."""

    def value(case: Case) -> float:
        docs = case.get("docs") or [case["doc"]]
        replies = case.get("model_responses") or [case["model_response"]]
        given = {k: v for k, v in case["metric_params"].items() if k == "k"} | settings
        evaluator = MetricList(names=({"metric": name, **given},))
        pairs = zip(docs, replies, strict=True)
        rows = [evaluator.measure(written(doc, reply["text"])) for doc, reply in pairs]
        return float(scores(evaluator.metrics, rows)[evaluator.metrics[-1].name]["score"])

    return value


def of_choices(name: str) -> Callable[[Case], float]:
    """Measure log likelihoods of choices with one metric."""

    def value(case: Case) -> float:
        docs = case.get("docs") or [case["doc"]]
        replies = case.get("model_responses") or [case["model_response"]]
        evaluator = MetricList(names=(name,), output_type="multiple_choice")
        pairs = zip(docs, replies, strict=True)
        rows = [evaluator.measure(chosen(doc, reply["logprobs"])) for doc, reply in pairs]
        return float(scores(evaluator.metrics, rows)[name]["score"])

    return value


def sentence_bleu(case: Case) -> float:
    """Score one sentence without smoothing, as these cases do."""
    evaluator = get_evaluator("bleu", smoothing=False)
    references = [{"answer": {"type": "text", "value": case["doc"]["choices"]}}]
    return float(evaluator.evaluate(case["model_response"]["text"], references)["bleu"]["score"])


def rouge_l(case: Case) -> float:
    """Score with the library's ROUGE-L."""
    evaluator = MetricList(names=("rouge",))
    return float(evaluator.measure(written(case["doc"], case["model_response"]["text"]))["rougeL"])


def word_perplexity(case: Case) -> float:
    """Score whole texts, which these cases call queries, by the log likelihoods of their tokens."""
    evaluator = MetricList(names=("word_perplexity",), output_type="loglikelihood_rolling")
    rows = []
    for doc, reply in zip(case["docs"], case["model_responses"], strict=True):
        text = doc["query"]
        sample = Sample("t", 0, doc, text, {"answer": {"type": "text", "value": text}})
        scored = Scored((sum(reply["logprobs"]),), (False,), (len(reply["logprobs"]),))
        rows.append(evaluator.measure(Answer(sample, (Exchange(Rolling(text), scored),))))
    return float(scores(evaluator.metrics, rows)["word_perplexity"]["score"])


def greedy_gold(case: Case) -> float:
    """Score one for a gold that the model would write itself."""
    evaluator = MetricList(names=("acc",), output_type="loglikelihood")
    doc, flags = case["doc"], case["model_response"]["argmax_logits_eq_gold"]
    text = doc["choices"][doc["gold_index"]]
    sample = Sample("t", 0, doc, text, {"answer": {"type": "text", "value": text}})
    scored = Scored((-1.0,), (bool(flags[doc["gold_index"]]),), (1,))
    answer = Answer(sample, (Exchange(LogLikelihood("q", (text,)), scored),))
    return float(evaluator.measure(answer)["acc"])


MEASURED: dict[str, Callable[[Case], float]] = {
    "exact_match": of_texts("exact_match"),
    "f1_score": of_texts("word_f1"),
    "pass_at_k": of_texts("pass@k"),
    "maj_at_k": of_texts("maj@k"),
    "bleu": of_texts("bleu"),
    "chrf": of_texts("chrf"),
    "ter": of_texts("ter"),
    "bleu_4": sentence_bleu,
    "rougeL": rouge_l,
    "loglikelihood_acc": of_choices("acc"),
    "mcc": of_choices("mcc"),
    "word_perplexity": word_perplexity,
    "acc_golds_likelihood": greedy_gold,
}


@pytest.mark.shared
@pytest.mark.parametrize("name", MEASURED)
def test_cases(shared_data: Path, name: str) -> None:
    """Every case is within its tolerance, but for those where the library itself disagrees."""
    if name == "rougeL" and importlib.util.find_spec("rouge_score") is None:
        pytest.skip("rouge-score is not installed")
    text = (shared_data / f"data/metric_cases/{name}.json").read_text("utf-8")
    for case in json.loads(text)["test_cases"]:
        expected = case["expected_output"]
        expected = next(iter(expected.values())) if isinstance(expected, dict) else expected
        made = MEASURED[name](case)
        if case["name"] in DISAGREE:
            assert made == pytest.approx(by_sacrebleu(name, case), abs=1e-9), case["name"]
            assert abs(made - expected) > case["tolerance"], case["name"]
        else:
            assert abs(made - expected) <= case["tolerance"], case["name"]


def by_sacrebleu(name: str, case: Case) -> float:
    """Score the texts of a case with sacrebleu alone."""
    texts = [reply["text"][0] for reply in case["model_responses"]]
    golds = [doc["choices"][doc["gold_index"]] for doc in case["docs"]]
    metric: Any = {"chrf": CHRF, "ter": TER}[name]()
    return float(metric.corpus_score(texts, [golds]).score)
