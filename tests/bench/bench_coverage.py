"""How often the default 95 % intervals hold the truth: simulated, not assumed.

Shares: independent answers for p in {.5, .9, .97} and n in {30, 300, 3000}; Wald's interval
stands beside ours. Clusters: 50 of 10 answers with intra-cluster correlation .3; the interval
that ignores the clusters stands beside ours. Fails if one of ours holds less than 93 %.
"""

from __future__ import annotations

import sys

import numpy as np

from xpe.stats import intervals
from xpe.stats.closed import mean_stderr
from xpe.stats.estimate import estimate
from xpe.stats.settings import Stats
from xpe.types import Float, Mean, Metric, Table

RUNS, AT_LEAST, ICC = 4000, 0.93, 0.3
SETTINGS = Stats(bootstrap_iters=0)


def holds(interval: tuple[float, float] | None, p: float) -> bool:
    return interval is not None and interval[0] <= p <= interval[1]


def ours(answers_N: Float, clusters: tuple[str | None, ...]) -> tuple[float, float] | None:
    n = len(answers_N)
    everywhere = np.ones(n, dtype=bool)
    table = Table(("x",), answers_N[:, None], tuple(range(n)), everywhere, clusters)
    return estimate(Metric("acc", Mean("x")), table, SETTINGS).ci


def independent(rng: np.random.Generator, p: float, n: int) -> tuple[float, float]:
    """Share of runs in which our interval, and Wald's, holds p; each count is tried once."""
    times = np.bincount(rng.binomial(n, p, RUNS), minlength=n + 1)
    held = wald = 0
    for k in np.flatnonzero(times):
        answers_N = np.repeat([1.0, 0.0], [k, n - k])
        held += times[k] * holds(ours(answers_N, (None,) * n), p)
        wald += times[k] * holds(intervals.normal(k / n, mean_stderr(answers_N)), p)
    return held / RUNS, wald / RUNS


def clustered(rng: np.random.Generator, p: float, groups: int, size: int) -> tuple[float, float]:
    """Share of runs in which the clustered, and the plain, interval holds p."""
    names = tuple(str(place // size) for place in range(groups * size))
    spread = 1 / ICC - 1
    held = plain = 0
    for _ in range(RUNS // 4):
        # Beta-binomial: the correlation of two answers of a cluster is 1 / (a + b + 1).
        shares_G = rng.beta(p * spread, (1 - p) * spread, groups)
        answers_N = (rng.random((groups, size)) < shares_G[:, None]).astype(float).ravel()
        held += holds(ours(answers_N, names), p)
        plain += holds(ours(answers_N, (None,) * len(names)), p)
    return held / (RUNS // 4), plain / (RUNS // 4)


def main() -> int:
    rng = np.random.default_rng(20)
    worst = 1.0
    print("independent answers      xpe   Wald")
    for p in (0.5, 0.9, 0.97):
        for n in (30, 300, 3000):
            held, wald = independent(rng, p, n)
            worst = min(worst, held)
            print(f"  p={p:<5} n={n:<6}      {held:6.1%} {wald:6.1%}")
    print("clusters, ICC .3         xpe   ignored")
    for groups, size in ((50, 10), (8, 5)):
        for p in (0.5, 0.9):
            held, plain = clustered(rng, p, groups, size)
            # Eight clusters are shown, not asked for.
            worst = min(worst, held) if groups == 50 else worst
            print(f"  p={p:<5} {groups:>2} of {size:<6}     {held:6.1%} {plain:6.1%}")
    print(f"lowest of those asked for: {worst:.1%} (at least {AT_LEAST:.0%})")
    return int(worst < AT_LEAST)


if __name__ == "__main__":
    sys.exit(main())
