"""Both sides of the parity tests: one folder of tasks, one model, two programs."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xpe.config import RunConfig, compose
from xpe.harness_samples import replies_of
from xpe.pipeline import Run, summarise, tabulate
from xpe.stats.groups import group_estimates
from xpe.types import Answer, Estimate, Exchange, Generate, LogLikelihood, Rolling, TaskResult

TASKS = Path(__file__).parent / "parity" / "tasks"
LIKELIHOODS = ("parity_all", "parity_mc_binary", "parity_mc_inputs", "parity_ll", "parity_rolling")
TEXTS = ("parity_gen_filters", "parity_gen_letters", "parity_gen_targets", "parity_gen_repeats",
         "parity_gen_corpus", "parity_gen_code", "parity_gen_own_metric")  # fmt: skip
NAMES = (*LIKELIHOODS, *TEXTS)
"""What the parity tests run; the group `parity_all` holds three tasks more."""
ITERS = 1000
PARTS = (
    "{right}",
    " {right}. ",
    "the {right}",
    "{wrong} (C)",
    "{sentence}",
    "PER: Ada, none $$ LOCATION: Rome",
    "[('a', 'NOUN'), ('b', 'VERB')] 3",
    "#### 1,234 and 12",
    "答案是 {right}",
    ": B",
    "",
)
"""What the player says: texts that filters and metrics find something in, or nothing."""


@contextmanager
def inside(folder: Path):
    """Data files of the tasks are named from their folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def by_harness(
    names: Sequence[str], model: Path | None, *, iters: int = ITERS, **settings: Any
) -> dict[str, Any]:
    """Run tasks by lm-evaluation-harness with its hf backend, or with a player of parts."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    os.environ["DISABLE_MULTIPROC"] = "1"
    with inside(TASKS):
        found: dict[str, Any] = simple_evaluate(
            **_model(model),
            tasks=list(names),
            batch_size=16,
            task_manager=TaskManager(include_path=str(TASKS), include_defaults=False),
            log_samples=True,
            bootstrap_iters=iters,
            **settings,
        )
    return found


def _model(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {"model": player()}
    return {
        "model": "hf",
        "model_args": {"pretrained": str(path), "dtype": "float32", "device": "cpu"},
    }


def player() -> Any:
    """Return a model for the harness whose replies depend on the request alone, hits among them."""
    from lm_eval.api.model import LM

    class Player(LM):
        tokenizer_name = "player"

        def loglikelihood(self, requests: Any) -> Any:
            return [(-_draw(*r.args) % 997 / 31, _draw(*r.args) % 3 == 0) for r in requests]

        def loglikelihood_rolling(self, requests: Any) -> Any:
            return [-float(_draw(*r.args) % 997) for r in requests]

        def generate_until(self, requests: Any) -> Any:
            seen: dict[str, int] = {}
            return [self._text(r, seen) for r in requests]

        def _text(self, request: Any, seen: dict[str, int]) -> str:
            doc, context = request.doc, request.args[0]
            seen[context] = seen.get(context, -1) + 1
            right, wrong = doc["choices"][doc["gold"]], doc["choices"][doc["gold"] - 1]
            return PARTS[_draw(context, seen[context]) % len(PARTS)].format(
                right=right, wrong=wrong, sentence=doc["sentence"]
            )

        def apply_chat_template(self, history: Any, add_generation_prompt: bool = True) -> str:
            return json.dumps([dict(one) for one in history]) + str(add_generation_prompt)

    return Player()


def _draw(*parts: Any) -> int:
    return zlib.crc32(repr(parts).encode())


def config_of(names: Sequence[str], *words: str) -> RunConfig:
    """Compose the same tasks for xpe, in compat mode unless said otherwise."""
    return compose(
        [
            "task=lm_eval",
            f"task.lm_eval.names=[{','.join(names)}]",
            f"task.lm_eval.include_path={TASKS}",
            "task.lm_eval.include_defaults=false",
            "trust_task_code=true",
            "tracking=none",
            f"stats.bootstrap_iters={ITERS}",
            *words,
        ]
    )


def samples_by_doc(found: Mapping[str, Any], task: str) -> dict[int, Mapping[str, Any]]:
    """Return the harness's samples of a task by document, of its first filter."""
    by_doc: dict[int, Mapping[str, Any]] = {}
    for sample in found["samples"][task]:
        by_doc.setdefault(sample["doc_id"], sample)
    return by_doc


def replayed(
    names: Sequence[str], found: Mapping[str, Any], *words: str
) -> tuple[dict[str, TaskResult], Any]:
    """Score the harness's responses to tasks by xpe; return results and groups."""
    with inside(TASKS):
        return _replayed(config_of(names, *words), found)


def _replayed(config: RunConfig, found: Mapping[str, Any]) -> tuple[dict[str, TaskResult], Any]:
    run = Run({}, config.leaves, config.evaluators, config.groups, stats=config.stats,
              compat=config.compat)  # fmt: skip
    rows, tasks = {}, {}
    for task in config.leaves:
        theirs = samples_by_doc(found, task.name)
        answers = [_answer(task, sample, theirs[sample.doc_id]) for sample in task.samples()]
        rows[task.name] = tabulate(config.evaluators[task.name], answers, lambda *_: None)
        estimates = summarise(run, rows[task.name])
        tasks[task.name] = TaskResult(task.name, estimates, task.n_original, len(answers))
    groups = group_estimates(config.groups, tasks, rows, config.stats, compat=config.compat)
    return tasks, groups


def _answer(task: Any, sample: Any, theirs: Mapping[str, Any]) -> Answer:
    requests = task.requests(sample)
    replies = replies_of(requests, theirs["resps"], f"{task.name} {sample.doc_id}")
    return Answer(sample, tuple(map(Exchange, requests, replies)))


def arguments_of(task: Any, sample: Any, render: Any) -> list[tuple[Any, ...]]:
    """Return what xpe asks, in the form of the harness; repeats once."""
    found: list[tuple[Any, ...]] = []
    for request in task.requests(sample):
        if isinstance(request, Rolling):
            found.append((request.text,))
        elif isinstance(request, Generate):
            one = (render(request.prompt), tuple(request.stop), request.max_tokens)
            found += [] if one in found else [one]
        elif isinstance(request, LogLikelihood):
            found += [(render(request.context), text) for text in request.continuations]
    return found


def their_arguments(sample: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return what the harness asked."""
    found = []
    for arguments in sample["arguments"]:
        if len(arguments) == 2 and isinstance(arguments[1], dict):
            kwargs = arguments[1]
            until = kwargs["until"]
            stop = (until,) if isinstance(until, str) else tuple(until)
            found.append((arguments[0], stop, kwargs.get("max_gen_toks", 256)))
        else:
            found.append(tuple(arguments))
    return found


def assert_same_requests(
    names: Sequence[str], found: Mapping[str, Any], render: Any, *words: str
) -> None:
    """Every document of every task is asked the same, byte for byte, stop strings included."""
    with inside(TASKS):
        for task in config_of(names, "compat=lm_eval", *words).leaves:
            samples = samples_by_doc(found, task.name)
            assert sorted(samples) == [sample.doc_id for sample in task.samples()]
            for sample in task.samples():
                asked = arguments_of(task, sample, render)
                assert asked == their_arguments(samples[sample.doc_id]), task.name


def harness_rows(estimates: Mapping[str, Estimate]) -> dict[str, float | str]:
    """Return estimates under the harness's keys: `acc,none` and `acc_stderr,none`."""
    rows: dict[str, float | str] = {}
    for key, estimate in estimates.items():
        metric, _, name = key.partition(",")
        name = name or "none"
        rows[f"{metric},{name}"] = math.nan if estimate.value is None else estimate.value
        rows[f"{metric}_stderr,{name}"] = "N/A" if estimate.stderr is None else estimate.stderr
    return rows
