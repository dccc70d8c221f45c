"""Every row of the table of formulas with reference numbers, at its stated digits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xpe.stats import intervals, paired, power, repeats
from xpe.stats.agreement import cohen_kappa
from xpe.stats.bootstrap import resampled_sums, resampled_together
from xpe.stats.closed import (
    cluster_codes,
    cluster_sums,
    clustered_stderr,
    effective_size,
    mean_stderr,
    ratio_stderr,
    spread,
)
from xpe.stats.multiplicity import benjamini_hochberg, holm

A = np.array([1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1.0])
B = np.array([1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0.0])
C = np.repeat(np.arange(5), 4)
X = np.repeat([1, 0, 1, 1, 0, 0, 1, 0], 5).astype(float)
X[[3, 8, 22]] = 0, 1, 0
X_CLUSTERS = np.repeat(np.arange(8), 5)


def near(value: float, digits: int = 7) -> object:
    return pytest.approx(value, abs=0.5 * 10**-digits)


def test_s1_closed_form_of_a_mean() -> None:
    """S1: the sample deviation over √n; unknown, not 0, for one sample."""
    assert mean_stderr(A) == near(0.1051314966, 10)
    assert math.isnan(mean_stderr(A[:1]))
    assert math.isnan(mean_stderr(A[:0]))


def test_s2_intervals_of_a_mean() -> None:
    """S2: normal and Student's t."""
    assert intervals.normal(A.mean(), mean_stderr(A)) == near((0.493946, 0.906054), 6)
    assert intervals.t(A.mean(), mean_stderr(A), 19) == near((0.479957, 0.920043), 6)


def test_s3_s4_clustered_error() -> None:
    """S3, S4: below the naive error where samples of a cluster differ from each other."""
    assert clustered_stderr(A, C, corrected=False) == near(0.0447213595, 10)
    assert clustered_stderr(A, C) == near(0.05, 10)


def test_s4b_clustered_error_of_like_samples() -> None:
    """S4b: twice the naive error; design effect, effective size and interval."""
    assert mean_stderr(X) == near(0.0800641)
    assert clustered_stderr(X, X_CLUSTERS, corrected=False) == near(0.1620185)
    inspect = clustered_stderr(X, X_CLUSTERS)
    assert inspect == near(0.1732051)
    assert inspect / mean_stderr(X) == near(2.16333, 5)
    assert effective_size(40, mean_stderr(X), inspect, 8) == near(8.547, 3)
    assert 40 / effective_size(40, mean_stderr(X), inspect, 8) == near(4.68, 2)
    assert intervals.t(X.mean(), inspect, 7) == near((0.090435, 0.909565), 6)


@pytest.mark.parametrize("iters", [1_000, 10_000, 100_000])
def test_s5_bootstrap_error_is_that_of_the_replicates(iters: int) -> None:
    """S5: the deviation of the replicates, not over √B, within three Monte-Carlo errors."""
    means = resampled_sums(A[:, None], iters=iters, seed=0)[:, 0] / 20
    exact = math.sqrt(0.7 * 0.3 / 20)
    assert exact == near(0.1024695)
    assert spread(means) == pytest.approx(exact, rel=3 / math.sqrt(2 * (iters - 1)))
    assert len(means) == iters
    assert intervals.percentile(means) == pytest.approx((0.5, 0.9), abs=1e-9)


def test_s6_cluster_bootstrap() -> None:
    """S6: whole clusters are drawn; for equal clusters the error is that of S3."""
    rows = np.column_stack([X, np.ones(40)])
    sums = resampled_sums(rows, iters=50_000, seed=1, clusters=X_CLUSTERS.tolist())
    made = spread(sums[:, 0] / sums[:, 1])
    assert made == pytest.approx(0.1620185, rel=3 / math.sqrt(2 * 50_000))


def test_s7_paired_difference() -> None:
    """S7: by sample; unpaired and summarised forms beside it."""
    gap = A - B
    assert mean_stderr(gap) == near(0.0917663)
    assert paired.correlation(A, B) == near(0.6546537)
    summarised = paired.combined_stderr(mean_stderr(A), mean_stderr(B), 0.6546537)
    assert summarised == near(0.0917663, 6)
    assert gap.mean() / mean_stderr(gap) == near(2.17945, 5)
    assert paired.z_test(0.2, mean_stderr(gap)) == near(0.0292983)
    assert paired.t_test(0.2, mean_stderr(gap), 19) == near(0.0420863)
    unpaired = paired.combined_stderr(mean_stderr(A), mean_stderr(B))
    assert unpaired == near(0.1555973)
    assert paired.z_test(0.2, unpaired) == near(0.198663, 6)
    assert clustered_stderr(gap, C) == near(0.05)
    assert paired.combined_stderr(0.020, 0.022, 0.5) == near(0.0210713)


def test_s7_comparison_takes_them_together() -> None:
    """The comparison of 0/1 values: paired error, t interval, exact test for few flips."""
    made = paired.paired_difference(A, B)
    assert (made.value, made.n, made.test) == (near(0.2), 20, "McNemar exact")
    assert made.stderr == near(0.0917663)
    assert made.p == near(0.125)
    clustered = paired.paired_difference(A, B, clusters=[str(c) for c in C])
    assert clustered.stderr == near(0.05)
    assert clustered.test == "t"


def test_s8_mcnemar() -> None:
    """S8: exact, mid-p and corrected χ²; the exact one is the sign-flip permutation test."""
    assert paired.discordant(A, B) == (4, 0)
    assert paired.mcnemar_exact(4, 0) == near(0.125)
    assert paired.sign_flip(A - B) == near(0.125)
    assert paired.mcnemar_chi2(25, 10) == (near(5.6), near(0.0179605))
    assert paired.mcnemar_exact(25, 10) == near(0.0166738)
    assert paired.mcnemar_midp(25, 10) == near(0.0113310)
    assert paired.mcnemar_exact(0, 0) == 1.0
    assert paired.mcnemar_midp(3, 3) == pytest.approx(1 - math.comb(6, 3) / 2**7)


def test_s8b_paired_bootstrap() -> None:
    """S8b: pairs are drawn together."""
    iters = 10_000
    a, b = resampled_together([A[:, None], B[:, None]], iters=iters, seed=0)
    made = paired.bootstrapped_difference(0.2, a[:, 0] / 20, b[:, 0] / 20, 20)
    exact = math.sqrt(0.2 * 0.8 / 20)
    assert exact == pytest.approx(0.0881371, rel=3 / math.sqrt(2 * iters))
    assert made.stderr == pytest.approx(exact, rel=3 / math.sqrt(2 * iters))
    assert made.ci == pytest.approx((0.05, 0.40), abs=0.0501)


def test_s9_wilson() -> None:
    """S9, ends included."""
    expected = {
        (14, 20): (0.481027, 0.854523),
        (20, 20): (0.838875, 1),
        (0, 20): (0, 0.161125),
        (29, 30): (0.833296, 0.994091),
        (870, 1000): (0.847732, 0.889436),
    }
    for (k, n), ends in expected.items():
        assert intervals.wilson(k, n) == near(ends, 6)


def test_s10_clopper_pearson() -> None:
    """S10."""
    assert intervals.clopper_pearson(14, 20) == near((0.457211, 0.881068), 6)
    assert intervals.clopper_pearson(20, 20) == near((0.831567, 1), 6)


def test_s11_beta_posterior() -> None:
    """S11: uniform and Jeffreys' prior."""
    expected = {
        (14, 20): (0.478249, 0.854123),
        (20, 20): (0.838902, 0.998795),
        (0, 20): (0.001205, 0.161098),
    }
    for (k, n), ends in expected.items():
        assert intervals.beta_posterior(k, n) == near(ends, 6)
    assert intervals.jeffreys(14, 20) == near((0.482772, 0.863884), 6)


def test_s11b_wald_fails_where_wilson_holds() -> None:
    """S11b: exact coverage of 95 % intervals, summed over the binomial distribution."""
    ones = np.ones(20)
    assert intervals.normal(1.0, mean_stderr(ones)) == (1.0, 1.0)
    p = 29 / 30
    assert intervals.normal(p, math.sqrt(p * (1 - p) / 30))[1] == near(1.0309, 4)
    for n, share, wald, wilson in ((30, 0.9, 80.9, 97.4), (30, 0.97, 59.7, 94.0)):
        assert 100 * coverage(n, share, wald=True) == near(wald, 1)
        assert 100 * coverage(n, share, wald=False) == near(wilson, 1)
    assert 100 * coverage(300, 0.97, wald=True) == near(93.8, 1)
    assert 100 * coverage(300, 0.97, wald=False) == near(94.1, 1)


def coverage(n: int, p: float, *, wald: bool) -> float:
    total = 0.0
    for k in range(n + 1):
        share = k / n
        stderr = math.sqrt(share * (1 - share) / n)
        low, high = intervals.normal(share, stderr) if wald else intervals.wilson(k, n)
        if low <= p <= high:
            total += math.comb(n, k) * p**k * (1 - p) ** (n - k)
    return total


def test_s11c_chance_that_a_beats_b() -> None:
    """S11c: of two independent posteriors."""
    made = intervals.superiority((14, 20), (10, 20))
    assert made == pytest.approx(0.8965, abs=0.001)


def test_s11d_newcombe() -> None:
    """S11d: unpaired difference of two shares."""
    assert intervals.newcombe(14, 20, 10, 20) == near((-0.097036, 0.453295), 6)


def test_s12_power() -> None:
    """S12: questions needed, with noise within questions cut by repeats."""
    assert power.z_sum() == near(2.8015852)
    variance = power.difference_variance
    assert power.needed(0.03, variance(1 / 9)) == near(969.0, 1)
    assert power.needed(0.03, variance(1 / 9, 1 / 6, 1 / 6)) == near(3875.99, 2)
    assert power.needed(0.03, variance(1 / 9, 1 / 6, 1 / 6, 10, 10)) == near(1259.70, 2)


def test_s13_minimum_detectable_effect() -> None:
    """S13: what n questions detect, and the power against less."""
    variance = power.difference_variance
    assert power.detectable(variance(1 / 9, 1 / 6, 1 / 6), 198) == near(0.132733, 6)
    assert power.detectable(variance(1 / 9, 1 / 6, 1 / 6, 10, 10), 198) == near(0.075670, 6)
    assert power.detectable(0.12, 1000) == near(0.0306898)
    assert power.achieved(0.02, 0.12, 1000) == near(0.446613, 6)


def test_s14_repeats_are_not_samples() -> None:
    """S14: errors over question means; variance within and between questions."""
    scores = np.array(
        [[1, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0], [1, 0, 1, 1]], dtype=float
    )
    made = repeats.repeated_mean(scores)
    assert made.value == near(0.6)
    assert made.stderr == near(0.15)
    assert mean_stderr(scores.ravel()) == near(0.1123903)  # the flat list: too small
    assert made.within == near(0.2)
    assert made.between == near(0.0625)
    codes = np.repeat(np.arange(5), 4)
    assert clustered_stderr(scores.ravel(), codes) == near(0.15)


def test_s15_pass_at_k() -> None:
    """S15: unbiased chance that one, and that all, of k answers are right."""
    for k, expected in ((1, 0.3), (2, 0.533333), (5, 0.916667)):
        assert repeats.pass_at_k(10, 3, k) == near(expected, 6)
    for k, expected in ((1, 0.7), (2, 0.466667), (3, 0.291667)):
        assert repeats.pass_hat_k(10, 7, k) == near(expected, 6)
    assert math.isnan(repeats.pass_at_k(10, 3, 11))
    assert math.isnan(repeats.pass_hat_k(10, 3, 11))


def test_s19_multiple_comparisons() -> None:
    """S19: Holm and Benjamini-Hochberg, in any order of the p-values."""
    ps = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]
    by_holm = [0.01, 0.072, *[0.312] * 5, *[0.615] * 3]
    by_bh = [0.01, 0.04, *[0.084] * 3, 0.1, 0.105714, *[0.216] * 3]
    assert holm(ps) == near(by_holm, 6)
    assert benjamini_hochberg(ps) == near(by_bh, 6)
    assert sum(p <= 0.05 for p in holm(ps)) == 1
    assert sum(p <= 0.05 for p in benjamini_hochberg(ps)) == 2
    turned = [*ps[5:], *ps[:5]]
    assert holm(turned) == near([*by_holm[5:], *by_holm[:5]], 6)


def test_s20_ratio() -> None:
    """S20: the delta method beside the bootstrap of sums."""
    m = np.array([9, 4, 7, 10, 3, 8, 6, 5.0])
    h = np.array([12, 9, 10, 13, 8, 10, 11, 9.0])
    assert m.sum() / h.sum() == near(0.6341463)
    assert ratio_stderr(m, h) == near(0.0535414)
    sums = resampled_sums(np.column_stack([m, h]), iters=100_000, seed=0)
    made = spread(sums[:, 0] / sums[:, 1])
    assert made == pytest.approx(0.0509735, rel=3 / math.sqrt(2 * 10_000))


def test_s21_kappa() -> None:
    """S21: agreement beyond chance."""
    assert cohen_kappa("1101001101", "1001011101") == near(0.5833333)
    assert math.isnan(cohen_kappa("111", "111"))


def test_clusters_are_numbered_in_order_and_alone_without_a_name() -> None:
    """A sample that names no cluster is its own; without any name nothing is clustered."""
    codes = cluster_codes(["b", None, "a", "b", None])
    assert codes is not None
    assert codes.tolist() == [0, 1, 2, 0, 3]
    assert cluster_codes([None, None]) is None
    sums = cluster_sums(np.array([[1.0], [2], [3], [4], [5]]), codes)
    assert sums.tolist() == [[5], [2], [3], [5]]
