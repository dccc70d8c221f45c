"""Scoring and generating beside lm-evaluation-harness and beside the bare engine, by section.

    python tests/bench/bench_vllm.py [--full] [--only SECTION,…] [--keep FILE]
                                     [--size N] [--rounds N]

Needs `vllm` and `lm-eval` (`nox -s bench_vllm -- --full`). Printed are the medians of alternating
rounds, without the loading; nothing is in a cache when a round begins, and both sides of a row
read the same requests. `--full` takes about 25 minutes on a quiet machine with two cores. With
`--keep` a section that the file has already is not measured again.

- letters: 5-shot choices of one token by `vllm`, beside lm-eval on the same engine
- names: the option texts as continuations of the same contexts, by `vllm`
- hf: both kinds by `hf`, beside lm-eval's `hf`
- overhead: greedy texts of 32 tokens through a whole run, store and sinks on, beside one call of
  `LLM.generate` with the same prompts
- parity (only where it is named): every log likelihood and argmax of `vllm`, `hf` and lm-eval's
  `hf`; with `--full` those of 100 questions of each kind
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from choices import CHOICES, Question, instances, picks, questions, write

from xpe.models.smollm2 import SmolLM2
from xpe.models.vllm import Vllm
from xpe.models.warm import kept, taken
from xpe.store import Store, StoredModel
from xpe.types import Asked, LogLikelihood, Origin, Scored

LENGTH, TOKENS = 4096, 32
TINY, ROUNDS = 2, 1
SIZES = {"letters": 7, "names": 5, "hf letters": 24, "hf names": 5, "texts": 500, "parity": 100}
"""Requests of each row with `--full`: lm-eval takes 1.5 s a choice with vLLM."""
WANTED = {
    "letters": "at least 8", "names": "at least 3.5", "hf letters": "at least 3.5",
    "hf names": "at least 4", "texts": "at least 0.95 (xpe at most 1.05 of the bare engine)",
}  # fmt: skip
TASK = """\
# @package task.texts
kind: generation
data: {path: "questions.jsonl"}
doc_to_text: "Question {{ i }}: tell a story of {{ i }} words.\\nAnswer:"
doc_to_target: i
answer_type: text
generation_kwargs: {max_gen_toks: 32, until: ["\\n\\n\\n"]}
evaluators: {accuracy: {}}
"""


@dataclass
class Bench:
    """The loaded models, how much is measured, and what was."""

    folder: Path
    rounds: int
    sizes: Mapping[str, int]
    found: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def vllm(self) -> Vllm:
        model = Vllm(path=str(SmolLM2().source.path), max_length=LENGTH)
        with taken({"model": model}):
            model.load()
        return model

    @cached_property
    def their_vllm(self) -> Any:
        """lm-eval's vLLM backend on the engine that is loaded already."""
        import vllm

        version = importlib.metadata.version
        # The CPU build is a distribution of another name, which lm-eval does not find.
        importlib.metadata.version = lambda name: (
            vllm.__version__ if name == "vllm" else version(name)
        )
        from lm_eval.models import vllm_causallms

        llm = self.vllm._serving.started.llm
        vllm_causallms.LLM = lambda **_: llm
        return vllm_causallms.VLLM(pretrained=self.vllm.path, dtype="float32", max_model_len=LENGTH)

    @cached_property
    def hf(self) -> SmolLM2:
        model = SmolLM2(max_length=LENGTH)
        model.load()
        return model

    @cached_property
    def their_hf(self) -> Any:
        from lm_eval.models.huggingface import HFLM

        path = self.hf.source.path
        with quiet():
            return HFLM(
                pretrained=path, dtype="float32", batch_size=8, max_length=LENGTH, device="cpu"
            )

    def emptied(self) -> None:
        """Forget every prefix, so that no round profits from the one before."""
        if "vllm" in self.__dict__:
            self.vllm._serving._engine.reset_prefix_cache()
        if "hf" in self.__dict__:
            self.hf._engine.scorer.release()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep progress bars and notes of the peer out of the figures."""
    logging.disable(logging.WARNING)
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stderr(nothing):
        yield
    logging.disable(logging.NOTSET)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return wall seconds and the result."""
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def measured(bench: Bench, mine: Callable[[], Any], other: Callable[[], Any]) -> dict[str, Any]:
    """Time two sides in turn; the first of them goes first in every other round."""
    times: dict[Callable[[], Any], list[float]] = {mine: [], other: []}
    said: dict[Callable[[], Any], Any] = {}
    for i in range(bench.rounds):
        for side in (mine, other) if i % 2 == 0 else (other, mine):
            bench.emptied()
            seconds, said[side] = timed(side)
            times[side].append(seconds)
    return {"mine": times[mine], "other": times[other], "said": (said[mine], said[other])}


# --- log likelihoods ---------------------------------------------------------------------------


def score(model: Any, asked: list[Question], folder: Path) -> list[float]:
    """Score by xpe, each reply stored as it comes; the log likelihoods in order."""
    requests = [
        Asked(Origin("t", i, 0, 0), LogLikelihood(one.context, one.choices))
        for i, one in enumerate(asked)
    ]
    with tempfile.TemporaryDirectory(dir=folder) as name, Store(Path(name) / "s.sqlite") as store:
        got = {
            pair[0].origin.doc_id: pair[1]
            for pair in StoredModel(model, store).reply(requests)
            if pair is not None
        }
    replies = [got[i] for i in range(len(asked))]
    return [v for r in replies if isinstance(r, Scored) for v in r.log_likelihoods]


def their_scores(peer: Any, requests: list[Any]) -> list[float]:
    with quiet():
        return [value for value, _ in peer.loglikelihood(requests, disable_tqdm=True)]


def both(bench: Bench, kind: str, size: int) -> tuple[list[Question], list[Any]]:
    """Build the requests of both sides, which have to be the same."""
    asked = questions(bench.folder, kind, size)
    with quiet():
        requests = instances(bench.folder, kind, size)
    if [r.args for r in requests] != [(q.context, c) for q in asked for c in q.choices]:
        sys.exit(f"{kind}: the requests differ")
    return asked, requests


def likelihoods(bench: Bench, model: Any, peer: Any, row: str, who: str) -> None:
    """Measure one kind of choices on both sides and compare the values."""
    kind = row.removeprefix("hf ")
    asked, requests = both(bench, kind, bench.sizes[row])
    mine = partial(score, model, asked, bench.folder)
    found = measured(bench, mine, partial(their_scores, peer, requests))
    ours, theirs = found.pop("said")
    bench.found[row] = {
        **found, "peer": who, "size": len(asked), **difference(asked, [ours, theirs]),
    }  # fmt: skip


def difference(asked: list[Question], sides: list[list[float]]) -> dict[str, Any]:
    """Return the largest difference between any two sides, and whether their picks are equal."""
    worst = max(abs(a - b) for one in sides for two in sides for a, b in zip(one, two, strict=True))
    chosen = {tuple(picks(asked, side)) for side in sides}
    return {"difference": worst, "same picks": len(chosen) == 1}


def by_vllm(kind: str, bench: Bench) -> None:
    likelihoods(bench, bench.vllm, bench.their_vllm, kind, "lm-eval vllm")


def by_hf(bench: Bench) -> None:
    for kind in ("letters", "names"):
        likelihoods(bench, bench.hf, bench.their_hf, f"hf {kind}", "lm-eval hf")


def parity(bench: Bench) -> None:
    """Compare the values of `vllm`, `hf` and lm-eval's `hf`; nothing is timed."""
    for kind in CHOICES:
        asked, requests = both(bench, kind, bench.sizes["parity"])
        sides = [score(model, asked, bench.folder) for model in (bench.vllm, bench.hf)]
        sides.append(their_scores(bench.their_hf, requests))
        bench.found[f"parity {kind}"] = {
            "size": len(asked), "peer": "xpe vllm, xpe hf, lm-eval hf", **difference(asked, sides),
        }  # fmt: skip


# --- texts -------------------------------------------------------------------------------------


def overhead(bench: Bench) -> None:
    """Measure whole runs, and one call of the bare engine with the prompts of the run."""
    from vllm import SamplingParams

    folder, size = bench.folder, bench.sizes["texts"]
    (folder / "conf" / "task").mkdir(parents=True)
    (folder / "conf" / "task" / "texts.yaml").write_text(TASK)
    rows = "".join(json.dumps({"i": i}) + "\n" for i in range(size))
    (folder / "questions.jsonl").write_text(rows)
    os.environ |= {"XPE_CONFIG_PATH": str(folder / "conf"), "XPE_RUNS": str(folder / "runs")}
    prompts = [f"Question {i}: tell a story of {i} words.\nAnswer:" for i in range(size)]
    params = SamplingParams(temperature=0.0, max_tokens=TOKENS, stop=["\n\n\n"])
    bare = partial(bench.vllm._serving.started.llm.generate, prompts, params, use_tqdm=False)
    with contextlib.chdir(folder):
        whole_run(bench.vllm, 2)
        found = measured(bench, partial(whole_run, bench.vllm, size), bare)
    del found["said"]
    bench.found["texts"] = {**found, "peer": "LLM.generate", "size": size}


def whole_run(model: Vllm, size: int) -> None:
    """Run the task as the command line does, tracker and all, on the loaded engine."""
    from xpe.config import compose
    from xpe.launch import run

    words = ["model=vllm", f"model.path={model.path}", f"model.max_length={LENGTH}"]
    more = [f"limit={size}", "task=texts", "stats.bootstrap_iters=0", "fresh=true"]
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stdout(nothing):
        run(compose([*words, *more]))


# --- all ---------------------------------------------------------------------------------------

SECTIONS: dict[str, Callable[[Bench], None]] = {
    "letters": partial(by_vllm, "letters"),
    "names": partial(by_vllm, "names"),
    "overhead": overhead,
    "hf": by_hf,
    "parity": parity,
}


def table(found: Mapping[str, Any]) -> None:
    """Print medians, ratios and what was wanted, a row each."""
    print("| row | requests | rounds | peer | peer s | xpe s | peer / xpe | wanted | agreement |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row, one in found.items():
        cells = ["", "", "", ""]
        if "mine" in one:
            mine, other = statistics.median(one["mine"]), statistics.median(one["other"])
            cells = [f"{other:.2f}", f"{mine:.2f}", f"{other / mine:.2f}", WANTED[row]]
        same = ""
        if "difference" in one:
            which = "every argmax equal" if one["same picks"] else "ARGMAX DIFFERS"
            same = f"within {one['difference']:.1e}, {which}"
        rounds = len(one.get("mine", ())) or ""
        print("|", " | ".join(map(str, [row, one["size"], rounds, one["peer"], *cells, same])), "|")


def main() -> None:
    """Measure and print."""
    words = argparse.ArgumentParser()
    words.add_argument("--full", action="store_true", help="the sizes of the figures, 5 rounds")
    words.add_argument("--only", default="letters,names,overhead,hf", help=", ".join(SECTIONS))
    words.add_argument("--keep", type=Path, help="a JSON file that collects the sections")
    words.add_argument("--size", type=int, help="requests of every row")
    words.add_argument("--rounds", type=int)
    said = words.parse_args()
    if not (find_spec("vllm") and find_spec("lm_eval")):
        print("vllm and lm-eval are not both installed; nothing is measured (nox -s bench_vllm)")
        return
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    size = said.size or (None if said.full else TINY)
    sizes = SIZES if size is None else dict.fromkeys(SIZES, size)
    before = json.loads(said.keep.read_text()) if said.keep and said.keep.exists() else {}
    SmolLM2().check()
    started = time.perf_counter()
    with kept(), tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), said.rounds or (5 if said.full else ROUNDS), sizes)
        write(bench.folder)
        for section in said.only.split(","):
            if section not in before:
                bench.found = {}
                SECTIONS[section](bench)
                before[section] = bench.found
                if said.keep:
                    said.keep.write_text(json.dumps(before))
                print(f"{section}: {time.perf_counter() - started:.0f} s so far", file=sys.stderr)
    table({row: one for rows in before.values() for row, one in rows.items()})


if __name__ == "__main__":
    main()
