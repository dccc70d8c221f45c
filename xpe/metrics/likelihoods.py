"""Metrics of log likelihoods: perplexity per token sequence, word, byte; bits per byte."""

from __future__ import annotations

import re

from xpe.metrics.registered import register_metric
from xpe.metrics.views import Continuation, Document

_SPACES = re.compile(r"\s+")


def count_words(text: str) -> int:
    """Return the number of pieces between white space, as lm-evaluation-harness counts words.

    Text without spaces is one word, however long: for Chinese, bytes are the right unit.
    """
    return len(_SPACES.split(text))


def count_bytes(text: str) -> int:
    """Return the length in UTF-8."""
    return len(text.encode())


@register_metric(
    metric="perplexity",
    output_type="loglikelihood",
    aggregation="perplexity",
    higher_is_better=False,
)
def perplexity(continuation: Continuation) -> float:
    """The log likelihood of the continuation."""
    return continuation.log_likelihood


@register_metric(
    metric="word_perplexity",
    output_type="loglikelihood_rolling",
    aggregation="weighted_perplexity",
    higher_is_better=False,
)
def per_word(document: Document) -> tuple[float, int]:
    """Log likelihood and number of words."""
    return document.log_likelihood, count_words(document.text)


@register_metric(
    metric="byte_perplexity",
    output_type="loglikelihood_rolling",
    aggregation="weighted_perplexity",
    higher_is_better=False,
)
@register_metric(
    metric="bits_per_byte",
    output_type="loglikelihood_rolling",
    aggregation="bits_per_byte",
    higher_is_better=False,
)
def per_byte(document: Document) -> tuple[float, int]:
    """Log likelihood and number of bytes."""
    return document.log_likelihood, count_bytes(document.text)
