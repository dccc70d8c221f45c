"""Plans are pure functions that cover each request once and stay within the budget."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from xpe.models.planning import (
    BLOCK,
    Need,
    as_text,
    dealt,
    grouped,
    header_length,
    planned,
    shared_length,
)
from xpe.models.tries import packed
from xpe.models.windows import Row

_TOKENS = st.lists(st.integers(0, 3), max_size=12).map(as_text)
_NEEDS = st.lists(
    st.builds(
        lambda header, tail, more: Need(header + tail, more),
        st.sampled_from(["", "A" * 70, "A" * 64 + "B" * 20]),
        _TOKENS,
        st.integers(0, 9),
    ),
    max_size=30,
)


@given(_NEEDS, st.integers(1, 400))
def test_each_request_once(needs: list[Need], budget: int) -> None:
    """Every index is in one batch, and the same requests give the same plan."""
    batches = planned(needs, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(needs)))
    assert batches == planned(list(needs), budget)
    assert all(batches)


@given(_NEEDS, st.integers(1, 400))
def test_within_the_budget(needs: list[Need], budget: int) -> None:
    """A batch of several, padded to its longest beyond the header, fits into the budget."""
    for batch in planned(needs, budget):
        shared = shared_length([needs[i].tokens for i in batch])
        padded = max(needs[i].cost - shared for i in batch) * len(batch) + shared
        assert len(batch) == 1 or padded <= budget


def test_the_order_of_asking_is_no_matter() -> None:
    """Shuffled requests are dealt into the same batches of contents."""
    needs = [Need("H" * 80 + as_text(range(10, 10 + n))) for n in range(40)]
    shuffled = random.Random(1).sample(needs, len(needs))
    assert [[needs[i] for i in b] for b in planned(needs, 300)] == [
        [shuffled[i] for i in b] for b in planned(shuffled, 300)
    ]


def test_longest_first_and_alike_together() -> None:
    """Long requests come first, but those that share their own context stay neighbours."""
    passage = as_text(range(1000, 1080))
    needs = [Need("H" * 64 + part) for part in ("a" * 200, passage + "x", "b" * 90, passage + "yy")]
    assert planned(needs, 10_000) == [[0, 2, 1, 3]] or planned(needs, 10_000) == [[0, 2, 3, 1]]


def test_small_families_join_the_others() -> None:
    """Two requests with one beginning are no batch of their own where that is too little."""
    needs = [Need(letter * 70) for letter in "AABCD"]
    assert planned(needs, 1000) == [[0, 1], [2, 3, 4]]
    assert planned(needs, 1000, least=141) == [[0, 1, 2, 3, 4]]


def test_lengths() -> None:
    """Shared lengths by hand; a header is a multiple of the block and leaves a token over."""
    assert shared_length([]) == 0
    assert shared_length(["abc"]) == 3
    assert shared_length(["abcd", "abxd", "abc"]) == 2
    assert shared_length([(1, 2, 3), (1, 2)]) == 2
    assert header_length(["a" * 100], 1000) == 0
    assert header_length(["a" * 100, "a" * 90], 1000) == 2 * BLOCK
    assert header_length(["a" * 100, "a" * 90], 40) == BLOCK


def test_dealt_and_grouped() -> None:
    """Padded sizes by hand: 5+5 fit into 10, a third would not; an outsize goes alone."""
    assert dealt([5, 4, 3, 20, 1], 10) == [[0, 1], [2], [3], [4]]
    assert dealt([2, 2, 2], 10, header=6) == [[0, 1], [2]]
    assert grouped(["a", "b", "a"]) == [[0, 2], [1]]


def test_a_trie_by_hand() -> None:
    """Two choices of one context: what they share is there once, each sees its own past."""
    trie = packed([Row((1, 2, 3, 4, 5), 2), Row((1, 2, 3, 6), 2), Row((1, 2, 9), 2)])
    assert trie.tokens == (1, 2, 3, 4)
    assert trie.parents == (-1, 0, 1, 2)
    assert trie.reads == ((1, 2, 3), (1, 2), (1,))
    assert trie.targets == ((3, 4, 5), (3, 6), (9,))
    assert not trie.branches
    forked = packed([Row((1, 2, 3, 4), 1), Row((1, 5, 6), 1)])
    assert forked.tokens == (1, 2, 3, 5)
    assert forked.depths == (0, 1, 2, 1)
    assert forked.branches
    assert forked.visible(5).astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 0, 0, 0, 1],
    ]


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=8), min_size=1, max_size=6))
def test_a_trie_keeps_every_row(rows: list[list[int]]) -> None:
    """Walking up from the node of a row's last read spells what the row reads."""
    trie = packed([Row(tuple(tokens), 1) for tokens in rows])
    for tokens, reads in zip(rows, trie.reads, strict=True):
        path, node = [], reads[-1]
        while node >= 0:
            path.append(trie.tokens[node])
            node = trie.parents[node]
        assert path[::-1] == tokens[:-1]
        assert [trie.depths[n] for n in reads] == list(range(len(tokens) - 1))
