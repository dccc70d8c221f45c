"""Scoring and generating by vLLM, beside lm-evaluation-harness and beside the bare engine.

    python tests/bench/bench_vllm.py [--full] [--questions N] [--texts N] [--rounds N]

Needs `vllm` and `lm-eval` (`nox -s bench_vllm`). Both sides use one loaded engine, whose prefix
cache is emptied before each measurement. Printed are the medians of alternating rounds, without
the loading; every log likelihood is compared, with lm-eval's own `hf` too.

- letters: 5-shot choices of one token, a request a context against one a choice
- names: the options themselves as continuations of the same contexts
- texts: greedy texts of 32 tokens through a whole run, store and sinks on, against one call of
  `LLM.generate` with the same prompts
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from xpe.data.source import Source
from xpe.models.smollm2 import SmolLM2
from xpe.models.vllm import Vllm
from xpe.models.warm import kept, taken
from xpe.store import Store, StoredModel
from xpe.tasks.multiple_choice import MultipleChoice
from xpe.types import Asked, LogLikelihood, Origin, Scored

SHIPPED = Path(__file__).parents[2] / "xpe" / "data" / "shipped"
TEXT = (
    "{{ question }}\n{% for choice in choices %}{{ 'ABCDEFGH'[loop.index0] }}. {{ choice }}\n"
    "{% endfor %}答案："
)
CHOICES = {
    "letters": "{{ 'ABCDEFGH'[:choices | length] | list }}",
    "names": "choices",
}
LENGTH = 4096
SHOTS, TOKENS = 5, 32
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
class Question:
    """A context with its choices, and what each side says of them."""

    context: str
    choices: tuple[str, ...]


def write(folder: Path, size: int) -> None:
    """Lay out the questions with five options, the examples, and the prompts."""
    lines = (SHIPPED / "tcm_choice.jsonl").read_text(encoding="utf-8").splitlines()
    five = [line for line in lines if len(json.loads(line)["choices"]) == 5]
    (folder / "test.jsonl").write_text("\n".join(five[:size]) + "\n", encoding="utf-8")
    examples = (SHIPPED / "tcm_choice_fewshot.jsonl").read_text(encoding="utf-8")
    (folder / "train.jsonl").write_text(examples, encoding="utf-8")


def questions(folder: Path, kind: str) -> list[Question]:
    """Build the contexts of a task by xpe."""
    task = MultipleChoice(
        name=kind,
        data=Source(path=str(folder / "{split}.jsonl"), split="test"),
        fewshot={"split": "train", "sampler": "first_n"},  # type: ignore[arg-type]
        doc_to_text=TEXT,
        doc_to_choice=CHOICES[kind],
        doc_to_target="answer",
        target_delimiter="",
        num_fewshot=SHOTS,
        compat="lm_eval",
    )
    return [
        Question(str(request.context), request.continuations)
        for sample in task.samples()
        for request in task.requests(sample)
    ]


def instances(folder: Path, kind: str) -> list[Any]:
    """Build the requests of the same task by lm-eval."""
    from lm_eval.api.task import ConfigurableTask

    task = ConfigurableTask(
        config={
            "task": kind,
            "output_type": "multiple_choice",
            "dataset_path": "json",
            "dataset_kwargs": {
                "data_files": {s: str(folder / f"{s}.jsonl") for s in ("test", "train")}
            },
            "test_split": "test",
            "fewshot_split": "train",
            "fewshot_config": {"sampler": "first_n"},
            "doc_to_text": TEXT,
            "doc_to_choice": CHOICES[kind],
            "doc_to_target": "answer",
            "target_delimiter": "",
        }
    )
    task.set_config(key="num_fewshot", value=SHOTS)
    task.set_fewshot_seed(1234)
    task.build_all_requests()
    built: list[Any] = task.instances
    return built


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep progress bars and notes of the peer out of the figures."""
    logging.disable(logging.WARNING)
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stderr(nothing):
        yield
    logging.disable(logging.NOTSET)


def theirs(model: Vllm) -> Any:
    """Return lm-eval's vLLM backend on the engine that is loaded already."""
    import vllm

    version = importlib.metadata.version
    # The CPU build is a distribution of another name, which lm-eval does not find.
    importlib.metadata.version = lambda name: vllm.__version__ if name == "vllm" else version(name)
    from lm_eval.models import vllm_causallms

    llm = model._serving.started.llm
    vllm_causallms.LLM = lambda **_: llm
    return vllm_causallms.VLLM(pretrained=model.path, dtype="float32", max_model_len=LENGTH)


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


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return wall seconds and the result."""
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def emptied(model: Vllm) -> None:
    """Forget all prefixes."""
    model._serving._engine.reset_prefix_cache()


def likelihoods(model: Vllm, kind: str, folder: Path, rounds: int) -> None:
    """Measure one kind of choices on both sides and compare the values."""
    asked, peer = questions(folder, kind), theirs(model)
    with quiet():
        requests = instances(folder, kind)
        if [r.args for r in requests] != [(q.context, c) for q in asked for c in q.choices]:
            sys.exit("the requests differ")
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        emptied(model)
        mine, ours = timed(lambda: score(model, asked, folder))
        emptied(model)
        with quiet():
            other, said = timed(lambda: peer.loglikelihood(requests, disable_tqdm=True))
        times.append((mine, other))
    report(kind, times, len(asked), "lm-eval vllm")
    compared(kind, asked, {"xpe vllm": ours, "lm-eval vllm": [value for value, _ in said]})


def hf_likelihoods(model: Vllm, kind: str, folder: Path) -> None:
    """Compare the values with those of both `hf` backends."""
    from lm_eval.models.huggingface import HFLM

    asked = questions(folder, kind)
    emptied(model)
    found = {"xpe vllm": score(model, asked, folder)}
    transformers = SmolLM2(max_length=LENGTH)
    found["xpe hf"] = score(transformers, asked, folder)
    transformers.close()
    with quiet():
        peer = HFLM(
            pretrained=model.path,
            dtype="float32",
            batch_size=8,
            max_length=LENGTH,
            device="cpu",
        )
        said = peer.loglikelihood(instances(folder, kind), disable_tqdm=True)
    found["lm-eval hf"] = [value for value, _ in said]
    compared(kind, asked, found)


def compared(kind: str, asked: list[Question], found: dict[str, list[float]]) -> None:
    """Print the largest difference between any two sides, and the argmaxes that differ."""
    sides = list(found.values())
    worst = max(abs(a - b) for one in sides for two in sides for a, b in zip(one, two, strict=True))
    picks = set()
    for side in sides:
        at, best = 0, []
        for one in asked:
            part = side[at : at + len(one.choices)]
            best.append(max(range(len(part)), key=part.__getitem__))
            at += len(one.choices)
        picks.add(tuple(best))
    same = "every argmax equal" if len(picks) == 1 else "ARGMAX DIFFERS"
    print(f"  {kind}: {', '.join(found)}: largest difference {worst:.1e}, {same}")


def report(what: str, times: list[tuple[float, float]], size: int, peer: str) -> None:
    """Print medians and ratio."""
    mine, other = (statistics.median(side) for side in zip(*times, strict=True))
    print(
        f"{what}, {size} requests, {len(times)} rounds: xpe {mine:.2f} s, {peer} {other:.2f} s; "
        f"{peer} / xpe = {other / mine:.2f}",
        flush=True,
    )


def texts(model: Vllm, size: int, rounds: int, folder: Path) -> None:
    """Measure whole runs, and one call of the bare engine with the prompts of the run."""
    from vllm import SamplingParams

    (folder / "conf" / "task").mkdir(parents=True)
    (folder / "conf" / "task" / "texts.yaml").write_text(TASK)
    rows = "".join(json.dumps({"i": i}) + "\n" for i in range(size))
    (folder / "questions.jsonl").write_text(rows)
    os.chdir(folder)
    os.environ |= {"XPE_CONFIG_PATH": str(folder / "conf"), "XPE_RUNS": str(folder / "runs")}
    prompts = [f"Question {i}: tell a story of {i} words.\nAnswer:" for i in range(size)]
    params = SamplingParams(temperature=0.0, max_tokens=TOKENS, stop=["\n\n\n"])
    llm = model._serving.started.llm
    times: list[tuple[float, float]] = []
    whole_run(model, 2)
    for _ in range(rounds):
        emptied(model)
        mine, _ = timed(lambda: whole_run(model, size))
        emptied(model)
        other, _ = timed(lambda: llm.generate(prompts, params, use_tqdm=False))
        times.append((other, mine))
    bare, mine = (statistics.median(side) for side in zip(*times, strict=True))
    print(
        f"texts, {size} requests, {rounds} rounds: xpe run {mine:.2f} s, bare {bare:.2f} s; "
        f"xpe / bare = {mine / bare:.3f}",
        flush=True,
    )


def whole_run(model: Vllm, size: int) -> None:
    """Run the task as the command line does, on the loaded engine."""
    from xpe.config import compose
    from xpe.launch import run

    words = ["model=vllm", f"model.path={model.path}", f"model.max_length={LENGTH}"]
    more = [f"limit={size}", "task=texts", "tracking=none", "stats.bootstrap_iters=0", "fresh=true"]
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stdout(nothing):
        run(compose([*words, *more]))


def main() -> None:
    """Measure and print."""
    words = argparse.ArgumentParser()
    words.add_argument("--full", action="store_true", help="100 questions, 500 texts, 5 rounds")
    words.add_argument("--questions", type=int, default=20)
    words.add_argument("--texts", type=int, default=100, help="0: none")
    words.add_argument("--rounds", type=int, default=1)
    said = words.parse_args()
    if said.full:
        said.questions, said.texts, said.rounds = 100, 500, 5
    if not (find_spec("vllm") and find_spec("lm_eval")):
        print("vllm and lm-eval are not both installed; nothing is measured (nox -s bench_vllm)")
        return
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    weights = SmolLM2()
    weights.check()
    model = Vllm(path=str(weights.source.path), max_length=LENGTH)
    with kept(), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, said.questions)
        with taken({"model": model}):
            model.load()
        if said.texts:
            texts(model, said.texts, said.rounds, folder)
        for kind in CHOICES:
            likelihoods(model, kind, folder, said.rounds)
            hf_likelihoods(model, kind, folder)


if __name__ == "__main__":
    main()
