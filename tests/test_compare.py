from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xpe._compare import Plan, answers, compare_command, power_command
from xpe.cells import Cell, Options
from xpe.cli import main
from xpe.compare import compare, find_run
from xpe.config import compose
from xpe.errors import ConfigError, DataError, DataFileError, SettingTypeError, UnknownNameError
from xpe.launch import launch
from xpe.stats.compared import compare_tables
from xpe.stats.settings import Stats
from xpe.types import Items, Mean, Metric, Order, Ratio, Sums, Table

RIGHT_A = [1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1]
RIGHT_B = [1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0]
N = len(RIGHT_A)


@pytest.fixture(scope="module")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Run the replay model on shipped questions, right where asked, and return the folder."""
    home = tmp_path_factory.mktemp("runs")

    def make(name: str, right: list[int], *overrides: str) -> Path:
        words = ["task=capitals_en", f"limit={len(right)}", "tracking=none", "model=replay"]
        words += ["stats.bootstrap_iters=0", *overrides]
        predictions = home / f"{name}.jsonl"
        config = compose([*words, f"model.path={predictions}"])
        samples = config.leaves[0].samples()
        with predictions.open("w", encoding="utf-8") as lines:
            for sample, hit in zip(samples, right, strict=True):
                said = sample.target if hit else (sample.target + 1) % 4
                scores = [0.0 if choice == said else -5.0 for choice in range(4)]
                line = {"id": sample.doc_id, "log_likelihoods": scores}
                lines.write(json.dumps(line) + "\n")
        launch(config, home / name, ())
        return home / name

    return make


@pytest.fixture(scope="module")
def folders(made_run: Callable[..., Path]) -> list[Path]:
    return [made_run("b", RIGHT_B), made_run("a", RIGHT_A)]


def compared(*folders: Path, **options: Any) -> dict[str, Cell]:
    runs = [find_run(str(folder)) for folder in folders]
    return {f"{c.metric} {c.run}": c for c in compare(runs, Options(**options))}


def test_runs_are_compared_by_document(folders: list[Path]) -> None:
    """S7 and S8 of the reference table, out of run folders: A against the baseline B."""
    cell = compared(*folders, delta=0.1)["acc a"]
    assert (cell.baseline_value, cell.run_value) == (0.5, 0.7)
    assert cell.difference.value == pytest.approx(0.2)
    assert cell.difference.stderr == pytest.approx(0.0917663, abs=5e-8)
    assert cell.difference.correlation == pytest.approx(0.6546537, abs=5e-8)
    assert (cell.difference.p, cell.difference.test) == (0.125, "McNemar exact")
    assert (cell.gained, cell.lost) == ((1, 6, 12, 19), ())
    assert cell.mde == pytest.approx(2.8015852 * 0.0917663, rel=1e-6)
    assert cell.n_needed == math.ceil(2.8015852**2 * 20 * 0.0917663**2 / 0.01)


def test_p_values_are_adjusted_over_the_table(folders: list[Path]) -> None:
    """Two equal p-values of .125: Holm doubles them, Benjamini-Hochberg does not."""
    by_holm, by_bh, plain = (
        [cell.p_adjusted for cell in compared(*folders, adjust=how).values()]
        for how in ("holm", "bh", "none")
    )
    assert by_holm == [0.25, 0.25]
    assert by_bh == plain == [0.125, 0.125]


def test_several_runs_share_one_baseline_and_one_family(
    folders: list[Path], made_run: Callable[..., Path]
) -> None:
    """Each run against the first; equal systems have no minimum effect, for want of variance."""
    third = made_run("c", RIGHT_B)
    made = compared(*folders, third)
    assert sorted(made) == ["acc a", "acc c", "acc_norm a", "acc_norm c"]
    assert made["acc a"].p_adjusted == 0.5
    same = made["acc c"]
    assert (same.difference.value, same.difference.p, same.mde) == (0, 1.0, None)
    assert same.difference.ci is not None
    assert same.difference.ci[1] > 0.05


def test_other_prompts_are_refused_unless_forced(
    folders: list[Path], made_run: Callable[..., Path]
) -> None:
    """Few-shot examples change the prompts: refused with the reason and the way out."""
    shots = made_run("shots", RIGHT_A, "num_fewshot=2")
    with pytest.raises(DataError, match=r"prompts of 20 of 20 documents differ.*force=true"):
        compared(folders[0], shots)
    assert compared(folders[0], shots, force=True)["acc shots"].difference.n == N


def test_other_targets_are_refused_unless_forced(
    folders: list[Path], made_run: Callable[..., Path]
) -> None:
    """The same prompts with another gold: a difference would not be the model's."""
    corrected = made_run("corrected", RIGHT_A)
    path = corrected / "samples" / "capitals_en.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[3]["target_hash"] = "0" * 64
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(DataError, match=r"targets of 1 of 20 documents differ.*document 3"):
        compared(folders[0], corrected)
    assert compared(folders[0], corrected, force=True)["acc corrected"].difference.n == N


def test_documents_of_one_run_only_are_left_out_and_counted(
    folders: list[Path], made_run: Callable[..., Path]
) -> None:
    """Ten documents in common of twenty."""
    short = made_run("short", RIGHT_A[:10])
    cell = compared(folders[0], short)["acc short"]
    assert (cell.difference.n, cell.left_out) == (10, 10)


def test_command_writes_table_json_markdown_and_plot(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`xpe compare A B …` through the command line, flips listed with their samples."""
    files = {"json": "c.json", "markdown": "c.md", "plot": "c.png"}
    words = [f"{key}={tmp_path / name}" for key, name in files.items()]
    assert main(["compare", *map(str, folders), *words, "flips=1"]) == 0
    out = capsys.readouterr().out
    assert "gained: capitals_en acc document 1" in out
    found = json.loads((tmp_path / "c.json").read_text("utf-8"))
    assert [flip["doc_id"] for flip in found["flips"] if flip["metric"] == "acc"] == [1, 6, 12, 19]
    assert found["flips"][0]["doc"]["country"]
    assert found["cells"][0]["difference"]["p"] == 0.125
    lines = (tmp_path / "c.md").read_text("utf-8").splitlines()
    assert [len(line.split("|")) for line in lines if line.startswith("|")] == [13] * 4
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_mlflow_run_id_names_its_folder(
    made_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The id of a tracked run leads to the folder of its name below the runs folder."""
    from xpe.tracking import MlflowTracker

    source = made_run("tracked", RIGHT_A)
    shutil.copytree(source, tmp_path / "runs" / "tracked")
    monkeypatch.setenv("XPE_RUNS", str(tmp_path / "runs"))
    run_id = MlflowTracker().begin("tracked", {}, {})
    assert find_run(run_id).folder == tmp_path / "runs" / "tracked"
    with pytest.raises(DataFileError, match="knows no run"):
        find_run("0" * 32)


def test_bad_input_is_one_clear_error(folders: list[Path], tmp_path: Path) -> None:
    """One run, the same run twice, no run folder, a misspelt and a mistyped setting."""
    first = str(folders[0])
    for words, error, text in (
        ([first], ConfigError, "at least two"),
        ([first, first], ConfigError, "more than once"),
        ([first, str(tmp_path)], DataFileError, "finished run folder"),
        ([first, "nowhere"], DataFileError, "nowhere"),
        ([*map(str, folders), "adjsut=bh"], UnknownNameError, "adjust"),
        ([*map(str, folders), "delta=much"], SettingTypeError, "delta"),
        ([*map(str, folders), "json=["], ConfigError, "not YAML"),
    ):
        with pytest.raises(error, match=text):
            compare_command(words)
    assert main(["compare", first]) == 2


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        ("torn", lambda text: text[:-20], "line 20: not JSON"),
        ("cut", lambda text: "".join(text.splitlines(keepends=True)[:5]), "5 samples, but the run"),
        ("doubled", lambda text: text + text.splitlines()[0], "line 21: document 0 is there twice"),
        ("renamed", lambda text: text.replace('"measured"', '"mesured"'), "line 1: no measured"),
        ("list", lambda _: "[]", "line 1: expected an object"),
    ],
)
def test_broken_sample_file_is_named(
    made_run: Callable[..., Path], name: str, edit: Callable[[str], str], said: str
) -> None:
    """A torn, cut, doubled or rewritten file is an error with its place, never fewer pairs."""
    folders = [made_run(f"{name}{i}", RIGHT_A) for i in range(2)]
    path = folders[1] / "samples" / "capitals_en.jsonl"
    path.write_text(edit(path.read_text("utf-8")), encoding="utf-8")
    with pytest.raises(DataFileError, match=said):
        compared(*folders)


# --- by kind of metric -----------------------------------------------------------------------


def tables(seed: int = 0, n: int = 200, clusters: bool = False) -> tuple[Table, Table]:
    rng = np.random.default_rng(seed)
    h = rng.integers(5, 15, n).astype(float)
    common = rng.random(n)
    names = tuple(str(i // 4) for i in range(n)) if clusters else (None,) * n
    return tuple(  # type: ignore[return-value]
        Table(("m", "h"), np.column_stack([np.round(h * (common + shift) / 2), h]),
              tuple(range(n)), np.ones(n, bool), names)
        for shift in (0.0, 0.1 + 0.2 * rng.random(n))
    )  # fmt: skip


def test_ratio_is_compared_on_shared_draws() -> None:
    """Near the delta method on paired residuals; far below the unpaired error."""
    a, b = tables()
    found = compare_tables(Metric("r", Ratio("m", "h")), a, b, Stats(bootstrap_iters=20_000))
    m_a, m_b, h = a.column("m"), b.column("m"), a.column("h")
    gap = (m_b - m_b.sum() / h.sum() * h) - (m_a - m_a.sum() / h.sum() * h)
    delta = math.sqrt(float(gap @ gap)) / h.sum()
    assert found.value == pytest.approx((m_b.sum() - m_a.sum()) / h.sum())
    assert found.stderr == pytest.approx(delta, rel=0.03)
    assert found.test == "paired bootstrap"
    assert found.ci is not None
    assert found.ci[0] < found.value < found.ci[1]


def test_clusters_are_drawn_whole_in_comparisons() -> None:
    """Cluster sums of residuals give the error."""
    a, b = tables(clusters=True)
    found = compare_tables(Metric("r", Ratio("m", "h")), a, b, Stats(bootstrap_iters=20_000))
    m, h = b.column("m") - a.column("m"), a.column("h")
    gap = (m - m.sum() / h.sum() * h).reshape(-1, 4).sum(axis=1)
    assert found.stderr == pytest.approx(math.sqrt(float(gap @ gap)) / h.sum(), rel=0.03)


@pytest.mark.parametrize(
    "kind",
    [
        Sums(("m",), lambda s: np.sqrt(s[..., 0])),
        Order("m"),
        Items("m", lambda xs: float(np.median(xs))),
        Mean("m"),
    ],
)
def test_a_system_equals_itself(kind: Any) -> None:
    """Shared draws: no difference has no spread, whatever the kind."""
    a, _ = tables(n=40)
    found = compare_tables(Metric("x", kind), a, a, Stats(bootstrap_iters=200))
    assert (found.value, found.stderr, found.p) == (0.0, 0.0, 1.0)


def test_median_is_compared_on_shared_draws() -> None:
    """A shift by a constant has no spread; unshared draws would give one."""
    a, _ = tables(n=50)
    rows = a.rows_NK + np.array([3.0, 0.0])
    shifted = Table(a.columns, rows, a.doc_ids, a.scored_N, a.clusters)
    found = compare_tables(Metric("x", Order("m")), a, shifted, Stats(bootstrap_iters=300))
    assert (found.value, found.stderr) == (pytest.approx(3.0), pytest.approx(0.0, abs=1e-12))


def test_only_samples_scored_in_both_are_compared() -> None:
    """A failed request of one run leaves the pair out."""
    a, b = tables(n=30)
    holes = Table(b.columns, b.rows_NK, b.doc_ids, np.arange(30) > 4, b.clusters)
    assert compare_tables(Metric("x", Mean("m")), a, holes, Stats()).n == 25
    nothing = Table(b.columns, b.rows_NK, b.doc_ids, np.zeros(30, bool), b.clusters)
    with pytest.raises(DataError, match="no sample has x in both"):
        compare_tables(Metric("x", Mean("m")), a, nothing, Stats())


def test_comparison_without_bootstrap_has_no_error_but_a_value() -> None:
    """Replicates off: the difference stands with a reason."""
    a, b = tables()
    found = compare_tables(Metric("r", Ratio("m", "h")), a, b, Stats(bootstrap_iters=0))
    assert (found.stderr, found.p, found.why) == (None, None, "off")


# --- power -----------------------------------------------------------------------------------


def test_power_answers_before_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """S12 and S13 by the command line."""
    assert main(["power", "delta=0.03", f"omega2={1 / 9}"]) == 0
    assert "to detect 0.03: 969\n" in capsys.readouterr().out
    words = ["delta=0.03", f"omega2={1 / 9}", f"sigma2={1 / 6}", "repeats=10"]
    assert main(["power", *words]) == 0
    assert "1,260" in capsys.readouterr().out
    by_n = list(answers(Plan(n=1000, omega2=0.12, delta=0.02)))
    assert "0.03069" in by_n[2]
    assert "44.7%" in by_n[3]


@pytest.mark.parametrize(
    ("words", "error"),
    [([], ConfigError), (["delta=0"], ConfigError), (["detla=1"], UnknownNameError),
     (["n=0"], ConfigError), (["what", "n=3"], ConfigError)],
)  # fmt: skip
def test_bad_plans_are_refused(words: list[str], error: type[Exception]) -> None:
    """Nothing asked, no difference, a misspelt key, no samples, a word without a value."""
    with pytest.raises(error):
        power_command(words)
