"""Labels of options (A–J, 1–5, 甲乙丙丁, I–V, words) and where a text mentions them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from xpe.text.normalise import nfkc

EDGES = " \t\r\n*_`$~#()[]{}<>【】「」『』《》〈〉\"'“”‘’"
"""Brackets, quotation marks and emphasis around a label."""
MARKS = EDGES + ".。,，、:：;；!！?？-–—=…\\"
"""The same, and punctuation."""

_ARTICLES = frozenset({"A", "I"})
_AFTER_ARTICLE = re.compile(
    r" (?!(?:and|or|is|was|are|because|since|as|but|nor|not|looks|seems|fits|would|must|has|"
    r"best|correct|right|wrong|incorrect|false|true|can|over|rather|instead)\b)[a-z]"
)
_JOIN = re.compile(
    r"""[ *_`$)\]}】」』项]{0,6}
    (?:[、,/;&+和与及或跟]|,?[ ]?\b(?:and|or)\b|\\text\{[ ]?(?:and|or)[ ]?\})
    [ *_`$(\[{【「『\\]{0,6}(?:选项|options?\b|choices?\b|text\{|boxed\{)?[ *_`$(\[{【]{0,4}""",
    re.VERBOSE,
)
_LONGEST_JOIN = 24
_WORDS_AFTER_HAN = "项是正错对和与或及选为不"
_WORDS_BEFORE_HAN = "选是为和与或及择案项故"


class Mention(NamedTuple):
    """One or more labels named together (`A、B and D`), and the span that names them."""

    labels: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Labels:
    """The labels of one question in order, as the reference spells them.

    `several` says that more than one of them may be right, so that digits written together
    (`135`) are labels and not a number.
    """

    ids: tuple[str, ...]
    several: bool = False

    @cached_property
    def by_key(self) -> Mapping[str, str]:
        """Folded spelling to label; the first of two that fold alike wins."""
        return {fold(label): label for label in reversed(self.ids)}

    def whole(self, text: str) -> tuple[str, ...]:
        """Return the labels if `text` is nothing but labels with marks around them, else ()."""
        bare = text.strip(MARKS)
        if label := self.by_key.get(bare):
            return (label,)
        if len(bare) > self._longest:
            return ()
        bare = nfkc(bare).strip(MARKS)
        if label := self.by_key.get(bare.upper()):
            return (label,)
        first = next(iter(self.mentions(bare.upper() if self._joined else bare)), None)
        if first and (first.start, first.end) == (0, len(bare)):
            return first.labels
        parts = [self.by_key.get(part.strip(MARKS).upper()) for part in bare.split()]
        return tuple(dict.fromkeys(part for part in parts if part)) if all(parts) else ()

    def literal(self, text: str) -> list[tuple[str, ...]]:
        """Return every label in `text` wherever it stands, inside of words too.

        Of a question with several answers, labels with nothing but a join between them are one.
        """
        found: list[tuple[str, ...]] = []
        end = 0
        for match in self._literal.finditer(text):
            label = self.by_key[fold(match[0])]
            gap = text[end : match.start()]
            if self.several and found and (not gap or _joined(gap)):
                found[-1] = (*found[-1], label)
            else:
                found.append((label,))
            end = match.end()
        return found

    def mentions(self, text: str, *, any_case: bool = False) -> list[Mention]:
        """Return where `text`, in the form NFKC, names labels, those joined by 和 or `and` as one.

        The articles `A` and `I` before an English word are not labels. Labels in the other case
        count only when asked for.
        """
        found: list[Mention] = []
        for mention in self._atoms(text, any_case=any_case):
            if found and _joined(text[found[-1].end : mention.start]):
                last = found.pop()
                labels = tuple(dict.fromkeys(last.labels + mention.labels))
                found.append(Mention(labels, last.start, mention.end))
            else:
                found.append(mention)
        return found

    def _atoms(self, text: str, *, any_case: bool) -> Iterator[Mention]:
        pattern = self._pattern_any_case if any_case else self._pattern
        for match in pattern.finditer(text):
            spelling, start, end = match[0], match.start(), match.end()
            if spelling in _ARTICLES and _AFTER_ARTICLE.match(text, end):
                continue
            whole = self.by_key.get(fold(spelling))
            labels = (whole,) if whole else tuple(self.by_key[fold(char)] for char in spelling)
            if len(set(labels)) == len(labels):
                yield Mention(labels, start, end)

    @cached_property
    def _longest(self) -> int:
        return sum(len(label) + _LONGEST_JOIN for label in self.ids)

    @cached_property
    def _joined(self) -> bool:
        """Whether labels may be written without anything between them."""
        letters = all(len(key) == 1 and not key.isdigit() for key in self.by_key)
        return letters or (self.several and all(len(key) == 1 for key in self.by_key))

    @cached_property
    def _literal(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, sorted(self.by_key, key=len, reverse=True))))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        upper = all(label == fold(label) for label in self.ids)
        return re.compile(self._source, 0 if upper else re.IGNORECASE)

    @cached_property
    def _pattern_any_case(self) -> re.Pattern[str]:
        return re.compile(self._source, re.IGNORECASE)

    @cached_property
    def _source(self) -> str:
        keys = sorted(self.by_key, key=len, reverse=True)
        if not all(len(key) == 1 for key in keys):
            words = "|".join(map(re.escape, keys))
            return rf"(?<![^\W_])(?:{words})(?![^\W_]|['’]\w)"
        # The pattern begins with a set of characters and looks back afterwards: the search for
        # the next place is then done in C.
        some = f"[{''.join(map(re.escape, keys))}]"
        more = f"{some}{{0,{len(keys) - 1}}}" if self._joined else ""
        before = "".join(f"(?<!{guard}{some})" for guard in _guards_before(keys))
        return f"{some}{before}{more}(?!{_guard_after(keys)})"


def fold(label: str) -> str:
    """Return the spelling by which labels are compared: NFKC, bare, upper case."""
    return nfkc(label).strip(MARKS).upper()


@lru_cache(maxsize=1024)
def labels_of(ids: tuple[str, ...], *, several: bool) -> Labels:
    """Return the labels `ids`; their patterns are compiled once."""
    return Labels(ids, several)


@lru_cache(maxsize=256)
def alphabet(gold: str) -> tuple[str, ...]:
    """Return the usual labels among which `gold` is one, for a question that lists no options.

    ABCDEFGHIJ, 123456789, 甲乙丙丁戊己庚辛壬癸 or I to X; else `gold` alone.
    """
    romans = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
    for usual in (tuple("ABCDEFGHIJ"), romans, tuple("123456789"), tuple("甲乙丙丁戊己庚辛壬癸")):
        if fold(gold) in usual:
            return usual
    return (gold,)


def _guards_before(keys: list[str]) -> tuple[str, ...]:
    if all(key.isascii() and key.isalpha() for key in keys):
        return ("[A-Za-z0-9À-ɏ]", "[A-Za-z]-")
    if all(key.isdigit() for key in keys):
        return ("[A-Za-z0-9第]", r"\d\.")
    return (rf"(?![{_WORDS_BEFORE_HAN}{''.join(keys)}])[\u4e00-\u9fff]",)


def _guard_after(keys: list[str]) -> str:
    if all(key.isascii() and key.isalpha() for key in keys):
        return r"[A-Za-z0-9À-ɏ]|['’][A-Za-z]|-[A-Za-z]"
    if all(key.isdigit() for key in keys):
        return rf"[A-Za-z0-9%]|\.\d|,\d{{3}}|(?![{_WORDS_AFTER_HAN}])[\u4e00-\u9fff]"
    return rf"(?![{_WORDS_AFTER_HAN}])[\u4e00-\u9fff]"


def _joined(gap: str) -> bool:
    return len(gap) <= _LONGEST_JOIN and _JOIN.fullmatch(gap) is not None
