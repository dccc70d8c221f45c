"""Turns of a prompt, and how they become text or chat messages.

The rules for delimiters are those of lm-evaluation-harness, so that its task definitions give
the same prompts here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xpe.types import Message


class Turn(NamedTuple):
    """Who speaks, what, and the delimiter that follows in plain text."""

    role: str
    content: str
    delimiter: str = ""


def needs_delimiter(left: str, right: str) -> bool:
    """Whether two texts would touch without white space between them."""
    return bool(left and right) and not (left[-1].isspace() or right[0].isspace())


def join(left: str | None, right: str | None, delimiter: str) -> str:
    """Join two texts by `delimiter` where both are there and would touch."""
    left, right = left or "", right or ""
    return left + (delimiter if needs_delimiter(left, right) else "") + right


def question_turns(
    question: str,
    answer: Any = None,
    choices: Sequence[str] | None = None,
    *,
    gen_prefix: str | None = None,
    target_delimiter: str = " ",
    fewshot_delimiter: str = "\n\n",
) -> tuple[Turn, ...]:
    """Return the turns of one question, with its answer (an example) or without (the last).

    `answer` may be an index into `choices` or a list, whose first item is taken; "" is none.
    """
    text = answer_text(answer, choices)
    if gen_prefix:
        delimiter = target_delimiter if needs_delimiter(question, gen_prefix) else ""
    else:
        delimiter = target_delimiter if text else ""
    asked = Turn("user", question, delimiter)
    if text:
        # The harness joins prefix and answer by a space, whatever the target delimiter is.
        return asked, Turn("assistant", join(gen_prefix, text, " "), fewshot_delimiter)
    if gen_prefix:
        return asked, Turn("assistant", gen_prefix)
    return (asked,)


def answer_text(answer: Any, choices: Sequence[str] | None = None) -> str:
    """Return the text of an answer given as text, number, index of a choice or list."""
    if choices and isinstance(answer, int):
        return str(choices[answer])
    if isinstance(answer, (list, tuple)):
        return answer_text(answer[0], choices) if answer else ""
    return "" if answer is None else str(answer)


def plain(turns: Sequence[Turn]) -> str:
    """Return the turns as one text."""
    return "".join(turn.content + turn.delimiter for turn in turns)


def messages(turns: Sequence[Turn], *, multiturn: bool = True) -> tuple[Message, ...]:
    """Return the turns as chat messages.

    Without `multiturn`, all but the system message and a trailing assistant message (the
    beginning of the answer) become one user message.
    """
    if multiturn:
        return tuple({"role": turn.role, "content": turn.content} for turn in turns)
    system = [turn for turn in turns if turn.role == "system"]
    rest = [turn for turn in turns if turn.role != "system"]
    begun = [rest.pop()] if rest and rest[-1].role == "assistant" else []
    text = plain(rest[:-1]) + (rest[-1].content if rest else "")
    return messages([*system, *([Turn("user", text)] if rest else []), *begun])
