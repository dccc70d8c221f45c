"""Terms of traditional Chinese medicine: which ones a text names, under one name each.

The table is data (`tcm_terms.yaml`): each canonical term with its other names, by kind of
answer. Names overlap (阴虚证 holds 阴虚), so the longest is taken first and no span twice.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["syndrome", "disease", "treatment"]
Stated: TypeAlias = Literal["statement", "list", "text"]
KINDS: tuple[Kind, ...] = ("syndrome", "disease", "treatment")

LONGEST_ANSWER = 100_000
"""Of a longer answer the last so many characters are read."""
LONGEST_PIECE = 10
"""A piece of a list of terms has at most so many characters."""
SHARE_OF_TERM = 0.6
"""A piece that no table holds counts as a term if so many of its characters occur in terms."""

_SEPARATOR = re.compile(r"[、，；。,;.!！?？:：\s/]+")
_BRACKETS = re.compile(r"[（(【\[]([^（()）【】\[\]]*)[)）】\]]")
_SENTENCE_END = re.compile(r"[。\n！？!?]")
_NEGATION = re.compile(
    r"(?:未见|没有|排除|并非|不是|不属于|不考虑|不支持|除外|无|非)(?:明显的?|典型的?)?$"
)
_JOINED = re.compile(r"[、和及或与]")
_STATES = re.compile(r"(?:内|壅|炽|偏|亢)?(?:盛|蕴|结|停|阻|滞)证?|之?证候?|证型|型|病|者|等")
_FUNCTION = re.compile(
    r"[的是为因患者我您你他本该此应当即故且但而请与]|考虑|诊断|辨证|建议|治疗|综上|可能|符合|根据"
)
_STATES_NEXT = re.compile(r"(?:[为是属患]|考虑|诊断)$")
_BECAUSE = re.compile(r"^(?:因为?|由于|由|缘于)")
_ANCHORS: Mapping[Kind, str] = {
    "syndrome": r"证候类型|中医证型|中医证候|证候|证型|辨证分型|辨证|证|syndrome",
    "disease": r"中医疾病|疾病|病名|中医诊断|诊断|disease",
    "treatment": r"治疗原则|治疗方法|治法|治则|治疗|治|treatment",
}
_STATING = {
    kind: re.compile(
        rf"(?:{names})(?:名称|结果|诊断|分型|选择)?[*＊_]{{0,2}}\s*"
        r"(?:应当|应该|应|可|当|宜)?(?:诊断为|考虑为|考虑|判断为|确定为|选用|选|采用|属于|属|为|是|以|宜|[:：])"
        r"[*＊_]{0,2}\s*[:：]?\s*"
    )
    for kind, names in _ANCHORS.items()
}
_ANSWER = re.compile(r"(?:最终答案|答案|answer)\s*(?:为|是|[:：])+\s*", re.IGNORECASE)
_ANY_STATING = re.compile("|".join(pattern.pattern for pattern in _STATING.values()))


class Span(NamedTuple):
    """A name found in a text, from `start` to `end`."""

    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Lexicon:
    """Names of terms and their canonical ones; `symptoms` need to stand alone.

    `lengths` has the lengths of the names that begin with a character, the longest first;
    `characters` are those that occur in names.
    """

    canonical: Mapping[str, str]
    symptoms: frozenset[str]
    lengths: Mapping[str, Sequence[int]]
    characters: frozenset[str]

    @classmethod
    def of(cls, canonical: Mapping[str, str], symptoms: Iterable[str] = ()) -> Lexicon:
        """Build a lexicon from names and their canonical terms."""
        return cls({}, frozenset(symptoms), {}, frozenset()).with_names(canonical)

    def with_names(self, names: Mapping[str, str]) -> Lexicon:
        """Return a lexicon that knows further names."""
        lengths = dict(self.lengths)
        for name in filter(None, names):
            found = {*lengths.get(name[0], ()), len(name)}
            lengths[name[0]] = tuple(sorted(found, reverse=True))
        return Lexicon(
            {**self.canonical, **names},
            self.symptoms,
            lengths,
            self.characters.union(*names),
        )

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the names in a text from left to right, the longest first, none overlapping."""
        position = 0
        while position < len(text):
            for length in self.lengths.get(text[position], ()):
                name = text[position : position + length]
                if name in self.canonical:
                    yield Span(position, position + length, name)
                    position += length
                    break
            else:
                position += 1


@cache
def table(kind: Kind | None = None) -> Lexicon:
    """Return the shipped names of one kind of answer; of all kinds for None."""
    data = _data()
    kinds = KINDS if kind is None else (kind,)
    canonical: dict[str, str] = {}
    for name in kinds:
        canonical |= named_by(data[name])
    if "treatment" in kinds:
        canonical = {method: method for method in chain(*data["methods"].values())} | canonical
    if "syndrome" in kinds:
        made = _of_organs(data["organs"], data["natures"])
        canonical = {**{n: canonical.get(t, t) for n, t in made.items()}, **canonical}
    return Lexicon.of(canonical, data["symptoms"])


@cache
def general_terms() -> Mapping[str, str]:
    """Return the terms that the documented table counts as a more general one."""
    kinds: Mapping[str, Sequence[str]] = _data()["kinds"]
    return {special: general for general, specials in kinds.items() for special in specials}


def named_by(synonyms: Mapping[str, Sequence[str] | None]) -> dict[str, str]:
    """Return name to canonical term, from canonical term to its other names."""
    return {
        normal(name): normal(term)
        for term, others in synonyms.items()
        for name in (term, *(others or ()))
    }


def normal(text: str) -> str:
    """Return `text` in NFKC, which makes full-width letters and brackets plain."""
    return unicodedata.normalize("NFKC", text).replace("\0", " ")


@cache
def _data() -> Mapping[str, Any]:
    import yaml

    text = files("xpe.text").joinpath("tcm_terms.yaml").read_text("utf-8")
    data: Mapping[str, Any] = yaml.safe_load(text)
    return data


def _of_organs(organs: Iterable[str], natures: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {
        f"{organ}{variant}": f"{organ}{nature}"
        for organ in organs
        for nature, variants in natures.items()
        for variant in variants
    }


# --- the gold --------------------------------------------------------------------------------


def gold_terms(gold: str, lexicon: Lexicon) -> Mapping[str, str]:
    """Return the terms of a gold, name to canonical term.

    It is split at punctuation, then at names of the lexicon; what is left is a term of its own.
    Text in brackets is another name of the term before it.
    """
    names: dict[str, str] = {}
    for piece, aliases in _pieces(gold):
        parts = list(_parts(_bare(piece, lexicon), lexicon))
        names |= parts
        if parts and len(parts) == 1:
            names |= dict.fromkeys(aliases, parts[0][1])
    return names


def _pieces(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the pieces between punctuation, each with what stands in brackets after it."""
    aliases: list[tuple[str, ...]] = []

    def keep(match: re.Match[str]) -> str:
        aliases.append(tuple(filter(None, _SEPARATOR.split(match[1]))))
        return f"\0{len(aliases) - 1}\0"

    for piece in filter(None, _SEPARATOR.split(_BRACKETS.sub(keep, normal(text)))):
        if "\0" not in piece:
            yield piece, ()
            continue
        bare, *marked = piece.split("\0")
        found = [alias for index in marked[::2] for alias in aliases[int(index)]]
        if bare := bare + "".join(marked[1::2]):
            yield bare, found


def _bare(piece: str, lexicon: Lexicon) -> str:
    """Take 证 off a syndrome, as in 风寒束表证; a name of the table stays as it is."""
    short = piece.removesuffix("证候").removesuffix("证")
    return piece if piece in lexicon.canonical or len(short) < 3 else short


def _parts(piece: str, lexicon: Lexicon) -> Iterator[tuple[str, str]]:
    """Cut a piece at names of the lexicon; yield each part with its canonical term."""
    end = 0
    for span in lexicon.spans(piece):
        if span.name in lexicon.symptoms and span.name != piece:
            continue
        yield from _left_over(piece[end : span.start], alone=False)
        yield span.name, lexicon.canonical[span.name]
        end = span.end
    yield from _left_over(piece[end:], alone=end == 0)


def _left_over(part: str, *, alone: bool) -> Iterator[tuple[str, str]]:
    if part and (alone or (len(part) > 1 and not _STATES.fullmatch(part))):
        yield part, part


# --- the answer ------------------------------------------------------------------------------


def stated(text: str, kind: Kind | None) -> tuple[str, Stated]:
    """Return the part of an answer that states the diagnosis, and how it does.

    That is what follows 证型：, 诊断为, 治以 and the like, the last of them, up to the end of the
    sentence; else the whole text, which may be but a list of terms.
    """
    text = normal(text[-LONGEST_ANSWER:]).replace("*", "").strip()
    found = list(_STATING[kind].finditer(text)) if kind else []
    found = found or list(_ANSWER.finditer(text))
    if found:
        rest = text[found[-1].end() :].lstrip()
        cut = min((m.start() for m in _ends(rest) if m.start() > 0), default=len(rest))
        if rest[:cut].strip():
            return rest[:cut], "statement"
    return text, "list" if _is_list(text) else "text"


def _ends(text: str) -> Iterator[re.Match[str]]:
    for pattern in (_SENTENCE_END, _ANY_STATING):
        match = pattern.search(text)
        if match:
            yield match


def _is_list(text: str) -> bool:
    pieces = [piece for piece, _ in _pieces(text)]
    return len(pieces) <= 12 and all(
        len(piece) <= LONGEST_PIECE and not _FUNCTION.search(piece) for piece in pieces
    )


def named_terms(text: str, lexicon: Lexicon, how: Stated) -> list[set[str]]:
    """Return the canonical terms that a text names, by piece, without those that it denies.

    In a statement, a piece that no table holds counts as a term if its characters are those of
    terms; in a bare list that names a known term, every piece counts.
    """
    pieces = list(_pieces(text))
    known = [_known_in(piece, aliases, lexicon, len(pieces)) for piece, aliases in pieces]
    if how != "text":
        share = 0.0 if how == "list" and any(known) else SHARE_OF_TERM
        for (piece, aliases), named in zip(pieces, known, strict=True):
            named.update(_unknown_in(piece, aliases, lexicon, named, share))
    denied = denied_terms(text, lexicon)
    return [named - denied for named in known if named - denied]


def _known_in(piece: str, aliases: Sequence[str], lexicon: Lexicon, n_pieces: int) -> set[str]:
    """Return the terms of the lexicon in a piece; symptoms only alone, 疖 alone or as 为疖."""
    if _BECAUSE.match(piece):
        return set()
    names = [span.name for span in lexicon.spans(piece)]
    alone = {*lexicon.symptoms} if n_pieces > 1 or len(names) != 1 or names[0] != piece else set()
    kept = [n for n in names if n not in alone and (len(n) > 1 or _is_stated(n, piece))]
    return {lexicon.canonical[n] for n in (*kept, *aliases) if n in lexicon.canonical}


def _is_stated(character: str, piece: str) -> bool:
    before = piece.removesuffix(character)
    return not before or (before != piece and _STATES_NEXT.search(before) is not None)


def _unknown_in(
    piece: str, aliases: Sequence[str], lexicon: Lexicon, named: set[str], share: float
) -> set[str]:
    """Return what looks like a term beside the known ones: the rest of a piece, its brackets.

    Brackets behind several terms name none of them, in an answer as in a gold.
    """
    if len(piece) > LONGEST_PIECE or _BECAUSE.match(piece):
        return set()
    bare = _bare(piece, lexicon)
    parts = [part for part, _ in _parts(bare, lexicon)]
    rest = [part for part in parts if part not in lexicon.canonical]
    found = {part for part in rest if _looks_like_a_term(part, lexicon, 0.0 if named else share)}
    if len(parts) == 1 and not any(lexicon.canonical.get(alias) in named for alias in aliases):
        found |= {alias for alias in aliases if _looks_like_a_term(alias, lexicon, share)}
    return found


def _looks_like_a_term(part: str, lexicon: Lexicon, share: float) -> bool:
    if not 2 <= len(part) <= LONGEST_PIECE or _FUNCTION.search(part):
        return False
    return sum(character in lexicon.characters for character in part) >= share * len(part)


def denied_terms(text: str, lexicon: Lexicon) -> set[str]:
    """Return the terms that follow a negation, or that are listed after one that does."""
    text = normal(text)
    spans = list(lexicon.spans(text))
    denied: set[str] = set()
    affirmed: set[str] = set()
    previous: Span | None = None
    for span in spans:
        before = text[previous.end if previous else 0 : span.start]
        listed = previous is not None and _JOINED.fullmatch(before.removeprefix("证"))
        negated = bool(_NEGATION.search(before)) or bool(
            listed and previous and _is_denied(previous)
        )
        (denied if negated else affirmed).add(lexicon.canonical[span.name])
        previous = Span(span.start, span.end, "\0" if negated else span.name)
    return denied - affirmed


def _is_denied(span: Span) -> bool:
    return span.name == "\0"
