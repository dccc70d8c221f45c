"""The peer, as all parity tests use it: offline, and without a look at the machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _peer() -> Iterator[None]:
    pytest.importorskip("lm_eval")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HF_DATASETS_OFFLINE", "1")
        # It asks pip and the shell about the machine, for seconds a run, and nothing is compared.
        patched.setattr("torch.utils.collect_env.get_pretty_env_info", str)
        yield
