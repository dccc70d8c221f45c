r"""Where an answer says that it is one: \boxed{}, ####, 答案是, "the answer is", "A: 18"."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_BOX = re.compile(r"\\(?:boxed|fbox) ?\{")
_STATEMENT = re.compile(
    r"(?P<answer>【[^【】\n]{0,8}答案[^【】\n]{0,4}】[ :：]*"
    r"|(?:答案|最终结果|最后结果)(?:应该|应当|应|就|即|便)?(?:是|为|等于|[:：])[ 是为:：]*"
    r"|\banswer(?: to [a-z ]{1,40})?(?: is| would be| should be| must be| equals|:| =)[ :：=]*)"
    r"|(?P<line>^[ >*_#]*(?:A|答|答案|Ans|Answer|Solution|Result)[*_]* ?[:：][*_]*)",
    re.IGNORECASE | re.MULTILINE,
)
_REACH = 2000


class Anchor(NamedTuple):
    """What announces an answer.

    `box` and `hashes` mark the answer itself; `answer` is followed by it; a `line` that begins
    with `A:` or 答： may hold a whole solution.
    """

    kind: Literal["box", "hashes", "answer", "line"]
    start: int
    end: int


def last_anchor(text: str) -> Anchor | None:
    """Return the last box, else the last ####, else the last announcement with text behind it.

    `end` is where the marked text ends: of a box its brace, else that of the line or the text.
    """
    boxes = list(_BOX.finditer(text)) if "boxed" in text or "fbox" in text else []
    for box in reversed(boxes):
        end = closing_brace(text, box.end())
        if text[box.end() : end].strip():
            return Anchor("box", box.end(), end)
    hashes = text.rfind("####")
    if hashes >= 0 and text[hashes + 4 :].strip():
        line_end = text.find("\n", hashes)
        return Anchor("hashes", hashes + 4, len(text) if line_end < 0 else line_end)
    found = [match for match in _STATEMENT.finditer(text) if text[match.end() :].strip()]
    if not found:
        return None
    return Anchor("answer" if found[-1]["answer"] else "line", found[-1].end(), len(text))


def closing_brace(text: str, start: int) -> int:
    """Return where the brace opened before `start` is closed, else the end of its line."""
    depth = 1
    for match in re.finditer(r"[{}]", text[start : start + _REACH]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return start + match.start()
    line_end = text.find("\n", start)
    return len(text) if line_end < 0 else line_end
