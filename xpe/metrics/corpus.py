"""Corpus BLEU, chrF and TER from the statistics of single sentences.

sacrebleu counts a sentence; the scores are its formulas, written for arrays, so that error bars,
groups and comparisons need sums only (Papineni et al. 2002; Popović 2015; Snover et al. 2006).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Literal, TypeAlias

import numpy as np

from xpe.metrics.aggregations import AGGREGATIONS, OfRows
from xpe.metrics.edits import LONG, edits
from xpe.metrics.registered import register_metric
from xpe.text.tokenisers import Language, language_of
from xpe.types import Float, Sums

Name: TypeAlias = Literal["bleu", "chrf", "ter"]

ORDER = 4
"""Longest n-gram of BLEU."""
CHAR_ORDER = 6
"""Longest character n-gram of chrF."""
BETA = 2
"""How much more recall weighs than precision in chrF."""
_LOG_OF_ZERO = -9999999999.0


def statistics(
    name: Name, prediction: str, references: Sequence[str], language: Language
) -> list[float]:
    """Return what sacrebleu counts in one sentence; lengths as in `SUFFIXES`."""
    scorer = _scorer(name, language)
    if name == "ter":
        return edits(scorer, prediction, references)
    counted: list[list[float]] = scorer._extract_corpus_statistics(  # noqa: SLF001
        [prediction], [[reference] for reference in references]
    )
    return counted[0]


@cache
def _scorer(name: Name, language: Language) -> Any:
    from sacrebleu.metrics import BLEU, CHRF, TER

    # Its warning is about corpora that it sees whole; here it sees one sentence at a time.
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    chinese = language == "zh"
    makers: dict[Name, Callable[[], Any]] = {
        "bleu": partial(BLEU, tokenize="zh" if chinese else "13a"),
        "chrf": CHRF,
        # Without it a Chinese sentence is one word, and TER is 0 or 100.
        "ter": partial(TER, normalized=chinese, asian_support=chinese),
    }
    return makers[name]()


def signature(name: Name, language: Language | Literal["auto"] = "auto") -> str:
    """Return sacrebleu's signature; `auto` names both tokenizers, chosen by each sample.

    `exact:200w` says up to how many words of a prediction TER is sacrebleu's own.
    """
    chinese = {"zh": "yes", "en": "no", "auto": "auto"}[language]
    tokenizer = {"zh": "zh", "en": "13a", "auto": "auto(zh,13a)"}[language]
    parts = {
        "bleu": f"case:mixed|eff:no|tok:{tokenizer}|smooth:exp",
        "chrf": f"case:mixed|eff:yes|nc:{CHAR_ORDER}|nw:0|space:no",
        "ter": f"case:lc|tok:tercom|norm:{chinese}|punct:yes|asian:{chinese}|exact:{LONG}w",
    }
    return f"nrefs:var|{parts[name]}|version:{version('sacrebleu')}"


# --- functions of sums: (..., K) to (...) ----------------------------------------------------


def bleu(sums: Float) -> Float:
    """BLEU, 0–100, of [hypothesis length, reference length, 4 hits, 4 totals]."""
    length, wanted = sums[..., 0], sums[..., 1]
    hits, totals = sums[..., 2 : 2 + ORDER], sums[..., 2 + ORDER :]
    asked = totals > 0
    # Smoothing of mteval-v13a: the i-th order without a hit counts 1 / 2**i of one.
    smoothed = 0.5 ** np.cumsum(asked & (hits == 0), axis=-1)
    precisions = np.where(hits > 0, hits, smoothed) / np.where(asked, totals, 1)
    logs = np.where(asked, np.log(100 * precisions), _LOG_OF_ZERO)
    with np.errstate(over="ignore"):
        short = np.exp(1 - wanted / np.where(length > 0, length, 1))
    penalty = np.where(length < wanted, np.where(length > 0, short, 0.0), 1.0)
    value: Float = np.where(hits.any(axis=-1), penalty * np.exp(logs.sum(axis=-1) / ORDER), 0.0)
    return value


def chrf(sums: Float) -> Float:
    """Character F-score, 0–100, of [hypothesis n-grams, reference n-grams, matches] by order."""
    by_order = sums.reshape(*sums.shape[:-1], CHAR_ORDER, 3)
    made, wanted, hits = by_order[..., 0], by_order[..., 1], by_order[..., 2]
    both = (made > 0) & (wanted > 0)
    orders = np.maximum(both.sum(axis=-1), 1)
    precision = (np.where(both, hits, 0) / np.where(both, made, 1)).sum(axis=-1) / orders
    recall = (np.where(both, hits, 0) / np.where(both, wanted, 1)).sum(axis=-1) / orders
    below = BETA**2 * precision + recall
    share = (1 + BETA**2) * precision * recall / np.where(below > 0, below, 1)
    value: Float = np.where(below > 0, 100 * share, 0.0)
    return value


def ter(sums: Float) -> Float:
    """Translation edit rate, in percent, of [edits, mean reference length]."""
    edits, wanted = sums[..., 0], sums[..., 1]
    without = np.where(edits > 0, 100.0, 0.0)
    value: Float = np.where(wanted > 0, 100 * edits / np.where(wanted > 0, wanted, 1), without)
    return value


SUFFIXES: dict[Name, tuple[str, ...]] = {
    "bleu": (
        "length",
        "wanted",
        *(f"hits_{n + 1}" for n in range(ORDER)),
        *(f"total_{n + 1}" for n in range(ORDER)),
    ),
    "chrf": tuple(
        f"{part}_{n + 1}" for n in range(CHAR_ORDER) for part in ("made", "wanted", "hits")
    ),
    "ter": ("edits", "wanted"),
}
SCORES: dict[Name, Callable[[Float], Float]] = {"bleu": bleu, "chrf": chrf, "ter": ter}


def columns_of(name: Name, metric: str) -> tuple[str, ...]:
    """Return the names of the columns in which `metric` keeps the statistics of `name`."""
    return tuple(f"{metric}.{suffix}" for suffix in SUFFIXES[name])


# --- as registered metrics -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """The item of a corpus metric: `(references, prediction)`, and the language of both."""

    references: Sequence[str]
    prediction: str
    language: Language | Literal["auto"] = "auto"

    @classmethod
    def of(cls, item: Any) -> Pair:
        """Take an item as the harness makes them: one reference or several, a prediction."""
        if isinstance(item, Pair):
            return item
        references, prediction = item
        return cls([references] if isinstance(references, str) else list(references), prediction)

    @property
    def spoken(self) -> Language:
        """The language given, else that of the references."""
        return language_of("".join(self.references)) if self.language == "auto" else self.language


def _row(name: Name, item: Any) -> list[float]:
    pair = Pair.of(item)
    return statistics(name, pair.prediction, pair.references, pair.spoken)


def _sums(name: Name, columns: tuple[str, ...]) -> Sums:
    return Sums(columns, SCORES[name])


def _pair(
    *,
    predictions: Sequence[str],
    references: Sequence[str],
    language: Language | Literal["auto"] = "auto",
) -> Pair:
    return Pair(references, predictions[0], language)


for _name in SCORES:
    AGGREGATIONS[_name] = OfRows(SUFFIXES[_name], partial(_row, _name), partial(_sums, _name))
    register_metric(
        metric=_name,
        aggregation=_name,
        higher_is_better=_name != "ter",
        signature=partial(signature, _name),
    )(_pair)
