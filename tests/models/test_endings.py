"""Where texts end: stop strings apply to the answer, never to the reasoning."""

from __future__ import annotations

import pytest

from xpe.models.endings import Cut, Ending
from xpe.text.reasoning import MARKERS


@pytest.mark.parametrize(
    ("stop", "text", "cut"),
    [
        ((), "a\n\nb", Cut("a\n\nb", "", stopped=False, finished=True)),
        (("\n\n",), "a\n\nb", Cut("a", "", stopped=True, finished=True)),
        (("c", "b"), "abc", Cut("a", "", stopped=True, finished=True)),
        (("",), "abc", Cut("abc", "", stopped=False, finished=True)),
        (
            ("\n\n",),
            "<think>x\n\ny</think>\n\nb\n\nc",
            Cut("b", "x\n\ny", stopped=True, finished=True),
        ),
        (("\n\n",), "<think>x\n\ny", Cut("", "x\n\ny", stopped=False, finished=False)),
    ],
)
def test_cut(stop: tuple[str, ...], text: str, cut: Cut) -> None:
    """The earliest stop string in the answer ends it."""
    assert Ending(stop, MARKERS).cut(text) == cut


def test_opened_by_the_prompt() -> None:
    """A block that the template opened counts, closed or not."""
    ending = Ending(("\n",), MARKERS, "<think>")
    assert ending.cut("x\ny") == Cut("", "x\ny", stopped=False, finished=False)
    assert ending.cut("x\ny</think>a\nb") == Cut("a", "x\ny", stopped=True, finished=True)


def test_worth_a_look() -> None:
    """Inside a block only its end matters, outside a stop string or a block's start."""
    ending = Ending(("\n\n",), MARKERS)
    assert not ending.worth_a_look("a\n\nb", inside=True)
    assert ending.worth_a_look("a</think>", inside=True)
    assert ending.worth_a_look("a\n\nb", inside=False)
    assert ending.worth_a_look("<think>", inside=False)
    assert not ending.worth_a_look("ab", inside=False)
