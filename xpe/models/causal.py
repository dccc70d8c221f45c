"""What all models that torch runs have in common: settings, plan, and answers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.errors import EngineError, unknown
from xpe.models import loading
from xpe.models.batching import replies
from xpe.models.engine import Engine
from xpe.models.memory import free
from xpe.models.planning import grouped, planned
from xpe.models.probing import allowed
from xpe.models.scoring import Scorer
from xpe.models.tokenized import Tokenized
from xpe.registry import STRICT
from xpe.types import Asked, Generate, Reply, Request

_WRITTEN = 4
_GENERATION = ("max_tokens", "stop", "temperature", "top_p", "top_k")


@dataclass(frozen=True, config=STRICT, kw_only=True)
class CausalModel(Tokenized):
    """A causal language model of transformers, wherever its weights come from.

    Parameters
    ----------
    dtype
        `auto`: the checkpoint's own, but float32 on a CPU.
    device
        `auto`: CUDA where there is any.
    device_map
        Passed to transformers (`auto` spreads the layers over all devices).
    max_batch_tokens
        Padded tokens that are computed at once (generations hold four times as many); None:
        4,096 on a CPU, 16,384 on a GPU.
    threads
        Threads of torch on the CPU; None: as torch chooses.
    """

    backend: ClassVar[str] = "hf"

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: str = "auto"
    device_map: str | dict[str, Any] | None = None
    max_batch_tokens: int | None = Field(default=None, ge=1)
    threads: int | None = Field(default=None, ge=1)

    def check(self) -> None:
        """Find out, before any data is read, that the model cannot be loaded; cheap.

        Raises
        ------
        MissingExtraError
            A package is not installed.
        WeightsError
            The folder is missing, incomplete or damaged.
        ConfigError
            The device or the template is not there.
        """
        loading.transformers_for(f"model={self.backend}")
        self.source.check()
        loading.resolved_device(self.device)
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
            "torch": version("torch"),
            "transformers": version("transformers"),
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """What moves log likelihoods in their last digits, as it applied in this run."""
        found: dict[str, Any] = {"device": self._device, "max_batch_tokens": self._budget}
        if (engine := self.__dict__.get("_engine")) is not None:
            import torch

            found["threads"] = torch.get_num_threads()
            found["shared_prefixes"] = engine.scorer.shares
            # The last digits of a row depend on what is computed with it.
            found["batch_invariant"] = False
            found["out_of_memory_splits"] = engine.scorer.halving.splits
        return found

    @cached_property
    def _device(self) -> str:
        return loading.resolved_device(self.device)

    @cached_property
    def _dtype(self) -> str:
        return loading.resolved_dtype(self.dtype, self._config, self._device)

    @property
    def _budget(self) -> int:
        return self.max_batch_tokens or (4096 if self._device == "cpu" else 16384)

    # --- loaded or not ----------------------------------------------------------------------

    def load(self) -> None:
        """Load the weights now and not at the first batch."""
        _ = self._engine

    def close(self) -> None:
        """Free the weights; a later batch loads them again."""
        if self.__dict__.pop("_engine", None) is not None:
            free()

    @cached_property
    def _engine(self) -> Engine:
        import torch

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        model = self.source.model(self._dtype, self._device, self.device_map)
        plain = loading.is_plain(model.config, self.length)
        shares, plain_head = allowed(model, plain_attention=plain)
        scorer = Scorer(model, self._budget, shares, plain_head)
        return Engine.of(self.prompts, scorer, self.reasoning)

    # --- answers ----------------------------------------------------------------------------

    def reply(self, asked: Iterable[Asked | None], /) -> Iterator[tuple[Asked, Reply] | None]:
        """See `types.Model`."""
        return replies(self, asked)

    def plan(self, asked: Sequence[Asked], /) -> Sequence[tuple[Asked, ...]]:
        """Deal requests into batches of one kind and one set of generation settings.

        Raises
        ------
        ConfigError
            A request sets what this backend does not know, or needs a chat template.
        """
        batches: list[tuple[Asked, ...]] = []
        for members in grouped([_settings(one.request) for one in asked]):
            group = [asked[i] for i in members]
            requests = [one.request for one in group]
            needs = self.prompts.needs(requests)
            writes = isinstance(requests[0], Generate)
            room = self._budget * (_WRITTEN if writes else 1)
            dealt = planned(needs, room, least=room // 2 if writes else 0)
            batches += (tuple(group[i] for i in batch) for batch in dealt)
        return batches

    def run(self, batch: tuple[Asked, ...], /) -> tuple[Reply, ...]:
        """Answer one batch of the plan.

        Raises
        ------
        EngineError
            torch gave up for another reason than memory.
        """
        try:
            return tuple(self._engine.replies([one.request for one in batch]))
        except RuntimeError as error:
            raise EngineError(f"the model failed on a batch of {len(batch)}: {error}") from error


def _settings(request: Request) -> Hashable:
    """Return what requests of one batch have in common."""
    if not isinstance(request, Generate):
        return type(request).__name__
    if request.extra:
        raise unknown("generation setting", next(iter(request.extra)), _GENERATION)
    return tuple(getattr(request, name) for name in _GENERATION)
