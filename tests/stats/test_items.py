"""The Python API, the harness's numbers, and the mistakes that others ship."""

from __future__ import annotations

import itertools
import json
import logging
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xpe.errors import DataError, UnknownNameError
from xpe.metrics import get_aggregation
from xpe.stats import Stats, interval, stderr
from xpe.stats.bootstrap import lm_eval_indices, lm_eval_replicates
from xpe.stats.closed import spread
from xpe.stats.items import described, tabulated

_random = random.Random(7)
LL = [-_random.expovariate(0.3) for _ in range(200)]
ACC = [float(_random.random() < 0.6) for _ in range(200)]
PAIRS = [(_random.randint(0, 1), _random.randint(0, 1)) for _ in range(200)]
REFERENCES = [
    ("the cat sat on the mat", "the cat sat on a mat"),
    ("there is a dog", "there was a dog"),
]
OFF = Stats(bootstrap_iters=0)


@pytest.fixture
def golden(shared_data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (shared_data / "conformance/lm_eval_golden.json").read_text("utf-8")
    )
    return found


@pytest.mark.shared
def test_harness_errors_equal_in_every_digit(golden: dict[str, Any]) -> None:
    """All bootstrapped goldens, chunks rounded down (1500 gives 1000 draws) included."""
    names = {"mcc": "matthews_corrcoef"}
    checked = 0
    for key, expected in golden.items():
        if key.startswith("bootstrap "):
            what, _, iters = key.removeprefix("bootstrap ").partition(" iters=")
            name, _, data = what.rstrip(")").partition("(")
            items: list[Any] = {"ll": LL, "gp": PAIRS}[data]
            assert (
                stderr(names.get(name, name), items, iters=int(iters), compat="lm_eval") == expected
            )
            checked += 1
    assert checked == 11
    assert stderr("mean", ACC, compat="lm_eval") == golden["mean_stderr(acc)"]


@pytest.mark.shared
def test_harness_values_equal_in_every_digit(golden: dict[str, Any]) -> None:
    """Values of all aggregations of the goldens."""
    words = golden["word_ppl items"]
    expected = {
        "mean(acc)": ("mean", ACC),
        "median(ll)": ("median", LL),
        "perplexity(ll)": ("perplexity", LL),
        "f1(gp)": ("f1", PAIRS),
        "mcc(gp)": ("matthews_corrcoef", PAIRS),
        "weighted_perplexity words": ("weighted_perplexity", words),
    }
    for key, (name, items) in expected.items():
        assert described(name, items, OFF, compat="lm_eval").value == golden[key]


@pytest.mark.shared
def test_corpus_and_pair_cases_equal_the_harness(shared_data: Path) -> None:
    """Every conformance case of a metric's aggregation."""
    names = {
        "weighted_perplexity": "weighted_perplexity", "bits_per_byte": "bits_per_byte",
        "f1(gold,pred)": "f1", "mcc(gold,pred)": "matthews_corrcoef", "brier": "brier_score",
        "bleu(ref,pred)": "bleu", "chrf(ref,pred)": "chrf", "ter(ref,pred)": "ter",
    }  # fmt: skip
    cases = json.loads((shared_data / "conformance/lm_eval_cases.json").read_text("utf-8"))
    checked = 0
    for case in cases:
        if name := names.get(case["fn"]):
            items = (
                list(zip(*case["args"], strict=True)) if len(case["args"]) == 2 else case["args"][0]
            )
            value = described(name, items, OFF, compat="lm_eval").value
            exact = case["fn"] not in {"bleu(ref,pred)", "chrf(ref,pred)", "ter(ref,pred)"}
            assert value == (case["expect"] if exact else pytest.approx(case["expect"], rel=1e-13))
            checked += 1
    assert checked == 13


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("weighted_perplexity", [(-3.0, 2), (-9.0, 4), (-1.0, 1)]),
        ("bits_per_byte", [(-3.0, 2), (-9.0, 4), (-1.0, 1)]),
        ("brier_score", [(0, [0.5, 0.5]), (1, [0.9, 0.1])]),
    ],
)
def test_what_the_harness_has_no_error_for_is_nan_there_only(name: str, items: list[Any]) -> None:
    """N/A under compat, a number by default."""
    assert math.isnan(stderr(name, items, compat="lm_eval"))
    assert stderr(name, items, iters=2_000) > 0


def test_harness_has_no_error_for_one_item_or_without_bootstrap() -> None:
    """N/A for a single item, and for the mean too when the bootstrap is off."""
    assert math.isnan(stderr("mean", [1.0], compat="lm_eval"))
    assert math.isnan(stderr("mean", ACC, iters=0, compat="lm_eval"))
    assert stderr("mean", ACC, iters=0) == pytest.approx(0.034127679)


@pytest.mark.parametrize("compat", [None, "lm_eval"])
def test_bypass_is_the_number_of_the_harness_and_has_no_error(compat: str | None) -> None:
    """999 for whatever items; no replicate is drawn for it."""
    assert described("bypass", [None, None], Stats(), compat=compat).value == 999.0
    assert math.isnan(stderr("bypass", [None, None], compat=compat))


def test_harness_caps_corpus_metrics_and_ours_does_not() -> None:
    """100 replicates there whatever was asked; here each one that was asked for."""
    items = REFERENCES * 10
    capped = stderr("bleu", items, iters=100, compat="lm_eval")
    assert stderr("bleu", items, iters=5_000, compat="lm_eval") == capped
    assert stderr("bleu", items, iters=5_000) != stderr("bleu", items, iters=100)


def test_iterations_are_not_rounded_to_chunks() -> None:
    """1,500 asked, 1,500 drawn."""
    thousand, more = (stderr("perplexity", LL, iters=n) for n in (1_000, 1_500))
    assert thousand != more


def test_error_of_a_median_is_not_divided_by_the_root_of_replicates() -> None:
    """200 normal draws: near 0.0954, not 0.0030."""
    x = np.random.default_rng(0).normal(size=200).tolist()
    exact = stderr("median", x, method="exact")
    made = stderr("median", x, iters=1_000)
    assert made == pytest.approx(exact, rel=3 / math.sqrt(2 * 999))
    assert made > 0.05


def test_unseeded_is_not_possible() -> None:
    """Two calls agree in every bit; another seed does not."""
    first, second, other = (stderr("perplexity", LL, iters=500, seed=s) for s in (3, 3, 4))
    assert first == second != other


def test_chinese_is_scored_by_chinese_tokens() -> None:
    """An identical Chinese pair is 100, not the 0 of a tokenizer that sees one word."""
    assert described("bleu", [("肝胆湿热", "肝胆湿热")], OFF).value == pytest.approx(100)


def test_one_tokenizer_for_both_sides_of_a_pair() -> None:
    """A mixed pair is cut by the language of the reference on both sides: characters match."""
    made = described("bleu", [("患者肝胆湿热 severe", "患者肝胆湿热 severe pain")], OFF).value
    assert made is not None
    assert made > 50


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_exact_perplexity_is_that_of_all_resamples(n: int) -> None:
    """All n^n resamples."""
    x = np.array([-0.3, -7.0, -2.5, -1.0, -4.0])[:n]
    every = np.exp(-np.mean(list(itertools.product(x, repeat=n)), axis=1))
    assert stderr("perplexity", x.tolist(), method="exact") == pytest.approx(every.std(), rel=1e-9)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_exact_f1_is_that_of_all_resamples(n: int) -> None:
    """All n^n resamples, with F1 of nothing right as 0."""
    pairs = [(1, 1), (0, 1), (1, 0), (0, 0), (1, 1)][:n]
    scores = [_f1(drawn) for drawn in itertools.product(pairs, repeat=n)]
    assert stderr("f1", pairs, method="exact") == pytest.approx(np.std(scores), rel=1e-9)


def _f1(pairs: Any) -> float:
    hits = sum(g and p for g, p in pairs)
    wrong = sum(g != p for g, p in pairs)
    return 2 * hits / (2 * hits + wrong) if hits else 0.0


@pytest.mark.filterwarnings("ignore:A single label")
@pytest.mark.parametrize("n", [2, 3, 5])
def test_exact_mcc_is_that_of_all_resamples(n: int) -> None:
    """All n^n resamples, by sklearn, which gives 0 where a class is absent."""
    from sklearn.metrics import matthews_corrcoef

    pairs = [(1, 1), (0, 1), (0, 0), (1, 0), (1, 1)][:n]
    scores = [
        matthews_corrcoef(*zip(*drawn, strict=True))
        for drawn in itertools.combinations_with_replacement(pairs, n)
    ]
    weights = [
        math.factorial(n) / math.prod(math.factorial(drawn.count(i)) for i in range(n))
        for drawn in itertools.combinations_with_replacement(range(n), n)
    ]
    mean = np.average(scores, weights=weights)
    spread_of_all = math.sqrt(np.average((np.array(scores) - mean) ** 2, weights=weights))
    made = stderr("matthews_corrcoef", pairs, method="exact")
    assert made == pytest.approx(spread_of_all, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("perplexity", LL), ("median", LL), ("f1", PAIRS), ("f1", PAIRS * 30),
        ("matthews_corrcoef", PAIRS), ("matthews_corrcoef", PAIRS * 30),
    ],
)  # fmt: skip
def test_exact_form_is_the_limit_of_the_bootstrap(name: str, items: list[Any]) -> None:
    """Within four Monte-Carlo errors of 20,000 replicates."""
    exact = stderr(name, items, method="exact")
    assert stderr(name, items, iters=20_000) == pytest.approx(exact, rel=4 / math.sqrt(40_000))


def _by_numpy(score: Any, items: list[Any], iters: int) -> float:
    """The bootstrap as everybody writes it: indices of numpy, the statistic of drawn items."""
    rng, n = np.random.default_rng(5), len(items)
    drawn = ([items[i] for i in rng.integers(0, n, n)] for _ in range(iters))
    return float(np.std([score(resample) for resample in drawn], ddof=1))


def _corpus(name: str) -> Any:
    from sacrebleu.metrics import BLEU, CHRF, TER

    scorer: Any = {"bleu": BLEU, "chrf": CHRF, "ter": TER}[name]()
    return lambda items: scorer.corpus_score([t for _, t in items], [[r for r, _ in items]]).score


WORDS = [(ll, 1 + place % 9) for place, ll in enumerate(LL)]
PAIR_OF_TEXTS = [
    (f"{a} {b} {a} x", f"{a} {c} {b} x")
    for a, b, c in zip("abcdefgh", "bca" * 3, "d" * 8, strict=False)
]
ESTIMATORS: dict[str, tuple[Any, list[Any], int]] = {
    "perplexity": (lambda xs: math.exp(-np.mean(xs)), LL, 4_000),
    "weighted_perplexity": (lambda xs: math.exp(-np.divide(*np.sum(xs, axis=0))), WORDS, 4_000),
    "bits_per_byte": (lambda xs: -np.divide(*np.sum(xs, axis=0)) / math.log(2), WORDS, 4_000),
    "median": (np.median, LL, 4_000),
    "f1": (_f1, PAIRS, 4_000),
    "matthews_corrcoef": (lambda xs: np.corrcoef(np.transpose(xs))[0, 1], PAIRS, 4_000),
    "nanmean": (np.nanmean, [*LL, *[math.nan] * 100], 4_000),
    "bleu": (_corpus("bleu"), PAIR_OF_TEXTS, 1_000),
    "chrf": (_corpus("chrf"), PAIR_OF_TEXTS, 1_000),
    "ter": (_corpus("ter"), PAIR_OF_TEXTS, 1_000),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_bootstrap_equals_that_of_numpy(name: str) -> None:
    """Every bootstrapped aggregation, within four Monte-Carlo errors of a plain loop."""
    score, items, iters = ESTIMATORS[name]
    expected = _by_numpy(score, items, iters)
    assert stderr(name, items, iters=20_000) == pytest.approx(
        expected, rel=4 / math.sqrt(2 * iters)
    )


def test_level_is_that_of_the_interval() -> None:
    """80 % of a percentile interval, of Wilson's and of Student's."""
    from scipy import stats

    x = np.random.default_rng(1).normal(size=200).tolist()
    low, high = interval("perplexity", x, level=0.8, iters=20_000)
    wide = interval("perplexity", x, iters=20_000)
    assert wide[0] < low < high < wide[1]
    expected = stats.t.interval(0.8, 199, np.mean(x), stats.sem(x))
    assert interval("mean", x, level=0.8) == pytest.approx(expected)
    shares = stats.binomtest(140, 200).proportion_ci(0.8, method="wilson")
    made = interval("mean", [1.0] * 140 + [0.0] * 60, level=0.8)
    assert made == pytest.approx((shares.low, shares.high))


def test_bca_equals_scipy() -> None:
    """The corrected interval of a skewed mean, against scipy's on its own draws."""
    from scipy import stats

    x = np.random.default_rng(3).exponential(size=40)
    expected = stats.bootstrap(
        (x,), np.mean, n_resamples=50_000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    made = interval("mean", x.tolist(), interval="bca", iters=50_000)
    assert made == pytest.approx(tuple(expected), abs=0.01)


def test_any_function_works_and_says_that_it_is_slow(caplog: pytest.LogCaptureFixture) -> None:
    """A user's own aggregation is resampled by index; clusters are kept whole."""

    def share(items: Any) -> float:
        return sum(items) / len(items)

    with caplog.at_level(logging.WARNING):
        made = stderr(share, ACC, iters=2_000)
    assert made == pytest.approx(np.std(ACC) / math.sqrt(200), rel=3 / math.sqrt(4_000))
    assert "share" in caplog.text
    names = [str(i // 4) for i in range(200)]
    clustered = described(share, ACC, Stats(bootstrap_iters=500), clusters=names)
    assert clustered.stderr == pytest.approx(
        spread(np.reshape(ACC, (50, 4)).mean(1)) / math.sqrt(50), rel=0.2
    )


def test_compiled_function_gets_arrays() -> None:
    """A function that numba compiled works on arrays of numbers."""
    from numba import njit

    @njit
    def largest(values: Any) -> float:
        return values.max()

    x = [1.0, 2.0, 3.0, 4.0]
    made = described(largest, x, Stats(bootstrap_iters=2_000))
    exact = [max(drawn) for drawn in itertools.product(x, repeat=4)]
    assert made.value == 4.0
    assert made.stderr == pytest.approx(np.std(exact), rel=0.1)


@pytest.mark.parametrize(
    ("name", "items", "error"),
    [
        ("perplexity", [-1.0, math.nan], "finite"),
        ("mean", [1.0, math.inf], "finite"),
        ("weighted_perplexity", [(-1.0, 2), (-2.0, -3)], "-3"),
        ("f1", [(1, 1), 1], "item 1"),
        ("weighted_perplexity", [(-1.0, 2), -2.0], "item 1"),
    ],
)
def test_bad_items_are_one_clear_error(name: str, items: list[Any], error: str) -> None:
    """NaN, infinity, negative weights, and items of the wrong shape."""
    with pytest.raises(DataError, match=error):
        stderr(name, items, iters=100)


def test_unknown_aggregation_and_mismatched_clusters() -> None:
    """The nearest name is offered; lengths must agree; nothing to aggregate has no error."""
    with pytest.raises(UnknownNameError, match="median"):
        stderr("medain", LL)
    with pytest.raises(DataError, match="200 items, got 1"):
        described("mean", ACC, OFF, clusters=["a"])
    assert math.isnan(stderr("mean", []))
    assert all(map(math.isnan, interval("perplexity", [])))


CORPUS = [
    (["the cat sat on the mat", "a cat was on the mat"], "the cat sat on a mat"),
    (["there is a dog"], "there was a dog"),
    (["it rains in the north of the country"], "it rains in north of country"),
    (["患者肝胆湿热，宜清热利湿"], "患者肝胆湿热，应清热利湿"),
    (["气虚证治以补气"], "气虚治以补气"),
    (["痰湿内停"], "痰湿"),
]


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
@pytest.mark.parametrize(("language", "chosen"), [("en", slice(0, 3)), ("zh", slice(3, 6))])
def test_resampled_corpus_equals_sacrebleu(name: str, language: str, chosen: slice) -> None:
    """The score of summed statistics is sacrebleu's on the corpus that was drawn."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    chinese = language == "zh"
    scorer = {
        "bleu": lambda: BLEU(tokenize="zh" if chinese else "13a"),
        "chrf": CHRF,
        "ter": lambda: TER(normalized=chinese, asian_support=chinese),
    }[name]()
    # With as many references everywhere sacrebleu takes a resample as it stands.
    items = [(refs[:1], text) for refs, text in CORPUS[chosen]]
    _, table = tabulated(name, items)
    sums = lm_eval_replicates(table.rows_NK, iters=40, of="rows")
    made = get_aggregation(name).kind(name).score(sums)  # type: ignore[union-attr]
    for drawn, score in zip(lm_eval_indices(3, iters=40), made, strict=True):
        texts = [items[i][1] for i in drawn]
        references = [[items[i][0][0] for i in drawn]]
        assert score == pytest.approx(scorer.corpus_score(texts, references).score, abs=1e-9)
