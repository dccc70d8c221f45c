from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from xpe.errors import DataError
from xpe.stats.estimate import estimate, estimate_all
from xpe.stats.settings import Stats
from xpe.types import Estimate, Items, Kind, Mean, Metric, Order, Ratio, Sums, Table

QUICK = Stats(bootstrap_iters=2_000)
SCORED = [1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1]


def table(
    scored: Sequence[bool] | None = None,
    clusters: Sequence[str | None] | None = None,
    **columns: Sequence[float],
) -> Table:
    n = len(next(iter(columns.values())))
    return Table(
        tuple(columns),
        np.array(list(columns.values()), dtype=float).T.reshape(n, len(columns)),
        tuple(range(100, 100 + n)),
        np.array([True] * n if scored is None else scored, dtype=bool),
        tuple(clusters or [None] * n),
    )


def of(kind: Kind, rows: Table, how: Stats = QUICK, **more: object) -> Estimate:
    return estimate(Metric("m", kind), rows, how, **more)  # type: ignore[arg-type]


def test_share_has_closed_error_and_wilson_interval() -> None:
    """0/1 values: S1 and S9."""
    made = of(Mean("x"), table(x=SCORED))
    assert made.value == 0.7
    assert made.stderr == pytest.approx(0.1051314966, abs=5e-11)
    assert (made.ci_method, made.ci) == ("wilson", pytest.approx((0.481027, 0.854523), abs=5e-7))
    assert (made.n, made.count, made.min, made.max, made.partial) == (20, 20, 0.0, 1.0, False)


def test_other_means_have_a_t_interval() -> None:
    """Scores between 0 and 1: scipy.stats.t.interval."""
    from scipy import stats

    x = [0.1, 0.5, 0.25, 0.9, 0.3]
    made = of(Mean("x"), table(x=x))
    expected = stats.t.interval(0.95, 4, np.mean(x), stats.sem(x))
    assert (made.ci_method, made.ci) == ("t", pytest.approx(expected))


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("clopper_pearson", "clopper_pearson"),
        ("percentile", "percentile"),
        ("bca", "bca"),
        ("t", "t"),
        ("none", None),
    ],
)
def test_named_interval_is_taken(name: str, method: str | None) -> None:
    """The config chooses the interval."""
    made = of(Mean("x"), table(x=SCORED), Stats(bootstrap_iters=2_000, interval=name))  # type: ignore[arg-type]
    assert made.ci_method == method
    assert made.stderr == pytest.approx(0.1051314966)


def test_no_interval_reaches_beyond_the_limits() -> None:
    """Scores in [0, 1] near 0 have a t interval below 0; it is cut where no score can lie."""
    rows = table(s=[0.0, 0.0, 0.1])
    free = estimate(Metric("s", Mean("s")), rows, QUICK)
    held = estimate(Metric("s", Mean("s"), limits=(0.0, 1.0)), rows, QUICK)

    # mean 1/30, stderr 1/30, t(0.975, 2) = 4.302653
    assert free.ci == pytest.approx((1 / 30 - 4.302653 / 30, 1 / 30 + 4.302653 / 30), abs=1e-6)
    assert held.ci == pytest.approx((0.0, 1 / 30 + 4.302653 / 30), abs=1e-6)


def test_named_interval_that_does_not_fit_gives_way() -> None:
    """Wilson is for 0/1 values; a median under it has its own interval."""
    made = of(Order("x"), table(x=[0.5, 2, 3, 9]), Stats(bootstrap_iters=2_000, interval="wilson"))
    assert made.ci_method == "percentile"


def test_clusters_widen_error_and_interval() -> None:
    """S4b: the corrected clustered error, Wilson on the effective size."""
    x = np.repeat([1, 0, 1, 1, 0, 0, 1, 0], 5)
    x[[3, 8, 22]] = 0, 1, 0
    names = [str(i // 5) for i in range(40)]
    made = of(Mean("x"), table(x=x.tolist(), clusters=names))
    plain = of(Mean("x"), table(x=x.tolist()))
    assert made.stderr == pytest.approx(0.1732051, abs=5e-8)
    assert made.ci_method == "wilson"
    assert made.ci is not None
    assert plain.ci is not None
    assert made.ci[1] - made.ci[0] > 1.9 * (plain.ci[1] - plain.ci[0])
    by_t = of(Mean("x"), table(x=x.tolist(), clusters=names), Stats(interval="t"))
    assert by_t.ci == pytest.approx((0.090435, 0.909565), abs=5e-7)


def test_all_right_in_clusters_counts_the_clusters() -> None:
    """Without spread the design effect is unknown: ten clusters are worth ten samples."""
    made = of(Mean("x"), table(x=[1] * 50, clusters=[str(i // 5) for i in range(50)]))
    assert made.ci is not None
    assert made.ci[0] < 0.7


@pytest.mark.parametrize(
    ("values", "clusters", "why"),
    [([], None, "no samples"), ([1], None, "n=1"), ([1, 0, 1], ["a"] * 3, "one cluster")],
)
@pytest.mark.parametrize("kind", [Mean("x"), Sums(("x",), lambda s: s[..., 0]), Order("x")])
def test_unknown_error_is_none_with_a_reason(
    values: list[float], clusters: list[str] | None, why: str, kind: Kind
) -> None:
    """One sample or one cluster has no error; it is never 0."""
    made = of(kind, table(x=values, clusters=clusters))
    assert (made.stderr, made.why) == (None, why)


def test_bootstrap_off_leaves_closed_forms() -> None:
    """`bootstrap_iters=0`: null with a reason for bootstrapped errors only."""
    off = Stats(bootstrap_iters=0)
    assert of(Mean("x"), table(x=SCORED), off).stderr is not None
    made = of(Ratio("x", "y"), table(x=[1, 2, 3], y=[2, 3, 4]), off)
    assert (made.value, made.stderr, made.ci, made.why) == (pytest.approx(6 / 9), None, None, "off")
    assert of(Mean("x"), table(x=SCORED), off, compat="lm_eval").stderr is None


def test_unscored_rows_are_counted_and_bounded() -> None:
    """Failed requests leave the value, not the denominator's sight: n, partial, bounds."""
    rows = table(
        x=[1, 1, 1, 0, 0],
        failed=[0, 0, 0, 0, 1],
        unparsed=[0, 0, 0, 1, 0],
        scored=[True, True, True, True, False],
    )
    made = of(Mean("x"), rows)
    assert (made.value, made.n, made.count, made.n_failed) == (0.75, 5, 4, 1)
    assert (made.partial, made.bounds, made.n_unparsed) == (True, (0.6, 0.8), 1)


def test_bounds_follow_the_direction_and_known_limits() -> None:
    """Worst first, best second; without a worst and best there are none."""
    rows = table(x=[0.2, 0.4, 0], failed=[0, 0, 1], scored=[True, True, False])
    metric = Metric("m", Mean("x"), higher_is_better=False, limits=(0.0, 1.0))
    assert estimate(metric, rows, QUICK).bounds == pytest.approx((1.6 / 3, 0.2))
    assert of(Mean("x"), rows).bounds is None


def test_judge_failures_are_missing_not_zero() -> None:
    """An answer whose judge failed has no score there, counts as missing, and shows in bounds."""
    rows = table(x=[1, 1, 0, 0], judged=[1, 1, 1, 0], failed=[0, 0, 0, 1])
    made = of(Mean("x", of="judged"), rows)
    assert made.value == pytest.approx(2 / 3)
    assert (made.n, made.count, made.n_failed, made.partial) == (4, 3, 1, True)
    assert made.bounds == (0.5, 0.75)


def test_rows_outside_a_metric_are_not_missing() -> None:
    """A sample that the metric does not concern is neither counted nor missed."""
    made = of(Mean("x", of="asked"), table(x=[1, 0, 0], asked=[1, 1, 0]))
    assert (made.value, made.count, made.n, made.partial, made.bounds) == (0.5, 2, 3, False, None)


def test_running_estimate_knows_the_size_of_the_task() -> None:
    """Three answers of ten so far: the rest is missing."""
    made = of(Mean("x"), table(x=[1, 0, 1]), n_task=10)
    assert (made.n, made.count, made.partial) == (10, 3, True)
    assert made.bounds == (0.2, 0.9)


def test_ratio_is_of_sums_with_delta_error_on_request() -> None:
    """S20, and rows with nothing in either column are not behind the value."""
    m, h = [9, 4, 7, 10, 3, 8, 6, 5, 0], [12, 9, 10, 13, 8, 10, 11, 9, 0]
    made = of(Ratio("m", "h"), table(m=m, h=h), Stats(method="exact"))
    assert made.value == pytest.approx(0.6341463, abs=5e-8)
    assert made.stderr == pytest.approx(0.0535414, abs=5e-8)
    assert made.count == 8
    assert of(Ratio("m", "h"), table(m=m, h=h), Stats()).stderr == pytest.approx(0.051, rel=0.01)
    assert of(Ratio("m", "h"), table(m=[0], h=[0])).why == "no samples"


def test_function_of_sums_is_resampled_and_scored_alone() -> None:
    """Replicates of a linear score are those of its mean; single rows give min and max."""
    x = list(np.random.default_rng(1).exponential(size=300))
    kind = Sums(("x", "one"), lambda s: s[..., 0] / s[..., 1])
    made = of(kind, table(x=x, one=[1] * 300), Stats(bootstrap_iters=20_000))
    assert made.stderr == pytest.approx(np.std(x) / math.sqrt(300), rel=3 / math.sqrt(40_000))
    assert (made.min, made.max) == (pytest.approx(min(x)), pytest.approx(max(x)))


def test_undefined_replicates_are_counted() -> None:
    """A ratio whose denominator can vanish says in how many replicates it did."""
    made = of(
        Sums(("a", "b"), lambda s: s[..., 0] / s[..., 1]), table(a=[1, 0, 0], b=[1, 0, 0]), QUICK
    )
    share = made.extra["undefined_replicates"] / 2_000
    assert share == pytest.approx((2 / 3) ** 3, abs=0.04)


def test_same_seed_same_error_other_seed_another() -> None:
    """The bootstrap is seeded; threads change nothing."""
    rows = table(x=list(np.random.default_rng(2).normal(size=100)))
    errors = [
        of(Order("x"), rows, Stats(bootstrap_iters=500, seed=seed, threads=threads)).stderr
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    ]
    assert errors[0] == errors[1] != errors[2]


@pytest.mark.parametrize("quantile", [0.5, 0.25, 0.9, 0.0, 1.0])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_exact_error_of_a_quantile_is_that_of_all_resamples(n: int, quantile: float) -> None:
    """All n^n resamples of a small sample, interpolated quantiles included."""
    x = np.array([0.3, 7.0, 2.5, -1.0, 4.0])[:n]
    every = np.quantile(list(itertools.product(x, repeat=n)), quantile, axis=1)
    made = of(Order("x", quantile), table(x=list(x)), Stats(method="exact"))
    assert made.stderr == pytest.approx(every.std(), abs=1e-9)
    assert made.value == np.quantile(x, quantile)


def test_objects_are_aggregated_by_any_function() -> None:
    """A function of a list is resampled by index."""
    rows = replace(table(x=[0] * 30), items={"w": tuple("ab" * 15)})
    made = of(Items("w", lambda ws: ws.count("a") / len(ws)), rows)
    assert made.value == 0.5
    assert made.stderr == pytest.approx(0.5 / math.sqrt(30), rel=0.06)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_must_be_finite(bad: float) -> None:
    """NaN and infinity name column and document."""
    for kind in (Mean("x"), Ratio("x", "x"), Sums(("x",), lambda s: s[..., 0]), Order("x")):
        with pytest.raises(DataError, match=r"'x'.*document 101"):
            of(kind, table(x=[1, bad, 2]))


def test_weights_must_not_be_negative() -> None:
    """A negative denominator is an error that names the document."""
    with pytest.raises(DataError, match=r"-3.*document 102"):
        of(Ratio("x", "y"), table(x=[1, 1, 1], y=[1, 2, -3]))


def test_settings_are_checked() -> None:
    """One replicate, a level of 1 and a misspelt key are refused."""
    with pytest.raises(ValidationError, match=r"0 \(off\) or at least 2"):
        Stats(bootstrap_iters=1)
    for wrong in ({"level": 1.0}, {"bootstrap_iters": -1}, {"interval": "wald"}, {"iters": 5}):
        with pytest.raises(ValidationError):
            Stats(**wrong)  # type: ignore[arg-type]


@given(st.lists(st.booleans(), min_size=2, max_size=60))
@settings(max_examples=60, deadline=None)
def test_interval_of_a_share_holds_it_and_stays_inside(answers: list[bool]) -> None:
    """Wilson: inside [0, 1], around the value, never of width 0."""
    made = of(Mean("x"), table(x=[float(a) for a in answers]))
    assert made.ci is not None
    assert made.value is not None
    assert 0 <= made.ci[0] <= made.value <= made.ci[1] <= 1
    assert made.ci[0] < made.ci[1]


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 4)), min_size=2, max_size=40),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_order_of_samples_changes_no_bit(rows: list[tuple[int, int]], rng: object) -> None:
    """Value and error of a clustered mean do not depend on the order of samples."""
    turned = list(rows)
    rng.shuffle(turned)  # type: ignore[attr-defined]
    made = [
        of(Mean("x"), table(x=[v / 7 for v, _ in some], clusters=[str(c) for _, c in some]))
        for some in (rows, turned)
    ]
    assert made[0].value == made[1].value
    errors = [math.nan if m.stderr is None else m.stderr for m in made]
    assert errors[0] == pytest.approx(errors[1], rel=1e-12, nan_ok=True)


@pytest.mark.shared
def test_simple_values_equal_the_harness(shared_data: Path) -> None:
    """Mean, its error and the upper median, to the last bit."""
    cases = json.loads((shared_data / "conformance/lm_eval_cases.json").read_text("utf-8"))
    checked = 0
    for case in cases:
        if case["fn"] in ("mean", "mean_stderr", "median"):
            kind = Order("x") if case["fn"] == "median" else Mean("x")
            made = of(kind, table(x=case["args"][0]), Stats(), compat="lm_eval")
            found = made.stderr if case["fn"] == "mean_stderr" else made.value
            assert found == case.get("expect")
            checked += 1
    assert checked == 12


@pytest.mark.parametrize("clustered", [False, True])
def test_metrics_in_one_pass_have_the_same_bits(clustered: bool) -> None:
    """`estimate_all` gives what `estimate` gives for each metric alone."""
    rng = np.random.default_rng(4)
    n = 300
    columns = {
        "hits": rng.integers(0, 2, n), "a": rng.integers(0, 900, n), "b": rng.integers(1, 900, n),
        "c": rng.normal(size=n), "d": rng.random(n) + 1,
    }  # fmt: skip
    rows = table(
        **{name: x.tolist() for name, x in columns.items()},
        clusters=[str(i // 3) for i in range(n)] if clustered else None,
    )
    kinds = {
        "mean": Mean("hits"), "whole": Ratio("a", "b"), "sums": Sums(("b",), lambda s: s[..., 0]),
        "shares": Ratio("c", "d"), "few": Sums(("hits",), lambda s: s[..., 0]),
        "median": Order("c"),
    }  # fmt: skip
    pairs = {name: (Metric(name, kind), rows) for name, kind in kinds.items()}
    made = estimate_all(pairs, QUICK)
    assert made == {name: estimate(metric, rows, QUICK) for name, (metric, _) in pairs.items()}
    assert list(made) == list(kinds)
