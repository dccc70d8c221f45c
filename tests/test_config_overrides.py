"""Quoting: what Hydra's grammar rejects reaches it as the text that was typed."""

from __future__ import annotations

import pytest
from config_parts import configs  # noqa: F401
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from xpe._overrides import parsed, quoted
from xpe.config import compose
from xpe.errors import ConfigError


def values(text: str) -> list[str]:
    """The texts that Hydra's own parser reads from an override."""
    override = OverridesParser.create().parse_overrides([text])[0]
    if override.is_sweep_override():
        return [str(part).partition("=")[2] for part in override.sweep_string_iterator()]
    return [str(override.value())]


@pytest.mark.parametrize(
    "value",
    [
        "/data/通义千问",
        "a=b",
        "第#1题",
        "it's",
        'say "你好"',
        "a\\b中\\",
        "逗号，和,",
        "（中）(b)",
        "题 目",
        "{{ question }}\n{{ 'A' }}",
    ],
)
def test_the_value_arrives_as_typed(value: str) -> None:
    """Quotes, backslashes and commas included."""
    ((text, changed),) = quoted([f"model.path={value}"], multirun=False)

    assert changed
    assert [value] == values(text)


@pytest.mark.parametrize("text", ["a=1", "a=x y", "task=[a,b]", "a='中'", 'a="中"', "~a", "a=null"])
def test_what_hydra_reads_is_left_alone(text: str) -> None:
    """No quotes where none are needed: `a=1` stays a number."""
    assert [(text, False)] == quoted([text], multirun=False)


def test_a_sweep_is_quoted_item_by_item() -> None:
    """Else `-m` would run one job with the whole list as its text."""
    ((text, changed),) = quoted(['model.path=甲,b,"丙,丁",x=y'], multirun=True)

    assert changed
    assert text == 'model.path="甲",b,"丙,丁","x=y"'
    override = parsed(text)
    assert override is not None
    assert override.is_choice_sweep()


@pytest.mark.parametrize("text", ["a=[中,文]", "a={k: 中}", "a=[1", "中=1", "word", 'a="x'])
def test_what_quoting_cannot_mend_is_refused(text: str) -> None:
    """Lists and mappings are the user's to quote; the message shows how."""
    with pytest.raises(ConfigError):
        quoted([text], multirun=False)


@given(
    st.text(
        st.characters(min_codepoint=33, max_codepoint=0x9FFF, exclude_characters="$[{'\""),
        min_size=1,
        max_size=12,
    )
)
def test_any_text_that_needs_quotes_survives(value: str) -> None:
    """A quoted value is read back as the same text."""
    if value.startswith(("(", ",")) or parsed(f"a={value}") is not None:
        return
    ((text, _),) = quoted([f"a={value}"], multirun=False)

    assert [value] == values(text)


@pytest.mark.usefixtures("configs")
def test_chinese_values_reach_the_config() -> None:
    """From Python too."""
    config = compose(["model=talker", "tracking=none", "task=quiz", "model.path=/数据/a=b#c"])

    assert config.model.path == "/数据/a=b#c"
