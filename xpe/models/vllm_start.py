"""Starts vLLM's engine: its environment, its log, and its errors in our words."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any, BinaryIO

from xpe.errors import ConfigError, EngineError, MissingExtraError, WeightsError, XpeError, unknown

log = logging.getLogger(__name__)

_ENVIRONMENT = {
    # What children write goes to the engine's log, from which the cause of a failure is read.
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    # L tokens of input need a limit of L + 1 in the engine, which counts the token that is read
    # after them; that token is never computed, so that no position exceeds what the model knows.
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1",
}
_ON_CPU: Mapping[str, Any] = {
    "enforce_eager": True,
    # The CPU build's own 128 would compute up to 127 tokens of a shared prefix again.
    "block_size": 32,
}
_CPU_MEMORY = "VLLM_CPU_KVCACHE_SPACE"
_CPU_KV_BYTES = 4 << 30
_MEMORY = frozenset({"kv_cache_memory_bytes", "gpu_memory_utilization"})
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
_RAISED = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Interrupt)): *(\S.*)")
_TAIL = 1 << 16
_GRACE = 1.0
"""Seconds that the engine has for its end."""


def vllm_for(what: str) -> Any:
    """Import vLLM, or name the extra that brings it; only where the user left them open are
    its environment variables set.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import vllm
    except ImportError as error:
        raise MissingExtraError.of(what, "vllm", "vllm") from error
    return vllm


def is_cpu() -> bool:
    """Tell whether the installed vLLM runs on the CPU."""
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())


def platform_defaults(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the engine arguments that are right for this platform where `chosen` is silent."""
    if not is_cpu():
        return {}
    defaults = {name: value for name, value in _ON_CPU.items() if name not in chosen}
    if _CPU_MEMORY in os.environ or _MEMORY & set(chosen):
        return defaults
    # Its own choice is nearly all memory of the machine.
    return defaults | {"kv_cache_memory_bytes": _CPU_KV_BYTES}


def check_arguments(arguments: Mapping[str, Any], ours: Mapping[str, str]) -> None:
    """Compare the names of engine arguments with what the installed engine takes.

    Parameters
    ----------
    arguments
        What stands under `model.engine`.
    ours
        Arguments that have a setting of their own: `{max_model_len: max_length}`.
    """
    from vllm.engine.arg_utils import EngineArgs

    known = {field.name for field in fields(EngineArgs) if field.init} - set(ours)
    for name in arguments:
        if name in ours:
            raise ConfigError(f"model.engine.{name}: set model.{ours[name]} instead")
        if name not in known:
            raise unknown("engine argument", name, known)


@dataclass
class Started:
    """A running engine, its processes, and what they wrote."""

    llm: Any
    children: tuple[Any, ...]
    output: BinaryIO
    closing: bool = False

    @property
    def dead(self) -> bool:
        """Whether one of its processes has ended."""
        return any(not child.is_alive() for child in self.children)

    @property
    def cause(self) -> str:
        """The last error in the engine's log."""
        return cause_in(self.output) or "it left no message; was it killed, or out of memory?"

    def close(self) -> None:
        """End the engine's processes and wait until they are gone."""
        self.closing = True
        shutdown = self.llm.llm_engine.engine_core.shutdown
        # Nothing is under way any more, and vLLM's processes wait for each other until a timeout.
        patient = "timeout" in signature(shutdown).parameters
        shutdown(**({"timeout": _GRACE} if patient else {}))
        for child in self.children:
            child.join(timeout=10)
            if child.is_alive():
                child.kill()
                child.join(timeout=5)
        self.output.close()


def start(arguments: Mapping[str, Any]) -> Started:
    """Load the engine.

    Raises
    ------
    ConfigError
        The engine refuses an argument, or its memory does not hold one longest input.
    EngineError
        It does not start for another reason, which the message tells.
    """
    vllm = vllm_for("model=vllm")
    before = set(multiprocessing.active_children())
    output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the engine
    try:
        with _errors_into(output):
            llm = vllm.LLM(**arguments)
        if os.environ["VLLM_LOGGING_LEVEL"] == _ENVIRONMENT["VLLM_LOGGING_LEVEL"]:
            # Its warnings in this process are about how it is called and how its children end.
            logging.getLogger("vllm").setLevel(logging.ERROR)
    except XpeError:
        raise
    except Exception as error:
        raise _translated(error, output) from error
    children = tuple(c for c in multiprocessing.active_children() if c not in before)
    started = Started(llm, children, output)
    _wake_when_dead(started)
    return started


def cause_in(output: BinaryIO) -> str:
    """Return the last line of the end of a log that says what was raised."""
    output.seek(0, os.SEEK_END)
    output.seek(max(0, output.tell() - _TAIL))
    text = output.read().decode("utf-8", "replace")
    found = [f"{name}: {said}" for name, said in _RAISED.findall(text)]
    telling = [line for line in found if "Engine core initialization failed" not in line]
    return telling[-1].strip() if telling else ""


def _translated(error: Exception, output: BinaryIO) -> XpeError:
    said = f"{type(error).__name__}: {_reason(error)}"
    if "Engine core" in said:
        said = cause_in(output) or said
    if "KV cache" in said or "memory" in said.lower():
        return ConfigError(
            f"model=vllm: too little memory for the engine: {said} Lower model.max_length, or "
            "give it more: model.engine.gpu_memory_utilization on a GPU, on a CPU the "
            f"environment variable {_CPU_MEMORY} (GiB)"
        )
    if isinstance(error, (ValueError, TypeError)) or said.startswith(("ValueError", "TypeError")):
        return ConfigError(f"model=vllm: the engine refuses its settings: {said}")
    return EngineError(f"model=vllm: the engine does not start: {said}")


def _reason(error: Exception) -> str:
    """Return what an error says in one line; pydantic's say more than what is wrong."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return " ".join(str(error).split())
    return "; ".join(found["msg"] for found in errors())


@contextmanager
def _errors_into(output: BinaryIO) -> Iterator[None]:
    """Send what this process and its new children write to stderr into a file.

    A child keeps it for life: its traceback would else stand beside our message.
    """
    import sys

    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(output.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _wake_when_dead(started: Started) -> None:
    """Have a wait for output end when the engine's process is killed.

    vLLM sees such a death, but whoever waits for output then is not told.
    """
    from threading import Thread

    outputs = getattr(started.llm.llm_engine.engine_core, "outputs_queue", None)
    if outputs is None or not started.children:
        return

    def watch() -> None:
        from multiprocessing.connection import wait

        wait([child.sentinel for child in started.children])
        if not started.closing:
            outputs.put(EngineError("an engine process ended"))

    Thread(target=watch, daemon=True, name="xpe-vllm-watch").start()


def stepping(started: Started, step: Callable[[], Any]) -> Any:
    """Call into the engine; its death is an error of ours.

    Raises
    ------
    EngineError
        The engine is dead.
    """
    try:
        return step()
    except Exception as error:
        dead = type(error).__name__ == "EngineDeadError" or isinstance(error, EngineError)
        if not dead and not started.dead:
            raise
        raise EngineError(
            f"model=vllm: the engine died: {started.cause} What it answered is kept; "
            "start the same run again to go on"
        ) from error


def lora_rank(folder: Path) -> int:
    """Return the least rank that the engine can be told of and that holds an adapter.

    Raises
    ------
    WeightsError
        The folder holds no adapter.
    """
    path = folder / "adapter_config.json"
    try:
        rank = int(json.loads(path.read_text(encoding="utf-8"))["r"])
    except (OSError, ValueError, KeyError) as error:
        raise WeightsError(
            f"model.lora={folder}: no readable adapter_config.json: {error}"
        ) from error
    return next((known for known in _RANKS if known >= rank), rank)
