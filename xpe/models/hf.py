"""Models of the Hub or of a local folder, run by torch and transformers."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from xpe.models.causal import CausalModel
from xpe.models.loading import Source
from xpe.registry import STRICT


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Hf(CausalModel):
    """A causal language model from a local folder or the Hub.

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
    adapter
        Folder or name of a PEFT adapter, merged into the weights.
    """

    path: str
    tokenizer: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    adapter: str | None = None

    @property
    def source(self) -> Source:
        """Where weights and tokenizer are."""
        return Source(
            self.path, self.tokenizer, self.revision, self.trust_remote_code, self.adapter
        )
