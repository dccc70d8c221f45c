"""Folders outside the checkout: what is kept between runs, and the runs themselves."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder for converted weights, compiled kernels, indices and kept replies.

    `$XPE_CACHE_DIR`, else `$XDG_CACHE_HOME/xpe`, else `~/.cache/xpe`; a folder in the system's
    temporary one where that cannot be written (no home, read-only file system).
    """
    chosen = os.environ.get("XPE_CACHE_DIR")
    if chosen:
        return _made(Path(chosen).expanduser().absolute()) or _scratch()
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(base) / "xpe" if base else Path.home() / ".cache" / "xpe"
    except RuntimeError:  # no home folder
        return _scratch()
    return _made(folder.absolute()) or _scratch()


def runs_dir() -> Path:
    """Return the folder of runs and of `mlflow.db`: `$XPE_RUNS`, else `./runs`. Not made here."""
    return Path(os.environ.get("XPE_RUNS") or "runs").expanduser().absolute()


def _made(folder: Path) -> Path | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _scratch() -> Path:
    folder = Path(tempfile.gettempdir()) / f"xpe-cache-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
