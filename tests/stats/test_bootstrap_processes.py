"""The kernels in other processes: other CPUs, no cache, forks, and threads at once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import xpe_kernels

import xpe

FOLDERS = [str(Path(package.__file__).parents[1]) for package in (xpe, xpe_kernels)]
DIGEST = """
import hashlib
import numpy as np
from xpe.stats.bootstrap import lm_eval_replicates, resampled_quantiles, resampled_sums
from xpe.stats.pooling import pooled

def digest(threads=None):
    rng = np.random.default_rng(0)
    x, groups = rng.normal(size=(5000, 3)), rng.integers(0, 900, 5000)
    draw = dict(iters=40, seed=9, threads=threads)
    made = [
        resampled_sums(x[:, :1], **draw),
        resampled_sums(x, **draw),
        resampled_sums(np.rint(99 * x), clusters=groups, **draw),
        resampled_sums(np.sign(x), **draw),
        resampled_quantiles(x[:, 0], 0.3, **draw),
        resampled_quantiles(x, 0.3, clusters=groups, **draw),
        lm_eval_replicates(x[:, 0], of="sum", iters=40, threads=threads),
        lm_eval_replicates(x[:, 0], of="upper_median", iters=40, threads=threads),
        pooled(np.arange(1, 6) * 1000, 2 + groups, x[:, 0], x[:, 1] ** 2).micro.stderr_G,
        pooled(np.arange(1, 6) * 1000, 2 + groups, x[:, 0], x[:, 1] ** 2).total_stderr_G,
    ]
    return hashlib.sha256(b"".join(array.tobytes() for array in made)).hexdigest()
"""


def run(code: str, *words: str, **environment: str | None) -> str:
    """Run Python code in a process of its own; None takes a variable out of its environment."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(FOLDERS), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "nothing is forbidden" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def digest() -> str:
    """What this CPU computes."""
    return run(f"{DIGEST}\nprint(digest())")


def test_same_bytes_on_any_cpu(digest):
    """Code made for the oldest x86-64 gives the same bytes, on one thread and on three."""
    code = f"{DIGEST}\nassert digest(1) == digest(3)\nprint(digest())"

    assert run(code, NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="") == digest


UNPRIVILEGED = """
import ctypes, os, sys
from pathlib import Path
if os.geteuid() == 0:
    # Root without capabilities is held to the permission bits of its own files.
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    getattr(ctypes.CDLL(None), "capset", print)(header, nothing)
try:
    Path(sys.argv[1], "written").touch()
except PermissionError:
    pass
else:
    sys.exit("nothing is forbidden to this user")
"""


@pytest.fixture
def read_only(tmp_path):
    """An install in which no file and no folder can be written."""
    install = tmp_path / "install"
    for folder, package in zip(FOLDERS, ("xpe", "xpe_kernels"), strict=True):
        ignored = shutil.ignore_patterns("__pycache__", "shipped", "conf")
        shutil.copytree(Path(folder, package), install / package, ignore=ignored)
    folders = [install, *(path for path in install.rglob("*") if path.is_dir())]
    for path in install.rglob("*"):
        path.chmod(0o444 if path.is_file() else 0o555)
    install.chmod(0o555)
    yield install
    for path in folders:
        path.chmod(0o755)


@pytest.mark.parametrize("home", [None, "its own folder"])
def test_read_only_install_without_home(read_only, home):
    """Where nothing can be written the kernels compile anew, and nothing is written."""
    before = set(read_only.rglob("*"))
    code = f"""{UNPRIVILEGED}
from xpe.stats.bootstrap import resampled_sums
import xpe_kernels
from xpe_kernels._jit import cache_folder
print(xpe_kernels.__file__, cache_folder(), resampled_sums([[1.5]] * 2, iters=2, seed=1).tolist())
"""

    unset = dict.fromkeys(("NUMBA_CACHE_DIR", "XPE_CACHE_DIR", "XDG_CACHE_HOME"))
    found = run(
        code, str(read_only), PYTHONPATH=str(read_only), HOME=home and str(read_only), **unset
    )

    assert found == f"{read_only / 'xpe_kernels' / '__init__.py'} None [[3.0], [3.0]]"
    assert set(read_only.rglob("*")) == before


def test_forks_while_kernels_are_compiled(digest):
    """Children forked while the kernels warm, and after, compute the same and end."""
    code = f"""{DIGEST}
import os, sys, time
from xpe.stats.bootstrap import warm
thread = warm()
assert warm() is thread
children = []
for pause in (0.0, 0.3, 0.3):
    time.sleep(pause)
    child = os.fork()
    if child == 0:
        warm().join()
        sys.stdout.write(digest(2) + "\\n")
        sys.stdout.flush()
        os._exit(0)
    children.append(child)
thread.join()
print(digest(2), flush=True)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
"""

    # Four processes share the pipe: their line ends may come in any order.
    assert re.findall("[0-9a-f]{64}", run(code)) == [digest] * 4


def test_two_threads_at_once(digest):
    """Two threads whose first calls meet both get the right bytes, while a third warms."""
    code = f"""{DIGEST}
import threading
from xpe.stats.bootstrap import warm
found = []
threads = [threading.Thread(target=lambda: found.append(digest(2))) for _ in range(2)]
warmers = [threading.Thread(target=warm) for _ in range(2)]
for thread in (*warmers, *threads):
    thread.start()
for thread in threads:
    thread.join()
print(*found)
"""

    assert run(code).split() == [digest] * 2


def test_imports_leave_numba_alone():
    """Nothing is imported, decorated or compiled before the first replicate is asked for."""
    code = """
import sys
import xpe.stats.bootstrap, xpe.stats.groups
print([name for name in ("numba", "llvmlite", "xpe_kernels", "scipy") if name in sys.modules])
"""

    assert run(code) == "[]"


def test_end_of_process_does_not_wait_for_all_kernels(tmp_path):
    """A process that ends while the kernels warm ends cleanly."""
    code = "from xpe.stats.bootstrap import warm; warm(); print('done')"

    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "done"


def test_kernels_are_kept(tmp_path):
    """A second process loads what the first has compiled, and adds nothing."""
    code = """
from xpe.stats.bootstrap import resampled_quantiles
resampled_quantiles([1.0, 2.0], 0.5, iters=1, seed=0)
"""
    run(code, NUMBA_CACHE_DIR=None, XPE_CACHE_DIR=str(tmp_path))
    kept = sorted(tmp_path.rglob("*.nb*"))
    run(code, NUMBA_CACHE_DIR=None, XPE_CACHE_DIR=str(tmp_path))

    assert [path.suffix for path in kept] == [".nbc", ".nbi"]
    assert sorted(tmp_path.rglob("*.nb*")) == kept
