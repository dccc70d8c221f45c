"""Numerals as people write them: Chinese ones up to 亿, fractions, percentages, scientific.

`NUMERAL` finds them in a text that `plain_math` has brought into one spelling; `value_of` reads
one. All patterns take linear time: their repeats are possessive or bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache

from xpe.text.normalise import nfkc

_DIGITS: Mapping[str, int] = dict(
    zip(
        "零一二三四五六七八九〇○壹贰叁肆伍陆柒捌玖两兩俩貳參陸仨",
        (*range(10), 0, 0, *range(1, 10), 2, 2, 2, 2, 3, 6, 3),
        strict=True,
    )
)
_TENS: Mapping[str, int] = dict(zip("十百千拾佰仟", (10, 100, 1000) * 2, strict=True))
_MYRIADS: Mapping[str, int] = dict(zip("万亿萬億", (10**4, 10**8) * 2, strict=True))
_MAGNITUDES: Mapping[str, float] = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
}

HAN_DIGITS = "".join(_DIGITS)
HAN = HAN_DIGITS + "".join(_TENS) + "".join(_MYRIADS)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUPERSCRIPT = re.compile(r"[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_VULGAR = re.compile(r"[¼-¾⅐-⅞]")
_SIGNS = str.maketrans({"−": "-", "‑": "-", "⁄": "/", "∕": "/", "⋅": "·", "∙": "·", "✕": "×"})
_GROUP_SPACES = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))", re.ASCII)
_LATEX_GROUPS = re.compile(r"(?<=\d)(?:\\,|\\!|,\\!|\{,\})(?=\d{3}(?!\d))", re.ASCII)
_LATEX_FRACTION = re.compile(
    r"(\d?)\s*\\[dtc]?frac\s*"
    r"(?:\{\s*(-?\d+(?:\.\d+)?)\s*\}\s*\{\s*(\d+(?:\.\d+)?)\s*\}|(\d)\s*(\d))",
    re.ASCII,
)
_LATEX_MARKS: Mapping[str, str] = {
    r"\times": "×",
    r"\cdot": "·",
    r"\%": "%",
    r"\$": "$",
    r"\left": "",
    r"\right": "",
    r"\,": " ",
    r"\;": " ",
    r"\ ": " ",
    r"\!": "",
    r"\quad": " ",
    r"^{\circ}": "°",
    r"^\circ": "°",
    r"\degree": "°",
    r"\displaystyle": "",
    "~": " ",
}
_LATEX_MARK = re.compile("|".join(sorted(map(re.escape, _LATEX_MARKS), key=len, reverse=True)))
_LATEX_TEXT = re.compile(r"\\(?:text|mathrm|mbox|textbf|mathbf|textrm)\s*\{([^{}]{0,200})\}")
_HAN_POINT = re.compile(r"(?<=\d)点(?=\d++(?![\d分]))", re.ASCII)
_PARTS = re.compile(rf"\d+(?:\.\d+)?|[{HAN}]", re.ASCII)
_HAN_MINUS = re.compile(rf"负\s*(?=[\d{HAN}半])", re.ASCII)

_ARABIC = r"(?:\d{1,3}(?:,\d{3})++(?!\d)(?:\.\d++)?+|\d++(?:\.\d++)?+|(?<!\d)\.\d++)"
_PAIRS = "两兩俩仨"
_FIGURES = "".join(char for char in HAN_DIGITS if char not in _PAIRS)
# 千 begins 千克 and 千米, and 两 is a unit of mass, unless more of the numeral follows it.
_THOUSAND = "[千仟](?![克米瓦卡焦伏帕赫升牛])"
_PART = rf"(?:[{_FIGURES}十百拾佰万亿萬億]|{_THOUSAND}|[两兩](?=[百千万亿佰仟萬億]))"
_HAN_WHOLE = rf"(?:{_PART}|[{_PAIRS}]){_PART}{{0,39}}+"
_HAN = rf"{_HAN_WHOLE}(?:点[{_FIGURES}\d]{{1,40}}+(?:[十百万亿萬億]|{_THOUSAND}){{0,2}}+)?+"
_WHOLE = rf"(?:\d{{1,15}}+|{_HAN_WHOLE})"
NUMERAL = re.compile(
    rf"""
    (?P<sign>(?<![A-Za-z0-9)\]}}%.])[-+](?=[\d.$¥€£{HAN}半])|)
    (?:(?P<currency>US\$|HK\$|[$¥€£₩₹])[ ]?(?P<inner_sign>-?))?+
    (?:
      (?:(?P<mixed>{_WHOLE})\s?又\s?)?+
      (?P<below>{_WHOLE})\s?分之\s?(?P<above>-?(?:{_ARABIC}|{_HAN}))
    | (?P<whole>\d{{1,15}}+)(?:\s?又\s?|[ ])(?P<top>\d{{1,15}}+)/(?P<bottom>\d{{1,15}}+)(?![/\d])
    | (?P<mantissa>{_ARABIC})
      (?:
        [eE](?P<exponent>[+-]?\d{{1,5}}+)(?![A-Za-z0-9])
      | [ ]?[×xX*·][ ]?10[ ]?(?:\^|\*\*)[ ]?[({{]?[ ]?(?P<power>[+-]?\d{{1,5}}+)[ ]?[)}}]?
      | [ ]?(?:\^|\*\*)[ ]?[({{]?[ ]?(?P<own_power>[+-]?\d{{1,3}}+)[ ]?[)}}]?
      | [ ]?/[ ]?(?P<divisor>\d++(?:\.\d++)?+)(?![/\d])
      | (?P<mixture>(?:[十百万亿萬億]|{_THOUSAND})(?:{_PART}|\d){{0,20}}+)
      | [ ](?P<magnitude>hundred|thousand|million|billion|trillion)\b
      )?+
      (?P<and_half>[ ]?个半)?+
    | (?P<han>{_HAN}) (?P<han_and_half>个半)?+
    | (?P<half>一?半)
    )
    (?P<percent>[ ]?(?:%|‰|percent\b|per[ ]cent\b))?+
    """,
    re.VERBOSE | re.ASCII,
)
"""One numeral with its sign, currency and percent mark."""


def plain_math(text: str) -> str:
    r"""Return `text` in the spelling that `NUMERAL` reads: NFKC, plain signs, no simple LaTeX.

    10³ becomes 10^3, ½ becomes 1/2, \frac{1}{2} becomes 1/2, 负三 becomes -三, 3点5 becomes 3.5.
    """
    text = text.replace("$$", "$")
    if "\\" in text or "{,}" in text:
        text = _LATEX_GROUPS.sub("", text)
        text = _LATEX_FRACTION.sub(_slash, text)
        text = _LATEX_TEXT.sub(r"\1", text)
        text = _LATEX_MARK.sub(lambda match: _LATEX_MARKS[match[0]], text)
    if text.isascii():
        return text
    text = _VULGAR.sub(lambda match: f" {match[0]}", _GROUP_SPACES.sub("", raised(text)))
    text = nfkc(text).translate(_SIGNS)
    return _HAN_MINUS.sub("-", _HAN_POINT.sub(".", text))


def raised(text: str) -> str:
    """Return `text` with superscript digits as powers: 10³ becomes 10^3."""
    return _SUPERSCRIPT.sub(lambda match: f"^{match[0].translate(_SUPERSCRIPTS)}", text)


def value_of(match: re.Match[str]) -> float:
    """Return the value of a match of `NUMERAL`; NaN where it has none (1/0)."""
    try:
        value = _unsigned(match)
    except (OverflowError, ZeroDivisionError):
        return math.nan
    if percent := match["percent"]:
        value /= 1000 if "‰" in percent else 100
    negative = (match["sign"] == "-") != (match["inner_sign"] == "-")
    return -value if negative else value


@lru_cache(maxsize=4096)
def read_numeral(text: str) -> float | None:
    """Return the value of a text that is one numeral and nothing else, else None."""
    match = NUMERAL.fullmatch(plain_math(text).strip())
    value = value_of(match) if match else math.nan
    return None if math.isnan(value) else value


def han_integer(numeral: str) -> float:
    """Return the value of a whole Chinese numeral; Arabic digits may stand among its parts.

    Reads 三千五百六十七, 一百零五, 两百五 (250), 一万二 (12000), 3千5百, 二〇二四, 一亿三千万.
    """
    total = section = 0.0
    number: float | None = None
    last_unit = 1.0
    for part in _PARTS.findall(numeral):
        if part in _MYRIADS:
            section += number or (0 if section or total else 1)
            total = (
                (total + section) * _MYRIADS[part]
                if part in "亿億"
                else (total + section * _MYRIADS[part])
            )
            section, number, last_unit = 0.0, None, float(_MYRIADS[part])
        elif part in _TENS:
            section += (1 if number is None else number) * _TENS[part]
            number, last_unit = None, float(_TENS[part])
        else:
            digits = float(part) if part[0].isascii() else float(_DIGITS[part])
            joined = number is not None and not part[0].isascii()
            # 零 says that the digits after it are ones: 一百零五 is 105, 一百五 is 150.
            last_unit = 1.0 if digits == 0 or joined else last_unit
            number = (number or 0) * 10 + digits if joined else digits
    return total + section + (number or 0) * (last_unit / 10 if last_unit >= 100 else 1)


def _unsigned(match: re.Match[str]) -> float:
    if match["half"]:
        return 0.5
    if match["below"]:
        mixed = _any_value(match["mixed"]) if match["mixed"] else 0.0
        return mixed + _any_value(match["above"]) / _any_value(match["below"])
    if match["whole"]:
        return float(match["whole"]) + float(match["top"]) / float(match["bottom"])
    half = 0.5 if match["and_half"] or match["han_and_half"] else 0.0
    return half + (_han_value(match["han"]) if match["han"] else _arabic_value(match))


def _arabic_value(match: re.Match[str]) -> float:
    digits = match["mantissa"].replace(",", "")
    if match["exponent"] or match["power"]:
        return float(f"{digits}e{match['exponent'] or match['power']}")
    if match["mixture"]:
        return han_integer(digits + match["mixture"])
    value = float(digits)
    if match["own_power"]:
        return float(value ** int(match["own_power"]))
    if match["divisor"]:
        return value / float(match["divisor"])
    return value * _MAGNITUDES.get(match["magnitude"] or "", 1.0)


def _any_value(numeral: str) -> float:
    negative = numeral.startswith("-")
    numeral = numeral.lstrip("-").replace(",", "")
    value = float(numeral) if numeral[0] in "0123456789." else _han_value(numeral)
    return -value if negative else value


def _han_value(numeral: str) -> float:
    whole, point, rest = numeral.partition("点")
    if not point:
        return han_integer(whole)
    decimals = rest.rstrip("十百千万亿萬億")
    figures = "".join(char if char.isascii() else str(_DIGITS[char]) for char in decimals)
    scale = han_integer(rest[len(decimals) :]) if len(rest) > len(decimals) else 1.0
    return float(f"{han_integer(whole):.0f}.{figures}") * scale


def _slash(match: re.Match[str]) -> str:
    whole, top, bottom, short_top, short_bottom = match.groups()
    space = " " if whole else ""
    return f"{whole}{space}{top or short_top}/{bottom or short_bottom}"
