"""Models run by vLLM's offline engine."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.models import loading
from xpe.models.tokenized import Tokenized
from xpe.models.vllm_serving import Serving
from xpe.models.vllm_start import (
    check_arguments,
    is_cpu,
    lora_rank,
    platform_defaults,
    start,
    vllm_for,
)
from xpe.registry import STRICT
from xpe.types import Asked, Reply

_OURS = {
    "model": "path",
    "tokenizer": "tokenizer",
    "revision": "revision",
    "trust_remote_code": "trust_remote_code",
    "dtype": "dtype",
    "max_model_len": "max_length",
    "enable_lora": "lora",
}
"""Engine arguments that have a setting of their own."""
_RESOURCES = frozenset(
    {
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "distributed_executor_backend",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "cpu_offload_gb",
        "swap_space",
        "block_size",
        "max_num_seqs",
        "max_num_batched_tokens",
        "enforce_eager",
        "enable_prefix_caching",
        "enable_chunked_prefill",
        "async_scheduling",
        "disable_log_stats",
        "load_format",
        "download_dir",
    }
)
"""Engine arguments that move replies in their last digits at most."""


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Vllm(Tokenized):
    """A causal language model of a local folder or the Hub, run by vLLM.

    Parameters
    ----------
    path
        A folder with config.json, weights and tokenizer, or the name of a model on the Hub.
    tokenizer
        Folder or name of the tokenizer, where it is another.
    revision
        Branch, tag or commit on the Hub.
    trust_remote_code
        Whether code that comes with the model may run.
    dtype
        `auto`: the checkpoint's own, but float32 on a CPU.
    lora
        Folder of a LoRA adapter, which every request uses.
    engine
        Every other argument of the installed engine, by its name there: `quantization`,
        `tensor_parallel_size`, `gpu_memory_utilization`, `enforce_eager`, …
    """

    backend: ClassVar[str] = "vllm"
    ends_at_interrupt: ClassVar[bool] = True

    path: str
    tokenizer: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    lora: str | None = None
    engine: dict[str, Any] = Field(default_factory=dict)

    @property
    def source(self) -> loading.Source:
        """Where weights and tokenizer are."""
        return loading.Source(
            self.path, self.tokenizer, self.revision, self.trust_remote_code, self.lora
        )

    def check(self) -> None:
        """Find out, before any data is read, that the model cannot be loaded; cheap.

        Raises
        ------
        MissingExtraError
            vLLM is not installed.
        WeightsError
            The folder is missing, incomplete or damaged.
        ConfigError
            The installed engine has no such argument, or the template is not there.
        """
        vllm_for(f"model={self.backend}")
        self.source.check()
        check_arguments(self.engine, _OURS)
        _ = self._config, self.prompts

    # --- what it is -------------------------------------------------------------------------

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """See `types.Model`. Reads config and tokenizer, not the weights."""
        return {
            "backend": self.backend,
            **self.source.identity(self._config),
            "dtype": self._dtype,
            **self._tokens_identity,
            "engine": {k: v for k, v in sorted(self.engine.items()) if k not in _RESOURCES},
            "vllm": vllm_for(f"model={self.backend}").__version__,
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """What moves replies in their last digits, as it applied in this run."""
        found: dict[str, Any] = {"device": "cpu" if is_cpu() else "cuda"}
        if (serving := self.__dict__.get("_serving")) is not None:
            settings = {**platform_defaults(self.engine), **self.engine}
            found |= {k: v for k, v in settings.items() if k in _RESOURCES}
            found["log_likelihoods"] = serving.ways[0].value
            found["batch_invariant"] = is_cpu() or os.environ.get("VLLM_BATCH_INVARIANT") == "1"
        return found

    @cached_property
    def _dtype(self) -> str:
        return loading.resolved_dtype(self.dtype, self._config, "cpu" if is_cpu() else "cuda")

    # --- loaded or not ----------------------------------------------------------------------

    def load(self) -> None:
        """Start the engine now and not at the first request."""
        _ = self._serving

    def close(self) -> None:
        """End the engine and its processes; a later request starts it again."""
        serving = self.__dict__.pop("_serving", None)
        if serving is not None:
            serving.started.close()
            del serving
            gc.collect()

    @cached_property
    def _serving(self) -> Serving:
        vllm_for(f"model={self.backend}")
        started = start(self._arguments)
        try:
            serving = Serving(
                started, self.prompts, self.reasoning, self._dtype, self._lora_request
            )
            serving.prove()
        except BaseException:
            started.close()
            raise
        return serving

    @property
    def _arguments(self) -> dict[str, Any]:
        """What the engine is started with."""
        path = Path(self.path).expanduser()
        return {
            "model": str(path) if path.exists() else self.path,
            "tokenizer": self.tokenizer,
            "revision": self.revision,
            "tokenizer_revision": self.revision,
            "trust_remote_code": self.trust_remote_code,
            "dtype": self._dtype,
            # The engine counts the token behind an input of L.
            "max_model_len": self.length + 1,
            "enable_prefix_caching": True,
            **platform_defaults(self.engine),
            **self._lora_arguments,
            **self.engine,
        }

    @property
    def _lora_arguments(self) -> dict[str, Any]:
        if self.lora is None:
            return {}
        return {"enable_lora": True, "max_lora_rank": lora_rank(Path(self.lora).expanduser())}

    @property
    def _lora_request(self) -> Any:
        if self.lora is None:
            return None
        from vllm.lora.request import LoRARequest

        return LoRARequest("adapter", 1, str(Path(self.lora).expanduser()))

    # --- answers ----------------------------------------------------------------------------

    def reply(self, asked: Iterable[Asked | None], /) -> Iterator[tuple[Asked, Reply] | None]:
        """See `types.Model`. The engine starts when the first request comes.

        Raises
        ------
        ConfigError
            The engine refuses its settings, or they leave it too little memory.
        EngineError
            The engine died.
        """
        source = iter(asked)
        for one in source:
            if one is None:
                yield None
                continue
            yield from self._serving.stream(_after(one, source))
            return


def _after(first: Asked, rest: Iterator[Asked | None]) -> Iterator[Asked | None]:
    yield first
    yield from rest
