"""Fixtures that several folders of tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
_ran: list[bool] = []

# A check of a commit gives the same verdict each time; `HYPOTHESIS_PROFILE=explore` looks further.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of handed material: `$XPE_SHARED`, else `../shared` beside the checkout."""
    folder = Path(os.environ.get("XPE_SHARED") or ROOT.parent / "shared")
    if not (folder / "data").is_dir():
        pytest.skip(f"the handed data is not at {folder}")
    return folder


@pytest.fixture(autouse=True)
def _folders_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a test writes to runs, and the configs of this user, out of every test."""
    monkeypatch.setenv("XPE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("XPE_CONFIG_PATH", raising=False)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember which tests ran, and which of them looked at the handed data."""
    if report.when == "call" and not report.skipped:
        _ran.append("shared" in report.keywords)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests looked at the handed data."""
    terminalreporter.write_line(f"tests of the handed data that ran: {sum(_ran)}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a whole run that should have looked at the handed data and did not."""
    whole = len(_ran) > 1000 and not hasattr(session.config, "workerinput")
    if whole and os.environ.get("XPE_REQUIRE_SHARED") and not any(_ran):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
