"""Bootstrap and pooling beside lm-evaluation-harness, scipy and a numpy loop: a Markdown table.

`python tests/bench/bench_kernels.py [--runs 5] [--corpus-runs 1] [--only WORD]`

Ours is what a run calls: `estimate` on the rows of a metric (value, standard error and interval),
`compare_tables`, `pooled`. Both sides run in turns, compiled and warm, and the medians are
compared. The harness runs its own `bootstrap_stderr` with its process pool at 2,000 iterations,
times 50; for corpus metrics, which it caps, at its 100 in one process, minutes a run, so once
unless `--corpus-runs` says otherwise. The last column says what was timed and how often. All of it
takes about half an hour; `--corpus-runs 5` two. Without lm-eval its rows are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from xpe.metrics import corpus, get_aggregation
from xpe.stats import Stats, intervals
from xpe.stats.bootstrap import resampled_sums, warm
from xpe.stats.compared import compare_tables
from xpe.stats.estimate import estimate, estimate_all
from xpe.stats.groups import Aggregate, group_estimates
from xpe.stats.items import tabulated
from xpe.stats.pooling import pooled
from xpe.types import Estimate, Metric, Table, TaskResult

N, B = 14_042, 100_000
HARNESS_ITERS, CAP = 2_000, 100
LEAVES, INNER, OUTER = 100_000, 10_000, 1_000
STATS = Stats(bootstrap_iters=B)
BOOTSTRAPPED = ("perplexity", "weighted_perplexity", "median", "f1", "matthews_corrcoef")
CORPUS = tuple(corpus.SCORES)

Run = Callable[[], object]
Source = tuple[Metric, Table]


@dataclass(frozen=True)
class Peer:
    """Who is measured beside; `scale` turns the seconds of one run into those of the task."""

    name: str
    run: Run
    timed: str
    """What one run does."""
    scale: float = 1.0
    runs: int | None = None
    """Instead of as many as ours."""


@dataclass(frozen=True)
class Case:
    """What is measured, and what is required of it."""

    name: str
    ours: Run
    peer: Peer | None = None
    at_least: float | None = None
    """Ratio."""
    below: float | None = None
    """Ratio, from above."""
    at_most: float | None = None
    """Seconds."""


# --- ours ------------------------------------------------------------------------------------


def items() -> dict[str, list[Any]]:
    """What the harness passes to each aggregation: N items a metric."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, N)
    predicted = np.where(rng.random(N) < 0.7, gold, 1 - gold)
    lls = (-rng.exponential(3.0, N)).tolist()
    words = rng.integers(1, 60, N).tolist()
    pairs = list(zip(gold.tolist(), predicted.tolist(), strict=True))
    return {
        "perplexity": lls,
        "weighted_perplexity": list(zip(lls, words, strict=True)),
        "median": lls,
        "f1": pairs,
        "matthews_corrcoef": pairs,
        **dict.fromkeys(CORPUS, sentences()),
    }


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


def source(name: str, held: Sequence[Any]) -> Source:
    """A metric and its rows, as an evaluator leaves them."""
    return Metric(name, get_aggregation(name).kind(name)), tabulated(name, held)[1]


def whole_interval(correct_N: np.ndarray) -> tuple[float, Any, Any]:
    """Standard error, percentile and BCa intervals of an accuracy."""
    means_B = resampled_sums(correct_N[:, None], iters=10_000, seed=1)[:, 0] / N
    left_out_N = (correct_N.sum() - correct_N) / (N - 1)
    value = float(correct_N.mean())
    return (
        float(np.std(means_B, ddof=1)),
        intervals.percentile(means_B),
        intervals.bca(value, means_B, left_out_N),
    )


# --- peers -----------------------------------------------------------------------------------


def numpy_loop(x: np.ndarray, iters: int) -> float:
    rng = np.random.default_rng(0)
    sums = [x[rng.integers(0, N, N)].sum() for _ in range(iters)]
    return float(np.std(sums, ddof=1))


def scipy_bootstrap(x: np.ndarray, iters: int) -> float:
    from scipy.stats import bootstrap

    found = bootstrap((x,), np.sum, n_resamples=iters, batch=50, method="percentile")
    return float(found.standard_error)


def harness(name: str, held: list[Any], iters: int) -> Run | None:
    """The harness's own bootstrap of one of its aggregations; None if it is not installed."""
    try:
        from lm_eval.api import metrics
    except ImportError:
        return None
    aggregation = getattr(metrics, {"f1": "f1_score"}.get(name, name))

    def run() -> float:
        with (
            Path(os.devnull).open("w") as nothing,
            contextlib.redirect_stdout(nothing),
            contextlib.redirect_stderr(nothing),
        ):
            return float(metrics.bootstrap_stderr(aggregation, held, iters))

    return run


def pooled_harness(name: str, held: list[Any]) -> Peer | None:
    run = harness(name, held, HARNESS_ITERS)
    scale = B / HARNESS_ITERS
    return run and Peer("lm-eval", run, f"{HARNESS_ITERS:,} iterations, times {scale:g}", scale)


def capped_harness(name: str, held: list[Any], iters: int, runs: int) -> Peer | None:
    run = harness(name, held, iters)
    timed = f"its {CAP} iterations" if iters == CAP else f"{iters} of its {CAP} iterations, scaled"
    return run and Peer(f"lm-eval, {CAP} only", run, timed, CAP / iters, runs)


# --- the table -------------------------------------------------------------------------------


def one_column(lls: list[float]) -> Iterator[Case]:
    x = np.array(lls)

    ours = partial(resampled_sums, x[:, None], iters=B, seed=1)
    for name, peer, ratio in (("numpy loop", numpy_loop, 8), ("scipy", scipy_bootstrap, 15)):
        timed = f"500 iterations, times {B // 500}"
        run = partial(peer, x, 500)
        yield Case("one column", ours, Peer(name, run, timed, B / 500), at_least=ratio)


def bootstrapped(held: dict[str, list[Any]]) -> Iterator[Case]:
    ratios = {"perplexity": 90, "weighted_perplexity": 1000, "f1": 1e4, "matthews_corrcoef": 1e4}
    for name in BOOTSTRAPPED:
        metric, table = source(name, held[name])
        yield Case(
            name,
            partial(estimate, metric, table, STATS),
            pooled_harness(name, held[name]),
            at_least=ratios.get(name),
        )


def accuracy(pairs: list[tuple[int, int]]) -> Iterator[Case]:
    correct_N = np.array([float(gold == predicted) for gold, predicted in pairs])
    name = "accuracy: stderr + percentile + BCa, 10,000"
    yield Case(name, partial(whole_interval, correct_N), at_most=0.1)


def groups() -> Iterator[Case]:
    rng = np.random.default_rng(2)
    n_L, score_L = rng.integers(2, 500, LEAVES), rng.random(LEAVES)
    stderr_L = rng.random(LEAVES) / 10
    sizes = np.repeat([LEAVES // INNER, LEAVES // OUTER], [INNER, OUTER])
    # Every leaf is a member of its group and of the group above.
    columns = [np.tile(column, 2) for column in (n_L, score_L, stderr_L**2)]
    name = "pooled variance and rows: 100,000 leaves, 11,000 groups"
    yield Case(name, partial(pooled, np.cumsum(sizes), *columns), at_most=0.01)

    tasks = {}
    for i, (n, score, stderr) in enumerate(zip(n_L, score_L, stderr_L, strict=True)):
        made = Estimate(float(score), float(stderr), None, None, n=int(n), count=int(n))
        tasks[f"t{i}"] = TaskResult(f"t{i}", {"acc": made}, int(n), int(n))
    tree = {f"g{i}": Bundle(tuple(f"t{10 * i + j}" for j in range(10))) for i in range(INNER)}
    tree |= {f"h{i}": Bundle(tuple(f"g{10 * i + j}" for j in range(10))) for i in range(OUTER)}
    name = "the same with names, counts and intervals: 11,000 results"
    yield Case(name, partial(group_estimates, tree, tasks, {}, STATS))


@dataclass(frozen=True)
class Bundle:
    """A group of one metric."""

    tasks: tuple[str, ...]
    aggregate_metric_list: tuple[Aggregate, ...] = (Aggregate("acc"),)


def paired(held: list[Any]) -> Iterator[Case]:
    metric, a = source("weighted_perplexity", held)
    b = Table(a.columns, a.rows_NK[::-1].copy(), a.doc_ids, a.scored_N, a.clusters)
    pair = Peer(
        "a paired comparison", partial(compare_tables, metric, a, b, STATS), "the same rows"
    )
    yield Case("one system", partial(estimate, metric, a, STATS), pair, below=2)


def corpora(held: dict[str, list[Any]], iters: int, runs: int) -> Iterator[Case]:
    sources = {name: source(name, held[name]) for name in CORPUS}
    rows_NK = np.hstack([table.rows_NK for _, table in sources.values()])
    columns = f"BLEU + chrF + TER, {rows_NK.shape[1]} columns"
    yield Case(columns, partial(resampled_sums, rows_NK, iters=B, seed=1), at_most=1.6)
    together = "BLEU + chrF + TER, scored, with intervals"
    yield Case(together, partial(estimate_all, sources, STATS), at_most=1.6)
    every = sources | {name: source(name, held[name]) for name in BOOTSTRAPPED}
    name = f"all {len(every)} bootstrapped metrics of a task"
    yield Case(name, partial(estimate_all, every, STATS), at_most=3.0)
    for name, (metric, table) in sources.items():
        yield Case(
            name,
            partial(estimate, metric, table, STATS),
            capped_harness(name, held[name], iters, runs),
            at_least=200,
        )


def measured(case: Case, runs: int) -> tuple[list[float], list[float]]:
    """Seconds of alternating runs; the first, which compiles, is not counted."""
    case.ours()
    peer = case.peer
    theirs = 0 if peer is None else runs if peer.runs is None else peer.runs
    seconds: tuple[list[float], list[float]] = ([], [])
    for i in range(max(runs, theirs)):
        sides = ((case.ours, runs), (peer.run if peer else case.ours, theirs))
        for held, (run, times) in zip(seconds, sides, strict=True):
            if i < times:
                start = time.perf_counter()
                run()
                held.append(time.perf_counter() - start)
    return seconds


def figure(seconds: float) -> str:
    return f"{seconds * 1000:.2g} ms" if seconds < 0.1 else f"{seconds:,.3g} s"


def row(case: Case, runs: int) -> str:
    mine, others = measured(case, runs)
    ours, peer = statistics.median(mine), case.peer
    theirs = statistics.median(others) * peer.scale if peer else math.nan
    wanted = [
        (f">= {case.at_least or 0:,g}x", case.at_least, theirs / ours, 1),
        (f"<= {case.below or 0:,g}x", case.below, theirs / ours, -1),
        (f"<= {figure(case.at_most or 0)}", case.at_most, ours, -1),
    ]
    asked = [(text, (found - limit) * sign >= 0) for text, limit, found, sign in wanted if limit]
    beside = f"; {len(others)} x {peer.timed}" if peer else ""
    cells = (
        case.name,
        figure(ours),
        peer.name if peer else "",
        figure(theirs) if peer else "",
        f"{theirs / ours:,.3g}x" if peer else "",
        ", ".join(text for text, _ in asked),
        ", ".join("yes" if held else "no" for _, held in asked),
        f"{len(mine)} x ours{beside}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--corpus-runs", type=int, default=1)
    parser.add_argument("--corpus-iters", type=int, default=CAP)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warm().join()
    held = items()
    print(f"n = {N:,}, {B:,} resamples, {len(os.sched_getaffinity(0))} CPUs\n")
    print("| what | xpe | peer | peer takes | ratio | wanted | held | timed |")
    print("|---|---|---|---|---|---|---|---|")
    for cases in (
        one_column(held["perplexity"]),
        bootstrapped(held),
        accuracy(held["f1"]),
        groups(),
        paired(held["weighted_perplexity"]),
        corpora(held, options.corpus_iters, options.corpus_runs),
    ):
        for case in cases:
            absent = case.peer is None and case.at_least is not None
            beside = case.peer.name if case.peer else ""
            if options.only in f"{case.name} {beside}" and not absent:
                print(row(case, options.runs), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
