"""Metrics of multiple choice: which choice has the highest log likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xpe.metrics.registered import register_metric
from xpe.metrics.views import Choices, Continuation, unconditional_of


def highest(values: Sequence[float]) -> int:
    """Return the index of the highest value; the lowest index among equal ones, NaN never."""
    return max(range(len(values)), key=lambda i: (not math.isnan(values[i]), values[i], -i))


def shares(log_likelihoods: Sequence[float]) -> list[float]:
    """Return the softmax of log likelihoods."""
    top = max(log_likelihoods)
    if math.isinf(top):
        return [1 / len(log_likelihoods)] * len(log_likelihoods)
    weights = [math.exp(value - top) for value in log_likelihoods]
    return [weight / sum(weights) for weight in weights]


def _gold(choices: Choices) -> int:
    return choices.gold[0] if choices.gold else -1


def _per(values: Sequence[float], lengths: Sequence[int]) -> int:
    return highest([value / max(length, 1) for value, length in zip(values, lengths, strict=True)])


@register_metric(metric="acc", output_type="loglikelihood")
def greedy(continuation: Continuation) -> float:
    """Whether greedy decoding writes the continuation."""
    return float(continuation.greedy)


@register_metric(metric="acc", output_type="multiple_choice")
def acc(choices: Choices) -> float:
    """Whether the likeliest choice is right."""
    return float(highest(choices.log_likelihoods) in choices.gold)


@register_metric(metric="acc_norm", output_type="multiple_choice")
def acc_norm(choices: Choices) -> float:
    """Whether the choice with the highest log likelihood per character is right."""
    lengths = [len(text) for text in choices.texts]
    return float(_per(choices.log_likelihoods, lengths) in choices.gold)


@register_metric(metric="acc_bytes", output_type="multiple_choice")
def acc_bytes(choices: Choices) -> float:
    """Whether the choice with the highest log likelihood per UTF-8 byte is right."""
    lengths = [len(text.encode()) for text in choices.texts]
    return float(_per(choices.log_likelihoods, lengths) in choices.gold)


@register_metric(metric="acc_mutual_info", output_type="multiple_choice")
def acc_mutual_info(choices: Choices) -> float:
    """Whether the choice that the question makes likelier by most is right."""
    alone = unconditional_of(choices)
    gains = [with_it - without for with_it, without in zip(choices.log_likelihoods, alone)]  # noqa: B905
    return float(highest(gains) in choices.gold)


@register_metric(metric="exact_match", output_type="multiple_choice")
def greedy_gold(choices: Choices) -> float:
    """Whether greedy decoding writes a right choice."""
    return float(any(choices.greedy[gold] for gold in choices.gold))


@register_metric(metric="likelihood", output_type="multiple_choice")
def likelihood(choices: Choices) -> float:
    """Share of the probability of all choices that the right ones have."""
    share = shares(choices.log_likelihoods)
    return sum(share[gold] for gold in choices.gold)


@register_metric(
    metric="brier_score",
    output_type="multiple_choice",
    aggregation="brier_score",
    higher_is_better=False,
)
def brier_score(choices: Choices) -> tuple[int, list[float]]:
    """The right choice and the probabilities of all."""
    return _gold(choices), shares(choices.log_likelihoods)


@register_metric(metric="f1", output_type="multiple_choice", aggregation="f1")
@register_metric(metric="mcc", output_type="multiple_choice", aggregation="matthews_corrcoef")
def labels(choices: Choices) -> tuple[int, int]:
    """The right label and the predicted one."""
    return _gold(choices), highest(choices.log_likelihoods)
