"""Which tokens a model sees and which it is scored on. Pure arithmetic on token ids.

The rules are those of lm-evaluation-harness, so that numbers can be compared; L is the longest
input of the model in tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

Tokens: TypeAlias = Sequence[int]
Encode: TypeAlias = Callable[[str], list[int]]


class Row(NamedTuple):
    """A sequence of which the tokens from `start` on are scored, each given all before it."""

    tokens: tuple[int, ...]
    start: int
    truncated: bool = False

    @property
    def seen(self) -> tuple[int, ...]:
        """What the model reads: all but the last token, which nothing follows."""
        return self.tokens[:-1]


def rolling_windows(
    tokens: Tokens, prefix: int, length: int, context: int = 1
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield (input, predicted) windows: every token is predicted once.

    Parameters
    ----------
    tokens
        The text, without a prefix token.
    prefix
        The token that stands before the first one.
    length
        L, the longest input.
    context
        Tokens of context at least, after the first window; 1 ≤ context ≤ length.
    """
    text = list(tokens)
    if not text:
        return
    first = min(length, len(text))
    yield [prefix, *text[: first - 1]], text[:first]
    done, stride = first, length - context + 1
    while done < len(text):
        end = min(done + stride, len(text))
        yield text[end - length - 1 : end - 1], text[done:end]
        done = end


def disjoint(window: tuple[Tokens, Tokens]) -> tuple[list[int], list[int]]:
    """Turn (input, predicted) into (context, predicted): no token is in both."""
    seen, predicted = window
    return list(seen[: len(seen) - (len(predicted) - 1)]), list(predicted)


def rolling_rows(tokens: Tokens, prefix: int, length: int) -> list[Row]:
    """Return the disjoint windows of a text as rows to score."""
    pairs = [disjoint(window) for window in rolling_windows(tokens, prefix, length)]
    return [Row((*context, *predicted), len(context)) for context, predicted in pairs]


def at_border(context: str, continuation: str) -> tuple[str, str]:
    """Move white space from the end of the context to the start of the continuation."""
    kept = context.rstrip()
    return kept, context[len(kept) :] + continuation


def split_pair(context: Tokens, whole: Tokens) -> tuple[list[int], list[int]]:
    """Cut the tokens of context + continuation where those of the context alone end.

    Where a merge across the border leaves nothing to the continuation, the cut goes back to
    the last token that both agree on.
    """
    cut = len(context)
    if len(whole) > cut or list(whole) == list(context):
        return list(context), list(whole[cut:])
    cut = next((i for i, (a, b) in enumerate(zip(context, whole, strict=False)) if a != b), cut)
    cut = min(cut, len(whole) - 1) if whole else 0
    return list(whole[:cut]), list(whole[cut:])


def encode_pair(
    context: str, continuation: str, encode: Encode, encode_bare: Encode, prefix: int
) -> tuple[list[int], list[int]]:
    """Return the tokens of context and continuation, split by the border rule.

    Parameters
    ----------
    encode, encode_bare
        Text to tokens with and without the tokenizer's special tokens.
    prefix
        The token that stands for an empty context.
    """
    context, continuation = at_border(context, continuation)
    if not context:
        return from_nothing(encode_bare(continuation), prefix)
    return split_pair(encode(context), encode(context + continuation))


def from_nothing(continuation: Tokens, prefix: int) -> tuple[list[int], list[int]]:
    """Give a continuation without context the prefix token, unless it begins with it."""
    if continuation and continuation[0] == prefix:
        return [prefix], list(continuation[1:])
    return [prefix], list(continuation)


def fitted(context: Tokens, continuation: Tokens, length: int) -> Row | None:
    """Cut the context from the left so that the input has at most `length` tokens.

    The input lacks the last token, so length + 1 tokens fit. None when not even the continuation
    and one token before it do.
    """
    if len(continuation) > length:
        return None
    whole = (*context, *continuation)
    kept = whole[-(length + 1) :]
    return Row(kept, len(kept) - len(continuation), len(kept) < len(whole))
