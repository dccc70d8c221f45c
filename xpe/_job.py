"""`xpe run`: Hydra composes and sweeps, each job goes to `xpe.launch`, codes are collected.

Hydra's launchers may run jobs in other processes, so that a job of a sweep leaves one line in
`cells.jsonl` of the sweep's folder; the table and the exit code are made of these lines.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import shorten
from typing import Any

import hydra
import yaml
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from xpe import _hydra
from xpe._overrides import parsed, quoted
from xpe.config import compose, dump, finish, tracker_of
from xpe.data.cache import runs_dir
from xpe.errors import OutputError, XpeError
from xpe.models.warm import kept
from xpe.tracking import PARENT

log = logging.getLogger(__name__)

CELLS = "cells.jsonl"
_codes: list[int] = []


class Sweep(Callback):  # type: ignore[misc]
    """Remembers what `run` has to report, since Hydra returns nothing, and opens a parent run."""

    folder: Path
    tracker: Any = None
    parent: str | None = None

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Keep the exit code of the only job."""
        value = kwargs["job_return"]._return_value  # noqa: SLF001
        _codes.append(value if isinstance(value, int) else 1)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Keep the folder that the jobs write their cells to; begin the run above theirs.

        In the parent and before any job: a cold MLflow store breaks under parallel first calls.
        """
        self.folder = Path(config.hydra.sweep.dir).absolute()
        _sweeps.append(self)
        with _tracking_is_no_must():
            self.tracker = tracker_of(OmegaConf.to_container(config.tracking, resolve=True))
            if self.tracker is not None:
                params = {"overrides": " ".join(config.hydra.overrides.task)}
                self.parent = self.tracker.begin(self.folder.name, params, {"xpe.sweep": "true"})
                os.environ[PARENT] = str(self.parent)

    def close(self, codes: Sequence[int], *, whole: bool) -> None:
        """Close the run above those of the jobs, however the sweep ended."""
        os.environ.pop(PARENT, None)
        if self.parent is not None:
            with _tracking_is_no_must():
                self.tracker.close(self.parent, failed=not whole or any(codes))


_sweeps: list[Sweep] = []


def run(words: Sequence[str]) -> int:
    """Run what was typed and return the exit code: the highest of all jobs."""
    args = get_args_parser().parse_intermixed_args(list(words))
    # Hydra's own reading of the line wants settings in one piece: `task=a -m num_fewshot=0,5`.
    words = [*(word for word in words if word not in args.overrides), *args.overrides]
    texts = read(args.overrides, multirun=args.multirun)
    own = args.config_dir or args.config_path or args.config_name
    if not own and not any(text.startswith("hydra.searchpath") for text in texts):
        _hydra.check(texts)
    if args.cfg == "job":
        print(yaml.safe_dump(dump(compose(texts)), allow_unicode=True, sort_keys=False), end="")
        return 0
    if args.cfg or args.info or args.hydra_help or args.shell_completion:
        _through_hydra(words, args.overrides, texts)
        return 0
    if args.multirun:
        _hint_at_order(texts)
    _check_runs_folder()
    _codes.clear()
    _sweeps.clear()
    whole = False
    try:
        with kept():
            _through_hydra(words, args.overrides, texts)
        whole = True
    finally:
        for sweep in _sweeps:
            codes = _report(sweep.folder)
            sweep.close(codes, whole=whole)
            _codes.extend(codes)
    return max(_codes, default=0)


def job(cfg: DictConfig) -> int:
    """Run one job and return its code. In a sweep no error stops the others."""
    settings = HydraConfig.get()
    folder = Path(settings.runtime.output_dir)
    typed = list(settings.overrides.task)
    if settings.mode != RunMode.MULTIRUN:
        return _reported("xpe", cfg, folder, typed)[0]
    place = f"xpe: job {settings.job.num}"
    try:
        code, error = _reported(place, cfg, folder, typed)
    except Exception as fault:
        code, error = 1, f"{type(fault).__name__}: {fault}"
        log.exception("%s failed", place)
    cell = {"job": settings.job.num, "overrides": typed, "code": code, "error": error}
    cells = Path(settings.sweep.dir) / CELLS
    with cells.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(cell, ensure_ascii=False) + "\n")
    return code


def _reported(
    place: str, cfg: DictConfig, folder: Path, typed: list[str]
) -> tuple[int, str | None]:
    """Launch; an error of ours is printed here, since Hydra would add lines of its own."""
    try:
        with _no_empty_folder(folder):
            return _launch(cfg, folder, typed), None
    except XpeError as fault:
        print(f"{place}: {fault}", file=sys.stderr)
        return fault.exit_code, str(fault)


def _launch(cfg: DictConfig, folder: Path, typed: list[str]) -> int:
    from xpe.launch import launch

    return launch(finish(cfg, typed), folder, typed)


def _through_hydra(words: Sequence[str], overrides: Sequence[str], texts: Sequence[str]) -> None:
    """Call Hydra's own command line with the overrides quoted; its errors come as ours."""
    forms = dict(zip(overrides, texts, strict=True))
    main = hydra.main(version_base="1.3", config_path=_hydra.CONFIGS, config_name="config")(job)
    argv, full = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv = ["xpe", *(forms.get(word, word) for word in words)]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        with _hydra.in_our_words():
            main()
    finally:
        sys.argv = argv
        if full is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = full


def read(overrides: Sequence[str], *, multirun: bool) -> list[str]:
    """Quote what has to be quoted, and say so."""
    read = quoted(overrides, multirun=multirun)
    for text, changed in read:
        if changed:
            print(f"read as '{text}'", file=sys.stderr)
    return [text for text, _ in read]


def _hint_at_order(texts: Sequence[str]) -> None:
    sweeps = [o.key_or_group for o in map(parsed, texts) if o is not None and o.is_sweep_override()]
    models = [place for place, key in enumerate(sweeps) if key.split(".")[0] == "model"]
    if models and models[0] > 0:
        print(
            f"hint: the last override varies fastest; put {sweeps[models[0]]}= first, "
            "or every job loads a model",
            file=sys.stderr,
        )


def _check_runs_folder() -> None:
    folder = runs_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"the runs folder {folder} cannot be made: {error.strerror}. Set XPE_RUNS to another"
        ) from error
    if not os.access(folder, os.W_OK):
        raise OutputError(f"the runs folder {folder} cannot be written. Set XPE_RUNS to another")


@contextmanager
def _no_empty_folder(folder: Path) -> Iterator[None]:
    """Remove the folder that Hydra made if the job ends before anything is in it."""
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _tracking_is_no_must() -> Iterator[None]:
    """Warn where a tracker fails: it never costs a result."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        log.warning("the sweep has no parent run: %s: %s", type(error).__name__, error)


def _report(folder: Path) -> list[int]:
    """Print a table of a sweep's cells; return their codes."""
    file = folder / CELLS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    cells = sorted((json.loads(line) for line in lines), key=lambda cell: int(cell["job"]))
    words = {0: "ok", 3: "partial"}
    print(f"\nsweep: {folder}")
    for cell in cells:
        state = words.get(cell["code"], f"failed ({cell['code']})")
        why = f"  {shorten(cell['error'], 80, placeholder=' …')}" if cell["error"] else ""
        print(f"  {cell['job']:>3}  {state:<10}  {' '.join(cell['overrides'])}{why}")
    return [int(cell["code"]) for cell in cells]
