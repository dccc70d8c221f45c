from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import xpe
from xpe.types import Generate, LogLikelihood, Rolling

FOLDER = Path(__file__).resolve().parents[2] / "conf" / "task"
NAMES = sorted(path.stem for path in FOLDER.glob("[!_]*.yaml"))
SIZES = {
    "capitals_en": 150,
    "capitals_zh": 150,
    "arithmetic_zh": 100,
    "tcm_choice": 60,
    "tcm_choice_gen": 60,
    "tcm_syndrome": 40,
    "tcm_disease": 40,
    "tcm_treatment": 40,
    "translation_zh_en": 40,
    "perplexity_en": 1,
    "perplexity_zh": 1,
}


def composed(name: str, *overrides: str) -> Any:
    return xpe.compose([f"task={name}", *overrides]).task[name]


def test_every_shipped_task_is_here() -> None:
    """A file that is added is tested too, and none is lost; groups have tests of their own."""
    assert set(SIZES) <= set(NAMES)


@pytest.mark.parametrize("name", SIZES)
def test_a_file_begins_with_its_package_and_says_what_it_is(name: str) -> None:
    """Without the first line its keys would spill into the group; the second is for `xpe ls`."""
    first, second = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[:2]
    assert first == f"# @package task.{name}"
    assert second.startswith("# ")
    assert second.endswith(".")


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("shots", [0, 3])
def test_a_task_checks_with_and_without_examples(name: str, shots: int) -> None:
    """Data, golds, prompts and examples of every task are sound, and long enough."""
    task = composed(name, f"num_fewshot={shots}")
    task.check()
    assert len(task.samples()) >= SIZES[name]


@pytest.mark.parametrize("name", SIZES)
def test_no_question_is_among_the_examples(name: str) -> None:
    """The text that asks about a document occurs once in its prompt."""
    task = composed(name, "num_fewshot=3")
    for sample in task.samples():
        (request,) = task.requests(sample)
        if isinstance(request, Rolling):
            continue
        prompt = request.prompt if isinstance(request, Generate) else request.context
        said = [prompt] if isinstance(prompt, str) else [m["content"] for m in prompt]
        question = str(task.texts.question(task.documents.record(sample.doc_id)))
        assert sum(text.count(question) for text in said) == 1


@pytest.mark.parametrize("name", SIZES)
def test_requests_are_what_the_kind_says(name: str) -> None:
    """One class of request a kind, and a small token limit for what is written."""
    task = composed(name)
    kinds = {
        "multiple_choice": LogLikelihood,
        "generate_until": Generate,
        "loglikelihood": LogLikelihood,
        "loglikelihood_rolling": Rolling,
    }
    for sample in task.samples():
        for request in task.requests(sample):
            assert isinstance(request, kinds[task.output_type])
            assert not isinstance(request, Generate) or request.max_tokens <= 96
        json.dumps(sample.reference)


def test_first_prompt_of_the_capitals() -> None:
    """Written out by hand, so that a change of a template shows."""
    task = composed("capitals_en", "num_fewshot=0")
    sample = task.samples()[0]
    (request,) = task.requests(sample)
    assert request == LogLikelihood(
        f"Question: What is the capital of {sample.doc['country']}?\nAnswer:",
        tuple(f" {name}" for name in sample.doc["choices"]),
    )


def test_first_prompt_of_the_lettered_choices() -> None:
    """Letters follow the full-width colon without white space."""
    task = composed("tcm_choice", "num_fewshot=0")
    sample = task.samples()[0]
    (request,) = task.requests(sample)
    options = "".join(
        f"{letter}. {text}\n" for letter, text in zip("ABCDE", sample.doc["choices"], strict=False)
    )
    assert request.context == (
        f"以下是中医学的单项选择题，请选出正确答案。\n\n{sample.doc['question']}\n{options}答案："
    )
    assert request.continuations == tuple("ABCDE"[: len(sample.doc["choices"])])
