"""From rows to a number with its error bar: the one entrance for the pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from xpe.stats import intervals
from xpe.stats.closed import effective_size, mean_stderr, spread
from xpe.stats.harness import harness_statistic, harness_stderr, harness_value
from xpe.stats.intervals import Interval
from xpe.stats.repeats import variance_split
from xpe.stats.settings import Stats
from xpe.stats.statistic import MeanOf, Statistic, Told, defined, scored_in, statistic
from xpe.stats.together import draw_of, drawn_together
from xpe.types import FAULTS, FLAGS, Estimate, Float, Mean, Metric, Table


def estimate(
    metric: Metric,
    table: Table,
    settings: Stats,
    *,
    compat: str | None = None,
    n_task: int | None = None,
) -> Estimate:
    """Estimate one metric from the rows of one evaluator.

    Parameters
    ----------
    compat
        `lm_eval` gives the standard errors of lm-evaluation-harness to the last bit.
    n_task
        Number of samples of the task, where the table does not hold all of them yet.

    Raises
    ------
    DataError
        A column holds NaN or infinity, or a denominator is negative; the message names the
        document.
    """
    found = (harness_statistic if compat else statistic)(metric.kind, table)
    error = ErrorBar(found, settings, metric if compat else None)
    return _estimate(metric, table, error, n_task)


def estimate_all(
    rows: Mapping[str, tuple[Metric, Table]], settings: Stats, *, compat: str | None = None
) -> dict[str, Estimate]:
    """Estimate all metrics of a task; those of summed rows are resampled in one pass.

    The numbers are those of `estimate`, to the last bit; only the time is shared. Errors as there.
    """
    if compat:
        return {
            key: estimate(metric, table, settings, compat=compat)
            for key, (metric, table) in rows.items()
        }
    found = {key: statistic(metric.kind, table) for key, (metric, table) in rows.items()}
    drawn = drawn_together(found, settings)
    return {
        key: _estimate(
            metric, table, ErrorBar(found[key], settings, replicates_B=drawn.get(key)), None
        )
        for key, (metric, table) in rows.items()
    }


def _estimate(metric: Metric, table: Table, error: ErrorBar, n_task: int | None) -> Estimate:
    found = error.found
    n = max(n_task or 0, len(table.rows_NK))
    counts = {f"n_{name}": _count(table, name) for name in (*FAULTS, *FLAGS)}
    if metric.failed != "failed":
        counts["n_failed"] += int(table.column(metric.failed).sum())
    faulty = n > int(table.scored_N.sum()) or any(counts[f"n_{name}"] for name in FAULTS)
    ci, ci_method = error.interval()
    low, high = _range(found)
    return Estimate(
        value=error.value,
        stderr=error.stderr,
        ci=_within(ci, metric.limits),
        ci_method=ci_method,
        n=n,
        count=found.count,
        min=low,
        max=high,
        **counts,
        partial=faulty,
        bounds=_bounds(metric, found, table, n) if faulty else None,
        higher_is_better=metric.higher_is_better,
        signature=metric.signature,
        why=error.why if found.count else metric.absent,
        extra={**error.extra, **_repeats(metric, found, table)},
    )


class ErrorBar:
    """Value, standard error and interval of one statistic, from one set of replicates.

    With `harness`, value and error of lm-evaluation-harness for that metric. `replicates_B` are
    those of the statistic, where they were drawn before.
    """

    def __init__(
        self,
        found: Statistic,
        settings: Stats,
        harness: Metric | None = None,
        replicates_B: Float | None = None,
    ) -> None:
        self.found = found
        self.extra: Mapping[str, int] = {}
        self._harness = harness
        self._settings = settings
        self._all_B = replicates_B
        self._finite_B: Float | None = None
        self.value = self._value() if found.count else None
        self.why = self._reason()
        self.stderr = None if self.why else defined(self._stderr())
        if self.stderr is None and self.why is None:
            self.why = "undefined"

    def interval(self) -> tuple[Interval | None, str | None]:
        """Return the interval and the name of its method; None for both if undefined."""
        name = self._settings.interval
        if name == "none" or self.value is None:
            return None, None
        fitting = [name] if name != "auto" else []
        closed = isinstance(self.found, MeanOf) or self._harness
        fitting += ["wilson", "t"] if closed else ["percentile", "t"]
        for candidate in fitting:
            made = INTERVALS[candidate](self)
            if made is not None and all(math.isfinite(end) for end in made):
                return made, candidate
        return None, None

    def _value(self) -> float | None:
        if self._harness:
            return defined(harness_value(self._harness, self.found))
        return defined(self.found.value)

    def _reason(self) -> str | None:
        """Say why there is no error, whatever the settings; None if there may be one."""
        if not self.found.count:
            return "no samples"
        if isinstance(self.found, Told):
            return "no per-sample values"
        if self.value is None:
            return "undefined"
        if self.found.n_units < 2:
            return "n=1" if self.found.count == 1 else "one cluster"
        return None

    def _stderr(self) -> float:
        if self._harness:
            found = harness_stderr(self._harness, self.found, self._settings.bootstrap_iters)
            self.why = "N/A in lm-evaluation-harness" if found is None else None
            return math.nan if found is None else found
        closed = self.found.closed()
        if closed is not None:
            return closed
        if self._settings.method == "exact":
            exact = self.found.exact()
            if exact is not None:
                return exact
        replicates_B = self.replicates_B
        return math.nan if replicates_B is None else spread(replicates_B)

    @property
    def replicates_B(self) -> Float | None:
        """The finite replicates; None if the bootstrap is off. Those undefined are counted."""
        if self._settings.bootstrap_iters == 0:
            self.why = "off"
            return None
        if self._finite_B is None:
            if self._all_B is None:
                self._all_B = self.found.replicates(draw_of(self._settings))
            self._finite_B = self._all_B[np.isfinite(self._all_B)]
            if undefined := len(self._all_B) - len(self._finite_B):
                self.extra = {"undefined_replicates": undefined}
        return self._finite_B

    # --- one method an interval; None where it does not apply ---

    def binary(self, make: Callable[..., Interval], *, takes_critical: bool) -> Interval | None:
        """Make an interval for a share; clustered ones on the effective sample size."""
        found, level = self.found, self._settings.level
        if not (isinstance(found, MeanOf) and found.binary):
            return None
        if found.codes_N is None:
            return make(round(found.values_N.sum()), found.count, level)
        if self.stderr is None:
            return None
        plain = mean_stderr(found.values_N)
        size = effective_size(found.count, plain, self.stderr, found.n_units)
        if not takes_critical:
            return make(found.value * size, size, level)
        critical = intervals.t_quantile(level, found.n_units - 1)
        return make(found.value * size, size, level, critical=critical)

    def t(self) -> Interval | None:
        if self.stderr is None:
            return None
        value, df = self.found.value, self.found.n_units - 1
        return intervals.t(value, self.stderr, df, self._settings.level)

    def percentile(self) -> Interval | None:
        replicates_B = self._drawn()
        if replicates_B is None:
            return None
        return intervals.percentile(replicates_B, self._settings.level)

    def bca(self) -> Interval | None:
        replicates_B = self._drawn()
        jackknife = self.found.jackknife() if replicates_B is not None else np.empty(0)
        jackknife = jackknife[np.isfinite(jackknife)]
        if replicates_B is None or not len(jackknife):
            return None
        return intervals.bca(self.found.value, replicates_B, jackknife, self._settings.level)

    def _drawn(self) -> Float | None:
        if self.found.n_units < 2:
            return None
        replicates_B = self.replicates_B
        return replicates_B if replicates_B is not None and len(replicates_B) > 1 else None


INTERVALS: Mapping[str, Callable[[ErrorBar], Interval | None]] = {
    "wilson": partial(ErrorBar.binary, make=intervals.wilson, takes_critical=True),
    "clopper_pearson": partial(
        ErrorBar.binary, make=intervals.clopper_pearson, takes_critical=False
    ),
    "t": ErrorBar.t,
    "percentile": ErrorBar.percentile,
    "bca": ErrorBar.bca,
}


def _repeats(metric: Metric, found: Statistic, table: Table) -> Mapping[str, float]:
    """Split the variance of repeated questions; empty where each is asked once."""
    if not (isinstance(found, MeanOf) and isinstance(metric.kind, Mean) and found.count > 1):
        return {}
    repeats_N = table.column(f"{metric.kind.column}.repeats")[scored_in(metric.kind, table)]
    if not (repeats_N > 1).all():
        return {}
    within_N = table.column(f"{metric.kind.column}.within")[scored_in(metric.kind, table)]
    repeats = len(repeats_N) / math.fsum(1 / repeats_N)
    within, between = variance_split(found.values_N, within_N, repeats)
    return {"repeats": repeats, "within_variance": within, "between_variance": between}


def _within(ci: Interval | None, limits: tuple[float, float] | None) -> Interval | None:
    """Cut an interval where no value can lie; t does not know that a score ends at 0 and 1."""
    if ci is None or limits is None:
        return ci
    return max(ci[0], limits[0]), min(ci[1], limits[1])


def _count(table: Table, name: str) -> int:
    return int(np.count_nonzero(table.column(name) > 0))


def _range(found: Statistic) -> tuple[float | None, float | None]:
    singles_N = found.singles_N
    singles_N = singles_N[np.isfinite(singles_N)]
    if not len(singles_N):
        return None, None
    return float(singles_N.min()), float(singles_N.max())


def _bounds(metric: Metric, found: Statistic, table: Table, n: int) -> tuple[float, float] | None:
    """Return the value with all missing samples at their worst, and at their best."""
    if not (isinstance(found, MeanOf) and isinstance(metric.kind, Mean)):
        return None
    ends = metric.limits or ((0.0, 1.0) if found.count and found.binary else None)
    if ends is None:
        return None
    worst, best = ends[::-1] if metric.higher_is_better is False else ends
    missing = n - len(table.rows_NK) + int(_is_missing(metric.kind, table).sum())
    total, size = math.fsum(found.values_N), found.count + missing
    return (total + missing * worst) / size, (total + missing * best) / size


def _is_missing(kind: Mean, table: Table) -> NDArray[np.bool_]:
    """Say which rows lack a value that they should have: unscored, or a fault in its place."""
    missing_N: NDArray[np.bool_] = ~table.scored_N
    if kind.of:
        faulty_N = np.any([table.column(name) > 0 for name in FAULTS], axis=0)
        missing_N = missing_N | ((table.column(kind.of) <= 0) & faulty_N)
    return missing_N
