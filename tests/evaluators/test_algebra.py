"""Workers that compare formulas: killed at the limit, used again, safe after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from xpe.errors import EngineError
from xpe.evaluators import algebra
from xpe.evaluators.algebra import compare

LIMIT = 20.0
ENDLESS = "9^{9^{9^{9^9}}}"


@pytest.mark.parametrize(
    ("gold", "said", "equal"),
    [
        ("x^2+1", "1+x^2", True),
        ("(x+1)^2", "x^2+2x+1", True),
        ("x^2+1", "x^2-1", False),
        (r"\frac{\sqrt{3}}{2}", r"\sqrt{3}/2", True),
        ("[0,1)", r"0 \le x < 1", True),
        ("x=1 or x=2", "x=2 or x=1", True),
    ],
)
def test_equality_is_that_of_mathematics(gold, said, equal):
    """Formulas that mean the same are equal, however they are written."""

    assert equal is compare(gold, said, LIMIT).equal


def test_values_come_back():
    """Where both are numbers, their values are given, for tolerances to apply."""
    found = compare(r"2\sqrt{3}", "3.46", LIMIT)

    assert (found.value, found.gold_value) == (3.46, pytest.approx(12**0.5))


def test_what_cannot_be_read_is_not_parsed():
    """A prediction that is no formula is not parsed, which is not a time-out."""

    assert compare("x", "", LIMIT).parsed is False


def test_a_comparison_is_killed_at_its_limit():
    """What takes too long returns None in time, and the next comparison works."""
    compare("x", "x", LIMIT)
    start = time.monotonic()

    assert compare("3", ENDLESS, 1.0) is None
    assert time.monotonic() - start < 2
    assert compare("x", "x", LIMIT).equal


def test_a_worker_is_used_again():
    """Comparisons one after the other share a process."""
    compare("x", "x", LIMIT)
    before = list(algebra._IDLE.workers)

    compare("y", "y", LIMIT)

    assert before == algebra._IDLE.workers


def test_threads_have_workers_of_their_own():
    """A slow comparison in one thread does not hold up, or end, that of another."""
    found = {}
    slow = threading.Thread(target=lambda: found.update(slow=compare("3", ENDLESS, 3.0)))
    slow.start()

    found["quick"] = compare("x", "x", LIMIT)
    slow.join()

    assert found["slow"] is None
    assert found["quick"].equal


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_fork_does_not_share_pipes():
    """A forked child starts a worker of its own, and the parent keeps its one."""
    program = """
import os
from xpe.evaluators.algebra import compare
assert compare("x", "x", 60).equal
child = os.fork()
assert compare("a+b", "b+a", 60).equal
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_no_worker_outlives_its_parent():
    """When the program ends, its workers end."""
    program = (
        "from xpe.evaluators import algebra; algebra.compare('x', 'x', 60);"
        "print(algebra._IDLE.workers[0]._process.pid)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
    )

    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_a_worker_that_does_not_start_is_an_error(monkeypatch):
    """A broken installation is reported as such, and scores nothing."""
    monkeypatch.setattr(algebra, "_PROGRAM", "raise SystemExit")
    monkeypatch.setattr(algebra._IDLE, "workers", [])

    with pytest.raises(EngineError, match="did not start"):
        compare("x", "x", LIMIT)
