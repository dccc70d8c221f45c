"""Kernels are compiled while a model runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import xpe.launch
from xpe.config import compose
from xpe.launch import launch


@pytest.mark.parametrize(("iters", "expected"), [(100, ["warm", "ask"]), (0, ["ask"])])
def test_kernels_warm_before_the_model_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, iters: int, expected: list[str]
) -> None:
    """The background thread starts first; a run without a bootstrap starts none."""
    path = tmp_path / "said.jsonl"
    lines = [json.dumps({"id": i, "log_likelihoods": [0.0, -1.0, -2.0, -3.0]}) for i in range(3)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["task=capitals_en", "limit=3", "tracking=none", "model=replay", f"model.path={path}"]
    called: list[str] = []
    evaluate = xpe.launch.evaluate

    def asked(*args: Any, **kwargs: Any) -> Any:
        called.append("ask")
        return evaluate(*args, **kwargs)

    monkeypatch.setattr("xpe.stats.bootstrap.warm", lambda: called.append("warm"))
    monkeypatch.setattr("xpe.launch.evaluate", asked)
    launch(compose([*words, f"stats.bootstrap_iters={iters}"]), tmp_path / "run", ())

    assert called == expected
