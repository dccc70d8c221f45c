"""A few tokens that show which short cuts a loaded model allows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from xpe.models.planning import BLOCK
from xpe.models.scoring import Score, Scorer
from xpe.models.windows import Row

log = logging.getLogger(__name__)

_TOLERANCE = {"float32": 1e-3, "float64": 1e-3}
_LOW_PRECISION = 0.25
_BUDGET = 512


class Allowed(NamedTuple):
    """Whether rows may share what they begin with, and whether logits are just head(states)."""

    shares: bool
    plain_head: bool


def allowed(model: Any, *, plain_attention: bool) -> Allowed:
    """Score a few rows the fast way and the slow way; only what agrees is allowed."""
    tiny = [[Row((11, 20, 21), 1)], [Row((12, 22), 1)]]
    plain_head = _agree(tiny, model, shares=False, plain_head=True)
    if not plain_attention:
        log.info("not every layer attends to everything: nothing is shared between rows")
        return Allowed(shares=False, plain_head=plain_head)
    lead = tuple(range(20, 20 + BLOCK))
    forked = [
        [Row((*lead, 11 + g, *choice), len(lead) + 1) for choice in ((20, 21, 22), (31, 32))]
        for g in range(2)
    ]
    shares = _agree(forked, model, shares=True, plain_head=plain_head)
    if not shares:
        log.warning("shared prefixes change this model's scores: each row is computed whole")
    return Allowed(shares, plain_head)


def _agree(groups: Sequence[Sequence[Row]], model: Any, *, shares: bool, plain_head: bool) -> bool:
    fast = Scorer(model, _BUDGET, shares=shares, plain_head=plain_head)
    slow = Scorer(model, _BUDGET, shares=False, plain_head=shares and plain_head)
    try:
        pairs = list(zip(_scores(fast, groups), _scores(slow, groups), strict=True))
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
        log.debug("a short cut is not available: %r", error)
        return False
    dtype = str(model.dtype).removeprefix("torch.")
    most = _TOLERANCE.get(dtype, _LOW_PRECISION)
    return all(abs(a.log_likelihood - b.log_likelihood) <= most for a, b in pairs)


def _scores(scorer: Scorer, groups: Sequence[Sequence[Row]]) -> list[Score]:
    scores = [score for group in scorer.scores(groups) for score in group]
    return [score for score in scores if isinstance(score, Score)]
