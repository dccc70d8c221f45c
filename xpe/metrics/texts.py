"""Metrics of generated texts: exact match, and what repeats of a question allow."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence

from xpe.metrics.registered import register_metric

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_DIGITS = str.maketrans("", "", string.digits)


def cleaned(
    text: str,
    *,
    regexes_to_ignore: Sequence[str] = (),
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
) -> str:
    """Return `text` without what is ignored: patterns in their order, case, ASCII signs, digits."""
    for pattern in regexes_to_ignore:
        text = re.sub(pattern, "", text)
    text = text.lower() if ignore_case else text
    text = text.translate(_NO_PUNCTUATION) if ignore_punctuation else text
    return text.translate(_NO_DIGITS) if ignore_numbers else text


@register_metric(metric="exact_match", output_type="generate_until")
def exact_match(
    *, predictions: Sequence[str], references: Sequence[str], **ignored: bool | Sequence[str]
) -> float:
    """Share of predictions that equal a reference once both are `cleaned`."""
    right = {cleaned(text, **ignored) for text in references}  # type: ignore[arg-type]
    hits = [cleaned(text, **ignored) in right for text in predictions]  # type: ignore[arg-type]
    return sum(hits) / len(hits)


@register_metric(metric="avg@k", repeats=True)
def avg_at_k(
    *,
    predictions: Sequence[str],
    references: Sequence[str],
    k: int | None = None,
    **ignored: bool | Sequence[str],
) -> float:
    """Share of the first `k` repeats that are right; all of them for None, NaN if too few."""
    if k is not None and len(predictions) < k:
        return math.nan
    return exact_match(predictions=predictions[:k], references=references, **ignored)


@register_metric(metric="maj@k", repeats=True)
def maj_at_k(
    *,
    predictions: Sequence[str],
    references: Sequence[str],
    k: int | None = None,
    **ignored: bool | Sequence[str],
) -> float:
    """Whether the most frequent of the first `k` repeats is right; the first among equals."""
    if k is not None and len(predictions) < k:
        return math.nan
    votes = Counter(cleaned(text, **ignored) for text in predictions[:k])  # type: ignore[arg-type]
    return exact_match(
        predictions=[votes.most_common(1)[0][0]],
        references=[cleaned(text, **ignored) for text in references],  # type: ignore[arg-type]
    )


@register_metric(metric="pass@k", aggregation="nanmean", repeats=True)
def pass_at_k(
    *,
    predictions: Sequence[str],
    references: Sequence[str],
    k: int = 1,
    **ignored: bool | Sequence[str],
) -> float:
    """Chance that one of `k` repeats drawn from all is right (Chen et al. 2021); NaN if n < k."""
    n = len(predictions)
    right = round(n * exact_match(predictions=predictions, references=references, **ignored))
    return pass_rate(n, right, k)


@register_metric(metric="pass^k", aggregation="nanmean", repeats=True)
def pass_hat_k(
    *,
    predictions: Sequence[str],
    references: Sequence[str],
    k: int = 1,
    **ignored: bool | Sequence[str],
) -> float:
    """Chance that all of `k` repeats drawn from all are right (Yao et al. 2024); NaN if n < k."""
    n = len(predictions)
    right = round(n * exact_match(predictions=predictions, references=references, **ignored))
    return pass_all_rate(n, right, k)


def pass_all_rate(n: int, right: int, k: int) -> float:
    """Return C(right, k) / C(n, k), the unbiased estimate of pass^k; NaN for k > n."""
    if not 1 <= k <= n:
        return math.nan
    return math.comb(right, k) / math.comb(n, k)


def pass_rate(n: int, right: int, k: int) -> float:
    """Return 1 − C(n − right, k) / C(n, k), the unbiased estimate of pass@k; NaN for k > n."""
    if not 1 <= k <= n:
        return math.nan
    return 1 - math.comb(n - right, k) / math.comb(n, k)
