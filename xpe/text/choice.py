"""Which option did an answer choose? Extraction of labels from what models write.

A label counts for what the words around it say: announced (答案是 B, "the answer is (B)"),
rejected (不选A, "A is wrong"), or confirmed (B正确). An answer that commits to nothing, or to
several options where one is asked for, has no choice: that is unparsed, not wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from xpe.text import phrases
from xpe.text.anchors import closing_brace
from xpe.text.labels import EDGES, MARKS, Labels, Mention
from xpe.text.normalise import clip, nfkc
from xpe.text.options import Options

Rule: TypeAlias = Literal["auto", "last", "first", "tag", "strict"]
"""`auto` reads what the answer commits to; `last` and `first` take a label wherever it stands;
`tag` the first one after the last 【答案】, `\\boxed{`, `####` or `<answer>`; `strict` wants
the whole answer to be the label.
"""

_TAG = re.compile(
    r"【[^【】\n]{0,8}答案[^【】\n]{0,4}】|【answer】|\[(?:参考|正确|最终)?答案\]|<answer>|####"
    r"|\\f?boxed ?\{",
    re.IGNORECASE,
)
_TAG_SIGNS = ("【", "<", "[", "#", "boxed")
_TAG_END = re.compile(r"<eoa>|</answer>|【|\n\s*\n\s*(?=\S)", re.IGNORECASE)
_BETWEEN_BOXES = re.compile(r"[\s$]*(?:[、,，;&和与及]|and|or|或)?[\s$]*")
_STRIPPED_BEFORE = EDGES + ":,，、=\\"
_STRIPPED_AFTER = " \t*_`$)]}】」』》〉>\"'”’项"
_DELIMITERS = ".。、:;)\n-–—(（,，"
_REACH = 40
_MOST_TAGS = 32
_NAMING = ("option ", "choice ", "选项", "选项 ")
_QUOTED = re.compile(r"[\"“「][^\"”」\n]{1,80}[\"”」]")
_SPACES_BEFORE = dict.fromkeys(map(ord, '\t\r*_`$()[]{}"“”,:，：、'), " ") | {
    # Words do not reach over the end of a sentence, but over that of a line.
    ord(mark): f"{mark} "
    for mark in "\n.;!?。；！？"
}
_SPACES_AFTER = dict.fromkeys(map(ord, '\t\n\r*_`$()[]{}"“”,.;:!?，。；：！？、'), " ")


@dataclass(frozen=True, eq=False)
class Question:
    """What may be answered: labels, or the texts of the options instead."""

    labels: Labels
    options: Options

    @cached_property
    def labels_in_options(self) -> bool:
        """Whether an option looks as if it mentioned a label: `vitamin A`."""
        return bool(self.labels.mentions("\n".join(map(nfkc, self.options.texts.values()))))


def chosen(text: str, question: Question, rule: Rule = "auto") -> tuple[str, ...]:
    """Return the labels that `text` chooses, in the order of the question; () if unparsed.

    For a question with one answer the result has at most one label.
    """
    text = clip(text)
    found = question.labels.whole(text) or _RULES[rule](nfkc(text), question)
    if len(found) > 1 and not question.labels.several:
        return ()
    return tuple(label for label in question.labels.ids if label in found)


def _auto(text: str, question: Question) -> tuple[str, ...]:
    scope = _tagged(text)
    if scope is not None:
        return question.labels.whole(scope) or _committed(scope, question)
    return _committed(text, question)


def _last(text: str, question: Question) -> tuple[str, ...]:
    found = question.labels.literal(text)
    return found[-1] if found else ()


def _first(text: str, question: Question) -> tuple[str, ...]:
    found = question.labels.literal(text)
    return found[0] if found else ()


def _tag(text: str, question: Question) -> tuple[str, ...]:
    scope = _tagged(text)
    return _first(scope, question) if scope is not None else ()


def _strict(_text: str, _question: Question) -> tuple[str, ...]:
    return ()


_RULES: Mapping[Rule, Callable[[str, Question], tuple[str, ...]]] = {
    "auto": _auto,
    "last": _last,
    "first": _first,
    "tag": _tag,
    "strict": _strict,
}


# --- what is tagged --------------------------------------------------------------------------


def _tagged(text: str) -> str | None:
    """Return what the last tag with anything behind it marks as the answer; None without one."""
    if not any(sign in text for sign in _TAG_SIGNS):
        return None
    tags = list(_TAG.finditer(text))[-_MOST_TAGS:]
    for index in range(len(tags) - 1, -1, -1):
        scope = _scope(text, tags[index])
        if scope.strip(MARKS):
            return _with_neighbours(text, tags[: index + 1], scope)
    return None


def _scope(text: str, tag: re.Match[str]) -> str:
    if tag[0].endswith("{"):
        return text[tag.end() : closing_brace(text, tag.end())]
    if tag[0] == "####":
        return text[tag.end() :].partition("\n")[0]
    rest = text[tag.end() :].lstrip()
    end = _TAG_END.search(rest)
    return rest[: end.start()] if end else rest


def _with_neighbours(text: str, tags: Sequence[re.Match[str]], scope: str) -> str:
    r"""Put boxes that stand side by side into one scope: \boxed{A}, \boxed{C}."""
    scopes = [scope]
    for left, right in zip(tags[-2::-1], tags[:0:-1], strict=False):
        between = text[closing_brace(text, left.end()) + 1 : right.start()]
        if not left[0].endswith("{") or not _BETWEEN_BOXES.fullmatch(between):
            break
        scopes.append(_scope(text, left))
    return ", ".join(reversed(scopes))


# --- what is committed to --------------------------------------------------------------------


def _committed(text: str, question: Question) -> tuple[str, ...]:
    if option := question.options.whole(text):
        return option
    mentions = _outside_options(question.labels.mentions(text), text, question)
    if mentions:
        return _Reading(text, mentions, question).commitment()
    if lower := _other_case(text, question.labels):
        return _Reading(text, lower, question).commitment()
    named = question.options.mentions(text)
    return _Reading(text, named, question).commitment() if named else ()


def _outside_options(mentions: list[Mention], text: str, question: Question) -> list[Mention]:
    """Drop what only looks like a label because an option contains it: the A of `vitamin A`."""
    if not mentions or not question.labels_in_options:
        return mentions
    spans = question.options.mentions(text)
    return [
        mention
        for mention in mentions
        if not any(s.start <= mention.start and mention.end <= s.end for s in spans)
    ]


def _other_case(text: str, labels: Labels) -> list[Mention]:
    """Return lower-case labels in brackets, announced or named: `(b)`, `answer: b`, `option b`."""
    return [
        mention
        for mention in labels.mentions(text, any_case=True)
        if _in_brackets(text, mention)
        or (
            (
                text[max(0, mention.start - 8) : mention.start].lower().endswith(_NAMING)
                or _before(text, mention.start).endswith(phrases.ANNOUNCING)
            )
            and not re.match(r" ?[^\W\d_]", text[mention.end : mention.end + 2])
        )
    ]


def _in_brackets(text: str, mention: Mention) -> bool:
    return text[mention.start - 1 : mention.start] in {"(", "["} and text[
        mention.end : mention.end + 1
    ] in {")", "]"}


def _before(text: str, start: int) -> str:
    """Return what stands before `start` in lower case, without marks and fillers at its end."""
    raw = text[max(0, start - _REACH) : start].rstrip(_STRIPPED_BEFORE).lower()
    before = f" {raw.translate(_SPACES_BEFORE)}"
    if before.endswith(phrases.NO_ANNOUNCEMENT):
        return ""
    for _ in range(3):
        if before.endswith(phrases.ANNOUNCING) or not before.endswith(phrases.FILLERS):
            break
        filler = next(word for word in phrases.FILLERS if before.endswith(word))
        before = f" {before.removesuffix(filler).strip(_STRIPPED_BEFORE)}"
    return "" if before.endswith(phrases.NO_ANNOUNCEMENT) else before


class _Reading:
    """The mentions of one text, and what the words around them make of them."""

    def __init__(self, text: str, mentions: Sequence[Mention], question: Question) -> None:
        self._text = text
        self._mentions = mentions
        self._several = question.labels.several
        self._first_label = question.labels.ids[0]
        self._befores: dict[int, str] = {}

    def commitment(self) -> tuple[str, ...]:
        """Return the labels of the strongest commitment; several where it names several."""
        for labels in (self._announced, self._opening, self._closing, self._confirmed):
            if found := labels():
                return found
        return self._concluded() or self._remaining()

    def _announced(self) -> tuple[str, ...]:
        """The last label that 答案是, "the answer is" or the like stands before."""
        for index in range(len(self._mentions) - 1, -1, -1):
            before = self._before(index)
            if (
                not before.endswith(phrases.ANNOUNCING)
                or before.endswith(phrases.REJECTING)
                or self._begins_list(index)
            ):
                continue
            labels = self._mentions[index].labels
            # 答案为B,C错误: the last label of the run belongs to what follows.
            labels = labels[:-1] if self._rejected(index) else labels
            if labels:
                return labels
        return ()

    def _opening(self) -> tuple[str, ...]:
        """The label that the answer begins with: `B. Eliminated: A, C, D`."""
        first = self._mentions[0]
        if self._text[: first.start].strip(EDGES) or self._rejected(0):
            return ()
        rest = self._text[first.end :].lstrip(_STRIPPED_AFTER)
        if not rest.startswith((*_DELIMITERS, *phrases.REASONING)):
            return ()
        enumerates = self._is_list and first.labels[0] == self._first_label
        return () if enumerates else first.labels

    def _closing(self) -> tuple[str, ...]:
        """The label that is the last line or the last sentence, or that heads the last line."""
        last = self._mentions[-1]
        before = self._text[: last.start].rstrip(" \t*_`$([{【\"'\\")
        within = before and before[-1] not in "\n.。!！?？;；"
        if within or self._rejected(len(self._mentions) - 1):
            return ()
        rest = self._text[last.end :]
        if not rest.strip(MARKS):
            neighbour = self._mentions[-2].end if len(self._mentions) > 1 else 0
            return last.labels if before[neighbour:].strip(MARKS) or not before else ()
        repeats = any(m.labels == last.labels for m in self._listed[:-1])
        in_list = self._listed[-1:] == [last]
        return last.labels if repeats and in_list and "\n" not in rest.strip() else ()

    def _confirmed(self) -> tuple[str, ...]:
        """The labels that 正确 or "is correct" stands behind; of one answer the only one."""
        return self._united(
            index
            for index, mention in enumerate(self._mentions)
            if self._after(mention).startswith(phrases.CONFIRMED) and not self._rejected(index)
        )

    def _concluded(self) -> tuple[str, ...]:
        """The labels that 所以, "therefore" or the like stands before; of one the only one."""
        return self._united(
            index
            for index in range(len(self._mentions))
            if self._before(index).endswith(phrases.CONCLUDING)
            and not self._rejected(index)
            and not self._begins_list(index)
        )

    def _remaining(self) -> tuple[str, ...]:
        """All labels that are not rejected: one commits, several are ambiguous."""
        kept = [m for index, m in enumerate(self._mentions) if not self._rejected(index)]
        if not self._several:
            # Letters without separators (CD, AC) that nothing announces are words.
            kept = [m for m in kept if len(m.labels) == 1 or m.end - m.start > len(m.labels)]
        return tuple(dict.fromkeys(label for mention in kept for label in mention.labels))

    def _united(self, indices: Iterable[int]) -> tuple[str, ...]:
        labels = [label for index in indices for label in self._mentions[index].labels]
        distinct = tuple(dict.fromkeys(labels))
        return distinct if self._several or len(distinct) == 1 else ()

    # --- what the words around a mention say ---

    def _before(self, index: int) -> str:
        if index not in self._befores:
            self._befores[index] = _before(self._text, self._mentions[index].start)
        return self._befores[index]

    def _after(self, mention: Mention) -> str:
        """Return what follows a mention in lower case, without marks at its beginning."""
        strip = _STRIPPED_AFTER + ":(-–—（" + (".、)" if self._is_list else "")
        raw = self._text[mention.end : mention.end + 2 * _REACH].lstrip(" *").removeprefix("选项")
        if quoted := _QUOTED.match(raw):
            raw = raw[quoted.end() :]
        return f"{raw.lstrip(strip).lower().translate(_SPACES_AFTER)} "

    def _rejected(self, index: int) -> bool:
        return self._before(index).endswith(phrases.REJECTING) or self._after(
            self._mentions[index]
        ).startswith(phrases.REJECTED)

    @cached_property
    def _listed(self) -> list[Mention]:
        """Single labels at the beginning of a line or sentence that a delimiter follows."""
        return [m for m in self._mentions if len(m.labels) == 1 and self._is_delimited(m)]

    def _is_delimited(self, mention: Mention) -> bool:
        after = self._text[mention.end : mention.end + 4]
        if after.lstrip("*_ )】]")[:1] in {".", "、", ":", "："}:
            return True
        line = self._text[max(0, mention.start - _REACH) : mention.start].rstrip(" *_(")
        return after.startswith(")") and (not line or line.endswith("\n"))

    @cached_property
    def _is_list(self) -> bool:
        return len(self._mentions) > 1 and len({mention.labels for mention in self._listed}) > 1

    def _begins_list(self, index: int) -> bool:
        """Whether an announcement is followed by a list of options, on lines of their own."""
        mention = self._mentions[index]
        if mention not in self._listed:
            return False
        before = self._text[max(0, mention.start - _REACH) : mention.start]
        gap = before[len(before.rstrip(_STRIPPED_BEFORE)) :]
        later = any(other.start > mention.start for other in self._listed)
        return "\n" in gap and later
