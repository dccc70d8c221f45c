from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from xpe.data.source import Source
from xpe.tasks.multiple_choice import MultipleChoice

pytestmark = pytest.mark.shared


def tcm_choice(shared_data: Path, **settings: object) -> MultipleChoice:
    return MultipleChoice(
        name="tcm_ed",
        data=Source(path=str(shared_data / "data" / "tcm_choice" / "TCM-ED-A.jsonl")),
        doc_to_text=(
            "{{ question }}\n"
            "{% for letter, text in options.items() %}{{ letter }}. {{ text }}\n{% endfor %}答案："
        ),
        doc_to_choice="{{ options.keys() | list }}",
        doc_to_target="answer",
        target_delimiter="",
        **settings,  # type: ignore[arg-type]
    )


def test_all_questions_of_the_examination(shared_data: Path) -> None:
    """1,200 questions, 1,166 with five options and 34 with four, and every gold is an option."""
    task = tcm_choice(shared_data)
    task.check()
    sizes = Counter(len(sample.reference["choices"]) for sample in task.samples())
    assert sizes == {5: 1166, 4: 34}
    assert all(s.reference["answer"]["value"] == s.doc["answer"] for s in task.samples())


@pytest.mark.parametrize("sampler", ["random", "first_n"])
def test_no_question_is_its_own_example(sampler: str, shared_data: Path) -> None:
    """Also where the examination asks the same question twice."""
    task = tcm_choice(shared_data, num_fewshot=3, fewshot={"sampler": sampler})
    for sample in task.samples():
        (request,) = task.requests(sample)
        asked = str(task.texts.question(task.documents.record(sample.doc_id)))
        assert str(request.context).count(asked) == 1
        assert str(request.context).endswith(asked)
