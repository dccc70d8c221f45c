"""Log likelihoods by torch: what rows share runs once, the softmax only where it is needed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from xpe.models.heads import Tap, cached, header_cache
from xpe.models.memory import Halving
from xpe.models.planning import dealt, header_length
from xpe.models.tries import Trie, packed
from xpe.models.windows import Row
from xpe.types import Failure

log = logging.getLogger(__name__)

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

_SOFTMAX_ROWS = 256
_LONG = 1024
"""Tokens from which on a lone context is cached and not packed with its choices."""


class Score(NamedTuple):
    """Log likelihood of a row's scored tokens in nats, and whether each was the likeliest."""

    log_likelihood: float
    greedy: bool


NOTHING = Score(0.0, greedy=True)


@dataclass
class Scorer:
    """Scores rows with a loaded causal model.

    Parameters
    ----------
    model
        A transformers model for causal language modelling, in eval mode.
    budget
        Padded tokens of one forward pass.
    shares
        Whether rows may share a cached header and be packed into tries. Only for models with
        plain causal attention; `agrees` tells.
    """

    model: Any
    budget: int
    shares: bool = True
    plain_head: bool = True
    halving: Halving = field(default_factory=Halving)
    _header: tuple[tuple[int, ...], Any] | None = field(default=None, init=False)

    def scores(self, groups: Sequence[Sequence[Row]]) -> list[list[Score | Failure]]:
        """Score groups of rows; the rows of a group begin alike.

        A row that does not fit into memory even alone gives a Failure. The result depends on
        all groups in its last digits, and on nothing else.
        """
        lead = self._lead(groups)
        header = len(lead)
        items = [(g, rows) for g, group in enumerate(groups) for rows in self._items(group)]
        tries = [packed([groups[g][r] for r in rows], header) for g, rows in items]
        found: list[list[Score | Failure]] = [[NOTHING] * len(group) for group in groups]
        order = sorted(range(len(items)), key=lambda i: -len(tries[i].tokens))
        for batch in dealt([len(tries[i].tokens) for i in order], self.budget, order):
            scores_of = self.halving(partial(self._forward, lead), [tries[i] for i in batch])
            for i, scores in zip(batch, scores_of, strict=True):
                g, rows = items[i]
                for r, score in zip(rows, self._each(scores, len(rows)), strict=True):
                    found[g][r] = score
        return found

    def release(self) -> None:
        """Forget the cached header."""
        self._header = None

    def _lead(self, groups: Sequence[Sequence[Row]]) -> tuple[int, ...]:
        """Return the tokens that all rows begin with, where it pays to keep their cache.

        The choices of a lone context are packed behind it, until the mask of the whole would
        need more memory than the cache.
        """
        scored = [row for group in groups for row in group if row.start < len(row.tokens)]
        sequences = [row.seen for row in scored]
        most = min((row.start for row in scored), default=1) - 1
        packs = len(groups) == 1 and (most < _LONG or len(set(sequences)) == 1)
        if packs or not self.shares:
            return ()
        return sequences[0][: header_length(sequences, most)] if sequences else ()

    def _items(self, group: Sequence[Row]) -> list[list[int]]:
        """Deal the rows of a group into tries: siblings together while they are short.

        Rows with nothing to score are in none.
        """
        items: list[list[int]] = []
        room = 0
        for r, row in enumerate(group):
            tail = len(row.tokens) - row.start
            if not tail:
                continue
            alike = (
                self.shares
                and items
                and row.seen[: row.start] == group[items[-1][0]].seen[: row.start]
            )
            if alike and tail <= room:
                items[-1].append(r)
            else:
                items.append([r])
                room = max(row.start, _SOFTMAX_ROWS)
            room -= tail
        return items

    @staticmethod
    def _each(scores: list[Score] | Failure, n: int) -> Sequence[Score | Failure]:
        return [scores] * n if isinstance(scores, Failure) else scores

    def _forward(self, lead: tuple[int, ...], tries: Sequence[Trie]) -> list[list[Score]]:
        """Run one padded batch and read the scores of every row in it."""
        import torch

        reads = [
            (b, node, target)
            for b, trie in enumerate(tries)
            for nodes, targets in zip(trie.reads, trie.targets, strict=True)
            for node, target in zip(nodes, targets, strict=True)
        ]
        places, which = np.unique([read[:2] for read in reads], axis=0, return_inverse=True)
        with torch.inference_mode():
            states = self._states(lead, tries, places)
            found = self._softmax(states, which.reshape(-1), [target for *_, target in reads])
        return _by_row(tries, *found)

    def _states(self, lead: tuple[int, ...], tries: Sequence[Trie], places: Ints) -> Any:
        """Return the head's input (or, where it is not plain, its output) at (batch, node)."""
        import torch

        width = max(len(trie.tokens) for trie in tries)
        device = self.model.device
        ids = np.zeros((len(tries), width), dtype=np.int64)
        depths = np.tile(np.arange(width, dtype=np.int64), (len(tries), 1))
        for b, trie in enumerate(tries):
            ids[b, : len(trie.tokens)] = trie.tokens
            depths[b, : len(trie.tokens)] = trie.depths
        cache = self._cache(lead)
        picked = torch.from_numpy(places.T.copy()).to(device)
        with Tap(self.model, picked, plain=self.plain_head) as tap:
            out = self.model(
                input_ids=torch.from_numpy(ids).to(device),
                position_ids=torch.from_numpy(depths + len(lead)).to(device),
                attention_mask=self._mask(len(lead), tries, width),
                use_cache=bool(lead),
                **cached(self.model, cache),
            )
        return tap.states if self.plain_head else out.logits[0]

    def _mask(self, header: int, tries: Sequence[Trie], width: int) -> Any:
        """Return an additive mask, or None where plain causal attention is right."""
        import torch

        if not any(trie.branches for trie in tries):
            return None
        model = self.model
        shape = (len(tries), 1, width, header + width)
        mask = torch.zeros(shape, dtype=model.dtype, device=model.device)
        for b, trie in enumerate(tries):
            seen = trie.visible(width)
            # In place: for a long context each copy of this square would show in the peak.
            hidden = torch.from_numpy(np.logical_not(seen, out=seen)).to(model.device)
            mask[b, 0, :, header:].masked_fill_(hidden, torch.finfo(model.dtype).min)
        return mask

    def _cache(self, lead: tuple[int, ...]) -> Any:
        """Return the keys and values of the header, computed when it is not the last one."""
        if self._header is not None and self._header[0] != lead:
            # Before anything else is computed: it may hold much memory.
            self._header = None
        if lead and self._header is None:
            self._header = (lead, header_cache(self.model, lead))
        return self._header and self._header[1]

    def _softmax(self, states: Any, which: Ints, targets: Sequence[int]) -> tuple[Floats, Bools]:
        """Return log probability and greediness of each target at row `which` of the states."""
        import torch

        values = np.zeros(len(targets))
        greedy = np.zeros(len(targets), dtype=np.bool_)
        wanted = np.asarray(targets, dtype=np.int64)
        head = self.model.get_output_embeddings()
        for low in range(0, len(states), _SOFTMAX_ROWS):
            part = states[low : low + _SOFTMAX_ROWS]
            logits = (head(part) if self.plain_head else part).float()
            here = np.flatnonzero((which >= low) & (which < low + _SOFTMAX_ROWS))
            rows = torch.from_numpy(which[here] - low).to(logits.device)
            asked = torch.from_numpy(wanted[here]).to(logits.device)
            total = torch.logsumexp(logits, dim=-1)
            values[here] = (logits[rows, asked] - total[rows]).cpu().numpy()
            greedy[here] = (logits.argmax(dim=-1)[rows] == asked).cpu().numpy()
        return values, greedy


def _by_row(tries: Sequence[Trie], values: Floats, greedy: Bools) -> list[list[Score]]:
    found: list[list[Score]] = []
    at = 0
    for trie in tries:
        found.append([])
        for targets in trie.targets:
            part = slice(at, at + len(targets))
            found[-1].append(Score(float(values[part].sum()), bool(greedy[part].all())))
            at += len(targets)
    return found
