"""The one place that chooses numba's flags and where compiled code is kept.

Compiled code goes to `$NUMBA_CACHE_DIR`, else `numba/` in `$XPE_CACHE_DIR`, else in
`$XDG_CACHE_HOME/xpe`, else in `~/.cache/xpe`; where none of them can be written, nothing is kept
and each process compiles anew. A shared temporary folder is no place for it: the cache is
unpickled, so it must belong to the user.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba import config, njit
from numba.core.compiler_lock import global_compiler_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_decorating = threading.Lock()


def _homes() -> Iterator[Path]:
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
        return
    if own := os.environ.get("XPE_CACHE_DIR"):
        yield Path(own, "numba")
        return
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        yield Path(xdg, "xpe", "numba")
    if home := os.environ.get("HOME"):
        yield Path(home, ".cache", "xpe", "numba")


def _version() -> str:
    # numba's own key is one file's time: a function called from another file would stay stale.
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path | None:
    """Return the folder that keeps compiled kernels; None where no folder can be written."""
    for home in _homes():
        folder = home / _version()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


_FOLDER = cache_folder()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call, without the GIL, kept in the cache folder if there is one."""
    with _decorating:
        kept = config.CACHE_DIR
        config.CACHE_DIR = str(_FOLDER or "")
        try:
            return njit(cache=_FOLDER is not None, nogil=True, error_model="numpy")(function)
        finally:
            config.CACHE_DIR = kept


def inline(function: Callable[..., Any]) -> Any:
    """Compile as a part of the kernels that call it."""
    return njit(nogil=True, error_model="numpy")(function)


# A process forked while another thread compiles would inherit the compiler's lock held for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
