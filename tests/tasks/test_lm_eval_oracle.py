"""A perfect model scores 1 and one that is always wrong 0 on the tasks of the parity set."""

from __future__ import annotations

from typing import Any

import pytest
from harness_runs import TASKS, config_of, inside

from xpe.pipeline import Run, summarise, tabulate
from xpe.types import Answer, Exchange, Generate, Generated, LogLikelihood, Reply, Sample, Scored

CHOICES = ("parity_mc_letters", "parity_mc_texts", "parity_mc_binary", "parity_mc_inputs",
           "parity_mc_targets", "parity_ll")  # fmt: skip
TEXTS = {
    "parity_gen_filters": {"first", "bare", "lower"},
    "parity_gen_letters": {"letter"},
    "parity_gen_targets": {"bare"},
    "parity_gen_repeats": {"vote", "two", "none"},
}
"""Tasks of texts, and the filters that a right answer comes through."""
ENDS = {
    "f1": (1.0, 0.0),
    "mcc": (1.0, -1.0),
    "brier_score": (0.0, 2.0),
    "bleu": (100.0, 0.0),
    "chrf": (100.0, 0.0),
    "ter": (0.0, 100.0),
}
"""Best and worst value of the other metrics; perplexities have none."""


def replies(task: Any, sample: Sample, *, right: bool) -> Answer:
    """Answer a sample as a model that knows, or avoids, every right answer."""
    golds = sample.target if isinstance(sample.target, list) else [sample.target]
    requests = task.requests(sample)
    exchanges = []
    for place, request in enumerate(requests):
        reply: Reply
        if isinstance(request, Generate):
            reply = Generated(str(golds[0]) if right else "§§§")
        else:
            assert isinstance(request, LogLikelihood)
            alone = not request.context
            one = len(request.continuations) == 1
            places = [place] if one else range(len(request.continuations))
            fits = [(task.kind == "loglikelihood" or p in golds) == right for p in places]
            # All the odds on one choice: spread over several, no answer is as wrong as it can be.
            hits = [fit and (one or p == fits.index(True)) for p, fit in enumerate(fits)]
            values = tuple(-5.0 if alone else (-0.001 if hit else -900.0) for hit in hits)
            reply = Scored(values, tuple(hits), (1,) * len(hits))
        exchanges.append(Exchange(request, reply))
    return Answer(sample, tuple(exchanges))


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("compat", ["lm_eval", "null"])
def test_oracle(compat: str, right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """acc and exact_match reach 1.0 and 0.0, and other metrics their own ends."""
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    with inside(TASKS):
        config = config_of([*CHOICES, *TEXTS, "parity_gen_corpus"], f"compat={compat}")
        run = Run({}, config.leaves, config.evaluators, stats=config.stats, compat=config.compat)
        values, others = {}, {}
        for task in config.leaves:
            answers = [replies(task, sample, right=right) for sample in task.samples()]
            rows = tabulate(config.evaluators[task.name], answers, lambda *_: None)
            for key, estimate in summarise(run, rows).items():
                metric, _, name = key.partition(",")
                if metric in ENDS:
                    others[metric] = estimate.value
                elif metric.startswith(("acc", "exact_match")) and _fits(task.name, name):
                    values[task.name, key] = estimate.value
    assert set(values.values()) == {1.0 if right else 0.0}
    assert len(values) >= 22
    assert {task for task, _ in values} == {*CHOICES, *TEXTS}
    ends = {metric: best if right else worst for metric, (best, worst) in ENDS.items()}
    assert others == pytest.approx(ends, abs=1e-9)


def _fits(task: str, name: str) -> bool:
    # With equal odds beforehand, the gain is that of the likelihood itself.
    return task in CHOICES or (name or "none") in TEXTS[task]
