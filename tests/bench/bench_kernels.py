"""Bootstrap and pooling beside lm-evaluation-harness, scipy and a numpy loop: a Markdown table.

`python tests/bench/bench_kernels.py [--runs 5] [--slow-runs 1] [--only WORD]`

Both sides run in turns, compiled and warm, and the medians are compared. The harness runs its own
`bootstrap_stderr` with its process pool: 2,000 iterations, times 50; for corpus metrics, which it
caps at 100 in one process, `CORPUS_ITERS`, scaled to 100. What takes it more than half a minute is
run `--slow-runs` times. Without lm-eval its rows are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xpe.metrics import corpus
from xpe.stats import intervals
from xpe.stats.bootstrap import resampled_quantiles, resampled_sums, resampled_together, warm
from xpe.stats.tree import pooled_tree

N, B = 14_042, 100_000
HARNESS_ITERS, CORPUS_ITERS = 2_000, 2
LEAVES, GROUPS = 100_000, 11_000

Run = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """What is measured; `scale` turns a peer's seconds into those of its whole task."""

    name: str
    ours: Run
    peer: str = ""
    theirs: Run | None = None
    scale: float = 1.0
    at_least: float | None = None
    """Required ratio."""
    below: float | None = None
    """Required ratio, from above."""
    at_most: float | None = None
    """Required seconds."""
    slow: bool = False


def spread(replicates: np.ndarray) -> float:
    return float(np.std(replicates, ddof=1))


# --- ours ------------------------------------------------------------------------------------


def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, N)
    predicted = np.where(rng.random(N) < 0.7, gold, 1 - gold)
    return {
        "ll": -rng.exponential(3.0, N),
        "words": rng.integers(1, 60, N).astype(float),
        "gold": gold,
        "predicted": predicted,
        "cells": np.eye(4)[2 * gold + predicted],
        "corpus": rng.integers(0, 60, (N, 30)).astype(float),
    }


def perplexity(x: np.ndarray) -> float:
    return spread(np.exp(-resampled_sums(x[:, None], iters=B, seed=1)[:, 0] / N))


def weighted(x: np.ndarray, words: np.ndarray) -> float:
    sums_BK = resampled_sums(np.stack([x, words], axis=1), iters=B, seed=1)
    return spread(np.exp(-sums_BK[:, 0] / sums_BK[:, 1]))


def f1(cells_N4: np.ndarray) -> float:
    _, fp, fn, tp = resampled_sums(cells_N4, iters=B, seed=1).T
    return spread(2 * tp / (2 * tp + fp + fn))


def mcc(cells_N4: np.ndarray) -> float:
    tn, fp, fn, tp = resampled_sums(cells_N4, iters=B, seed=1).T
    below = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return spread((tp * tn - fp * fn) / below)


def median(x: np.ndarray) -> float:
    return spread(resampled_quantiles(x, 0.5, iters=B, seed=1))


def corpus_scores(rows_NK: np.ndarray) -> list[float]:
    sums_BK = resampled_sums(rows_NK, iters=B, seed=1)
    parts = {"bleu": sums_BK[:, :10], "chrf": sums_BK[:, 10:28], "ter": sums_BK[:, 28:]}
    return [spread(corpus.SCORES[name](part)) for name, part in parts.items()]  # type: ignore[index]


def corpus_score(name: str, rows_NK: np.ndarray) -> float:
    return spread(corpus.SCORES[name](resampled_sums(rows_NK, iters=B, seed=1)))  # type: ignore[index]


def whole_interval(correct_N: np.ndarray) -> tuple[float, Any, Any]:
    """Standard error, percentile and BCa intervals of an accuracy."""
    means_B = resampled_sums(correct_N[:, None], iters=10_000, seed=1)[:, 0] / N
    left_out_N = (correct_N.sum() - correct_N) / (N - 1)
    value = float(correct_N.mean())
    return (
        spread(means_B),
        intervals.percentile(means_B),
        intervals.bca(value, means_B, left_out_N),
    )


# --- peers -----------------------------------------------------------------------------------


def numpy_loop(x: np.ndarray, iters: int) -> float:
    rng = np.random.default_rng(0)
    return spread(np.array([x[rng.integers(0, N, N)].sum() for _ in range(iters)]))


def scipy_bootstrap(x: np.ndarray, iters: int) -> float:
    from scipy.stats import bootstrap

    found = bootstrap((x,), np.sum, n_resamples=iters, batch=50, method="percentile")
    return float(found.standard_error)


def harness(name: str, items: list[Any], iters: int) -> Run | None:
    """The harness's own bootstrap of one of its aggregations; None if it is not installed."""
    try:
        from lm_eval.api import metrics
    except ImportError:
        return None

    def run() -> float:
        with (
            Path(os.devnull).open("w") as nothing,
            contextlib.redirect_stdout(nothing),
            contextlib.redirect_stderr(nothing),
        ):
            return float(metrics.bootstrap_stderr(getattr(metrics, name), items, iters))

    return run


def sentences() -> list[tuple[str, str]]:
    """References and predictions of about 20 words, of which every fifth differs."""
    rng = np.random.default_rng(1)
    vocabulary = np.array([f"w{i:x}ord{i % 7}" for i in range(5000)])
    made = []
    for _ in range(N):
        words = vocabulary[rng.integers(0, 5000, rng.integers(10, 30))]
        other = np.where(rng.random(len(words)) < 0.2, rng.choice(vocabulary, len(words)), words)
        made.append((" ".join(words), " ".join(other)))
    return made


# --- the table -------------------------------------------------------------------------------


def one_column(held: dict[str, np.ndarray]) -> Iterator[Case]:
    x = held["ll"]
    pairs = list(zip(held["gold"].tolist(), held["predicted"].tolist(), strict=True))
    weights = list(zip(x.tolist(), held["words"].tolist(), strict=True))
    scale = B / HARNESS_ITERS

    def column() -> object:
        return resampled_sums(x[:, None], iters=B, seed=1)

    yield Case("one column", column, "numpy loop", lambda: numpy_loop(x, 500), B / 500, 8)
    yield Case("one column", column, "scipy", lambda: scipy_bootstrap(x, 500), B / 500, 15)
    for name, ours, items, ratio in (
        ("perplexity", lambda: perplexity(x), x.tolist(), 90),
        ("weighted_perplexity", lambda: weighted(x, held["words"]), weights, 1000),
        ("median", lambda: median(x), x.tolist(), None),
        ("f1_score", lambda: f1(held["cells"]), pairs, 10_000),
        ("matthews_corrcoef", lambda: mcc(held["cells"]), pairs, 10_000),
    ):
        theirs = harness(name, items, HARNESS_ITERS)
        slow = name in ("f1_score", "matthews_corrcoef")
        yield Case(name, ours, "lm-eval", theirs, scale, ratio, slow=slow)


def many_columns(held: dict[str, np.ndarray]) -> Iterator[Case]:
    rows_NK = held["corpus"]
    name = "BLEU + chrF + TER, 30 columns"
    yield Case(name, lambda: resampled_sums(rows_NK, iters=B, seed=1), at_most=1.6)
    yield Case(f"{name}, scored", lambda: corpus_scores(rows_NK), at_most=3.0)
    texts = sentences()
    for metric in corpus.SCORES:
        counted_NK = np.array(
            [corpus.statistics(metric, out, [reference], "en") for reference, out in texts]
        )

        def ours(metric: str = metric, counted_NK: np.ndarray = counted_NK) -> object:
            return corpus_score(metric, counted_NK)

        theirs = harness(metric, texts, CORPUS_ITERS)
        scale = 100 / CORPUS_ITERS
        yield Case(metric, ours, "lm-eval, 100 only", theirs, scale, 200, slow=True)


def others(held: dict[str, np.ndarray]) -> Iterator[Case]:
    correct_N = (held["gold"] == held["predicted"]).astype(float)
    yield Case(
        "accuracy: stderr + percentile + BCa, 10,000",
        lambda: whole_interval(correct_N),
        at_most=0.1,
    )
    rng = np.random.default_rng(2)
    inner = GROUPS * 10 // 11
    tree = (
        np.arange(LEAVES) * inner // LEAVES,
        rng.integers(2, 500, LEAVES).astype(float),
        rng.random(LEAVES),
        rng.random(LEAVES) / 10,
        np.append(inner + np.arange(inner) // 10, -np.ones(GROUPS - inner, int)),
    )
    yield Case(
        "pooled rows: 100,000 leaves, 11,000 groups", lambda: pooled_tree(*tree), at_most=0.01
    )
    rows_NK = np.stack([held["ll"], held["words"]], axis=1)
    other_NK = rows_NK[::-1].copy()

    def pair() -> object:
        return resampled_together([rows_NK, other_NK], iters=B, seed=1)

    def one() -> object:
        return resampled_sums(rows_NK, iters=B, seed=1)

    yield Case("one system", one, "a paired comparison", pair, below=2)


def measured(case: Case, runs: int) -> tuple[float, float | None]:
    """Medians of alternating runs; the first, which compiles, is not counted."""
    case.ours()
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for side, run in zip(seconds, (case.ours, case.theirs), strict=True):
            if run is not None:
                start = time.perf_counter()
                run()
                side.append(time.perf_counter() - start)
    ours, theirs = seconds
    return statistics.median(ours), statistics.median(theirs) * case.scale if theirs else None


def figure(seconds: float) -> str:
    return f"{seconds * 1000:.2g} ms" if seconds < 0.1 else f"{seconds:,.3g} s"


def row(case: Case, runs: int) -> str:
    ours, theirs = measured(case, runs)
    ratio = theirs / ours if theirs is not None else math.nan
    wanted = [
        (f">= {case.at_least or 0:,g}x", case.at_least, ratio, 1),
        (f"<= {case.below or 0:,g}x", case.below, ratio, -1),
        (f"<= {figure(case.at_most or 0)}", case.at_most, ours, -1),
    ]
    asked = [(text, (found - limit) * sign >= 0) for text, limit, found, sign in wanted if limit]
    cells = (
        case.name,
        figure(ours),
        case.peer,
        figure(theirs) if theirs is not None else "",
        f"{ratio:,.3g}x" if theirs is not None else "",
        ", ".join(text for text, _ in asked),
        ", ".join("yes" if held else "no" for _, held in asked),
        str(runs),
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--slow-runs", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warm().join()
    held = data()
    print(f"n = {N:,}, {B:,} resamples, {len(os.sched_getaffinity(0))} CPUs\n")
    print("| what | xpe | peer | peer takes | ratio | wanted | held | runs |")
    print("|---|---|---|---|---|---|---|---|")
    for made in (one_column, others, many_columns):
        for case in made(held):
            missing = case.peer.startswith("lm-eval") and case.theirs is None
            if options.only in f"{case.name} {case.peer}" and not missing:
                print(row(case, options.slow_runs if case.slow else options.runs), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
