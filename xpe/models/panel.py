"""Several models in the place of one judge."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from xpe.registry import STRICT


@dataclass(frozen=True, config=STRICT)
class Panel:
    """Names who sits on the panel; the run builds them and asks each as `judge`, `judge.2` ….

    Parameters
    ----------
    judges
        The settings of each, with its `kind`.
    """

    judges: Annotated[tuple[dict[str, Any], ...], Field(min_length=2)]
