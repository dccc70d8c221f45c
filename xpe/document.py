"""The result document: the numbers, and all that is needed to defend and recompute them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from xpe import __version__
from xpe.report import SCHEMA, results_json
from xpe.types import Model, Result

_PACKAGES = (
    "numpy",
    "numba",
    "torch",
    "transformers",
    "vllm",
    "openai",
    "sacrebleu",
    "nltk",
    "jieba",
)


_TOLD = ("num_fewshot", "gen_kwargs", "limit", "samples", "shard", "compat", "predict_only")


@dataclass(frozen=True)
class Facts:
    """What is known of a job beside its numbers.

    `plain` is the resolved config as in `config.yaml`; `data` gives source and SHA-256 of the
    data of each task, `shots` how many examples stand before each of its questions.
    """

    plain: Mapping[str, Any]
    started: datetime
    seconds: float
    fingerprint: str
    data: Mapping[str, tuple[str, str]]
    shots: Mapping[str, int]


def document(result: Result, models: Mapping[str, Model], facts: Facts) -> dict[str, Any]:
    """Return the content of `results.json`."""
    tasks, model = facts.plain["task"], models["model"]
    return {
        "schema": SCHEMA,
        **results_json(result),
        "configs": tasks,
        "versions": {name: task.get("version") for name, task in tasks.items()},
        "n-shot": dict(facts.shots),
        "config": settings_json(facts.plain),
        "data": {name: list(pair) for name, pair in facts.data.items()},
        "git_hash": git_hash(),
        "environment": environment() | _told(models),
        "models": {name: dict(part.identity) for name, part in models.items()},
        "tokenizer": dict(getattr(model, "tokenizer_facts", {})),
        "started": facts.started.isoformat(timespec="seconds"),
        "duration_s": round(facts.seconds, 3),
        "fingerprint": facts.fingerprint,
    }


def environment() -> dict[str, Any]:
    """Return versions and machine facts; only packages that this process has imported."""
    found: dict[str, Any] = {
        "xpe": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
    }
    for name in _PACKAGES:
        if name in sys.modules:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = getattr(sys.modules[name], "__version__", None)
    return found


def _told(models: Mapping[str, Model]) -> dict[str, Any]:
    """Return what models tell beside their replies; that of a judge under its name."""
    told = {name: dict(getattr(model, "environment", {})) for name, model in models.items()}
    return told.pop("model", {}) | {name: found for name, found in told.items() if found}


def git_hash() -> str | None:
    """Return the commit of the repository that the run was started in, None outside of one."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def settings_json(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a plain config says of a run, under the harness's names where it has them."""
    model, seed = plain["model"], plain["seed"]
    return {
        "model": model["kind"],
        "model_args": {key: value for key, value in model.items() if key != "kind"},
        "random_seed": seed["random"],
        "numpy_seed": seed["numpy"],
        "torch_seed": seed["torch"],
        "fewshot_seed": seed["fewshot"],
        "bootstrap_iters": plain["stats"]["bootstrap_iters"],
        **{key: plain.get(key) for key in _TOLD},
    }
