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
    ]
    return hashlib.sha256(b"".join(array.tobytes() for array in made)).hexdigest()
"""


def run(code: str, **environment: str | None) -> str:
    """Run Python code in a process of its own; None takes a variable out of its environment."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(FOLDERS), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
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


def test_read_only_install_without_home(tmp_path):
    """Where nothing can be written the kernels compile anew, and nothing is written."""
    for folder, package in zip(FOLDERS, ("xpe", "xpe_kernels"), strict=True):
        ignored = shutil.ignore_patterns("__pycache__", "shipped", "conf")
        shutil.copytree(Path(folder, package), tmp_path / package, ignore=ignored)
    before = set(tmp_path.rglob("*"))
    for path in before:
        path.chmod(0o555 if path.is_dir() else 0o444)
    tmp_path.chmod(0o555)
    code = """
from xpe.stats.bootstrap import resampled_sums
import xpe_kernels
print(xpe_kernels.__file__, resampled_sums([[1.5], [1.5]], iters=3, seed=1).tolist())
"""

    unwritable = dict.fromkeys(("XPE_CACHE_DIR", "XDG_CACHE_HOME"), "/dev/null/none")
    found = run(
        code,
        PYTHONPATH=str(tmp_path),
        PYTHONDONTWRITEBYTECODE="1",
        NUMBA_CACHE_DIR=None,
        HOME=None,
        **unwritable,
    )

    tmp_path.chmod(0o755)
    assert found == f"{tmp_path / 'xpe_kernels' / '__init__.py'} [[3.0], [3.0], [3.0]]"
    assert set(tmp_path.rglob("*")) == before


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
