"""Models between the jobs of a sweep: loaded once, freed when they change."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from xpe.errors import DataError, EngineError
from xpe.models.warm import kept, taken


@dataclass
class Loaded:
    """Counts how often it was freed; equal to another with the same weights."""

    weights: str = "a"
    closed: int = field(default=0, compare=False)

    def load(self) -> None: ...

    def close(self) -> None:
        self.closed += 1


class Client:
    """A model without weights."""

    closed = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Client)

    __hash__ = None  # type: ignore[assignment]

    def close(self) -> None:
        self.closed += 1


def job(**models: Any) -> dict[str, Any]:
    with taken(models) as given:
        return dict(given)


def test_equal_settings_share_a_model() -> None:
    """The second job gets the first one's model; it is freed once, at the end."""
    first, second = Loaded(), Loaded()
    with kept():
        assert job(model=first)["model"] is first
        assert job(model=second)["model"] is first
        assert first.closed == 0
    assert (first.closed, second.closed) == (1, 0)


def test_another_model_frees_the_one_before() -> None:
    """The old one is freed before the new one is used."""
    old, new = Loaded("a"), Loaded("b")
    with kept():
        job(model=old)
        with taken({"model": new}):
            assert old.closed == 1
    assert new.closed == 1


def test_outside_of_a_sweep_a_job_frees_its_models() -> None:
    """A lone job leaves nothing behind."""
    model = Loaded()
    job(model=model)
    assert model.closed == 1


def test_a_judge_of_the_same_settings_is_a_model_of_its_own() -> None:
    """Two parts of one job never share; each finds its own again in the next job."""
    with kept():
        first = job(model=Loaded(), judge=Loaded())
        assert first["model"] is not first["judge"]
        second = job(model=Loaded(), judge=Loaded())
        assert {id(m) for m in second.values()} == {id(m) for m in first.values()}


def test_a_model_without_weights_is_not_kept() -> None:
    """A client counts what it was asked, so that each job has one of its own."""
    with kept():
        client = Client()
        job(model=client)
        assert client.closed == 1
        assert job(model=Client())["model"] is not client


@pytest.mark.parametrize(
    ("error", "freed"), [(EngineError("died"), 1), (RuntimeError("?"), 1), (DataError("row"), 0)]
)
def test_after_an_error(error: Exception, freed: int) -> None:
    """A dead engine is not handed on; an error in the data costs no reload."""
    model = Loaded()
    with kept():
        with pytest.raises(type(error)), taken({"model": model}):
            raise error
        assert model.closed == freed
    assert model.closed == 1


SWEEP = """
    import os, sys
    from pydantic.dataclasses import dataclass
    from xpe.cli import main
    from xpe.registry import MODELS, STRICT
    from xpe.types import Scored

    @dataclass(frozen=True, config=STRICT)
    class Heavy:
        weights: str = "w"

        @property
        def identity(self):
            return {"weights": self.weights}

        def note(self, what):
            with open(os.environ["LOADS"], "a") as lines:
                lines.write(f"{what} {self.weights}\\n")

        def load(self):
            if "loaded" not in self.__dict__:
                self.__dict__["loaded"] = True
                self.note("load")

        def close(self):
            if self.__dict__.pop("loaded", False):
                self.note("free")

        def reply(self, asked):
            for one in asked:
                self.load()
                n = len(one.request.continuations)
                yield one, Scored((-1.0,) * n, (False,) * n, (1,) * n)

    MODELS.register("heavy", Heavy)
    if __name__ == "__main__":
        sys.exit(main())
"""


def test_a_sweep_loads_each_model_once(tmp_path: Path) -> None:
    """Four jobs of two models, the model first: two loads, each freed before the next."""
    (tmp_path / "model").mkdir()
    for name in "ab":
        (tmp_path / "model" / f"{name}.yaml").write_text(f"kind: heavy\nweights: {name}\n")
    script = tmp_path / "sweep.py"
    script.write_text(textwrap.dedent(SWEEP))
    words = ["-m", "model=a,b", "num_fewshot=0,1", "task=capitals_en", "limit=3", "tracking=none"]
    env = os.environ | {"LOADS": str(tmp_path / "loads"), "XPE_CONFIG_PATH": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-W", "ignore", str(script), *words, "stats.bootstrap_iters=0"],
        env=env, cwd=tmp_path, check=True, timeout=120, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert (tmp_path / "loads").read_text().split("\n")[:-1] == [
        "load a",
        "free a",
        "load b",
        "free b",
    ]
