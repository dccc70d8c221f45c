"""The wordings around an option label, as data: what announces it, rejects it, or confirms it.

English ones are lower case and match whole words: those that stand before a label begin with a
space, those that stand behind one end with a space, and the text they are compared with has
spaces for its marks.
"""

from __future__ import annotations

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")


def _listed(phrases: str) -> tuple[str, ...]:
    parts = (part.strip() for line in phrases.splitlines() for part in line.split("|"))
    return tuple(part for part in parts if part)


def _before(phrases: str) -> tuple[str, ...]:
    return tuple(f" {words}" if words[0] in _LETTERS else words for words in _listed(phrases))


def _behind(phrases: str) -> tuple[str, ...]:
    return tuple(f"{words} " if words[-1] in _LETTERS else words for words in _listed(phrases))


FILLERS = _before(
    r"""
    选项 | 选择项
    option | options | choice | choices | letter | statement | \text | \textbf | \mathbf
    \mathrm | \bf | \rm | \boxed
    """
)
"""Words between an announcement and its label."""

NO_ANNOUNCEMENT = _before(
    """
    可选 | 备选 | 候选 | 待选 | 首选 | 的选择 | 必然选择
    answer choice | answer option | answer choices
    """
)
"""What ends like an announcement but is none."""

ANNOUNCING = _before(
    """
    答案 | 答案是 | 答案为 | 答案应是 | 答案应为 | 答案应该是 | 答案应该为 | 答案即 | 答案就是
    答案即为 | 答案可能是 | 答案选 | 答 | 选 | 选择 | 选择了 | 选的是 | 选择的是 | 选项是
    选项为 | 选项应是 | 选项应为 | 选项应该是 | 选择是 | 选择为 | 选项有 | 答案有 | 正确的是
    正确的有 | 错误的是 | 错误的有 | 正确项是 | 正确项为 | 题意的是 | 结论是 | 正确选项
    最佳选项 | 正确项
    answer | answer is | answers | answers are | answer would be | answer should be
    answer must be | answer will be | answer has to be | answer to the question is
    answer to this question is | choice is | choices are | choice would be | option is
    options are | option would be | correct one is | correct is | i choose | we choose | choose
    i select | select | i pick | pick | go with | going with | my choice | correct option
    correct choice | right option | right choice | best option | best choice | conclusion is
    corresponds to | answer was | answer is clearly | answer is therefore | answer is thus
    answer is most likely | answer is probably | answer is likely | answer is definitely
    answer is indeed
    """
)
"""What says that a label is the answer."""

CONCLUDING = _before(
    """
    → | ⇒ | 因此 | 所以 | 故 | 综上 | 综上所述 | 即 | 就是 | 是 | 为 | 应是 | 应为 | 认为
    therefore | thus | so | hence | it is | it's | it must be | must be | should be | would be
    i think | i believe | i would say | i'd say | is
    """
)
"""What often stands before the answer, but not only there."""

REJECTING = _before(
    """
    不选 | 不能选 | 不应选 | 不应该选 | 不该选 | 未选 | 别选 | 勿选 | 不可选 | 不选择 | 不是
    并不是 | 而不是 | 不可能是 | 不会是 | 不应是 | 不应该是 | 不为 | 并非 | 而非 | 非 | 排除
    排除了 | 可排除 | 故排除 | 先排除 | 除 | 除了 | 除去 | 排除掉 | 错选 | 误选 | 没选 | 没有选
    不要选 | 干扰项是 | 干扰项为
    isn’t | not | not be | isn't | can't be | cannot be | rather than | instead of | over | never
    eliminate | eliminated | eliminates | eliminating | exclude | excluded | excluding
    rule out | ruled out | rules out | ruling out | except | except for | other than | discard
    discarded | reject | rejected | neither | nor | not choose | don't choose | don't pick
    not select | not pick | not necessarily | not the answer
    """
)
"""What says, before a label, that it is not the answer."""

REJECTED = _behind(
    """
    错误 | 错 | 不对 | 不正确 | 不符 | 不选 | 不是 | 不属于 | 不能 | 排除 | 被排除 | 可排除
    可以排除 | 应排除 | 有误 | 均错 | 都错 | 均不 | 都不 | 不成立 | 不当选 | 不合 | 不可能
    是错 | 为错 | 明显错 | 的说法错 | 说法错 | 表述错 | 与题意不 | 与题干不 | 与材料不
    与史实不 | 三项错 | 三项均 | 三项不 | 三项都 | 两项错 | 两项均 | 两项不 | 两项都 | ✗ | ×
    ❌
    isn’t | aren’t | is wrong | is incorrect | is not | isn't | are wrong | are incorrect
    are not | aren't | is eliminated | are eliminated | is false | are false | can be eliminated
    can be ruled | can be excluded | can't | cannot | is ruled out | are ruled out | does not
    doesn't | do not | don't | was wrong | was incorrect | wrong | incorrect | false
    is unlikely | are unlikely | seems wrong | is out | are out | is also wrong
    is also incorrect
    """
)
"""What says, after a label, that it is not the answer."""

CONFIRMED = _behind(
    """
    正确 | 是正确 | 为正确 | 对 | 是对的 | 符合题意 | 是答案 | 为答案 | 当选 | 是最佳 | 最符合
    是最符合 | 最合适 | 是最合适 | 的说法正确 | 说法正确 | 表述正确 | ✓ | ✔ | ✅
    is correct | is the correct | is right | is the right | is the best | is the answer
    is true | is my answer | is the most | fits best | is clearly correct | are correct
    are right | are true | are the correct | is therefore correct
    """
)
"""What says, after a label, that it is right."""

REASONING = _listed("because | 因为 | since | 理由 | 由于 | 解析")
"""What follows a label that opens an answer, where no punctuation mark does."""
