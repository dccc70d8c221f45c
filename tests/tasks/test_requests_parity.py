"""The requests of lm-evaluation-harness and of xpe, byte for byte, over one data set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xpe.data.source import Source
from xpe.registry import TASKS
from xpe.types import Generate, Rolling

pytestmark = pytest.mark.parity

CHOICE = {
    "output_type": "multiple_choice",
    "doc_to_text": "{{ context }}{{ q }}",
    "doc_to_choice": "choices",
    "doc_to_target": "gold",
}
TRAIN = {"fewshot_split": "train"}
FREE = {
    "output_type": "generate_until",
    "doc_to_text": "q",
    "doc_to_target": "a",
    "generation_kwargs": {"until": ["\n"]},
}
INLINE = [{"q": f"shot {i}", "a": str(i), "context": ""} for i in range(4)]
CASES: dict[str, dict[str, Any]] = {
    "choice from the training split": CHOICE | {"training_split": "train"},
    "choice from the test split": CHOICE | {"fewshot_split": "test"},
    "first examples": CHOICE | TRAIN | {"fewshot_config": {"sampler": "first_n"}},
    "first of the test split": CHOICE
    | {"fewshot_split": "test", "fewshot_config": {"sampler": "first_n"}},
    "letters": CHOICE
    | TRAIN
    | {
        "doc_to_choice": ["A", "B", "C", "D"],
        "doc_to_target": "letter",
        "target_delimiter": "",
        "fewshot_delimiter": "\n",
        "description": "About {{ q }}\n\n",
    },
    "rendered choices": CHOICE
    | TRAIN
    | {"doc_to_target": "{{ gold }}", "doc_to_choice": "{{ [choices[0], choices[1], 'x', 'y'] }}"},
    "choices in a mapping": CHOICE
    | TRAIN
    | {"doc_to_choice": dict(zip("abcd", "WXYZ", strict=True))},
    "prefix": CHOICE | TRAIN | {"gen_prefix": "The answer is"},
    "prefix with a space": CHOICE
    | TRAIN
    | {"gen_prefix": "The answer is ", "target_delimiter": "\t"},
    "prefix in a field": CHOICE | TRAIN | {"gen_prefix": "prefix"},
    "rendered prefix": CHOICE | TRAIN | {"gen_prefix": "{{ prefix }}x"},
    "mutual information": CHOICE
    | TRAIN
    | {"metric_list": [{"metric": "acc"}, {"metric": "acc_mutual_info"}]},
    "multiple inputs": CHOICE | TRAIN | {"doc_to_text": "gold", "doc_to_target": "a"},
    "multiple inputs and a prefix": CHOICE
    | TRAIN
    | {"doc_to_text": "gold", "doc_to_target": "a", "gen_prefix": "P"},
    "generation without a pool": FREE,
    "generation": FREE | TRAIN,
    "several targets": FREE | TRAIN | {"doc_to_target": "several"},
    "rendered number": FREE | TRAIN | {"doc_to_target": "{{ n }}"},
    "generation over choices": FREE | TRAIN | {"doc_to_target": "gold", "doc_to_choice": "choices"},
    "prefix and description": FREE | TRAIN | {"gen_prefix": "A:", "description": "Say"},
    "description in a field": FREE | TRAIN | {"description": "context"},
    "examples with texts of their own": FREE
    | TRAIN
    | {
        "fewshot_config": {
            "doc_to_text": "Example {{ q }}",
            "doc_to_target": "So: {{ a }}",
            "target_delimiter": "|",
            "fewshot_delimiter": "~",
        }
    },
    "inline examples": FREE | {"fewshot_config": {"sampler": "first_n", "samples": INLINE}},
    "log likelihood": {
        "output_type": "loglikelihood",
        "doc_to_text": "{{ context }}{{ q }}",
        "doc_to_target": " {{ a }}",
        **TRAIN,
    },
    "rolling": {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "q"},
}
MODES = {
    "plain": {},
    "plain with a system text": {"system_instruction": "S "},
    "chat": {"apply_chat_template": True, "system_instruction": "Be brief."},
    "chat of turns": {"apply_chat_template": True, "fewshot_as_multiturn": True},
}
KINDS = {TASKS[kind].output_type: kind for kind in TASKS if hasattr(TASKS[kind], "output_type")}
HANDED = (
    "doc_to_text",
    "doc_to_target",
    "doc_to_choice",
    "description",
    "gen_prefix",
    "target_delimiter",
    "fewshot_delimiter",
    "generation_kwargs",
)
RUNS = [
    (case, mode, shots)
    for case in CASES
    for mode in MODES
    for shots in (0, 1, 3)
    # A whole text has no examples and no chat.
    if case != "rolling" or (mode == "plain" and not shots)
]


def documents(size: int, first: int) -> Iterator[dict[str, Any]]:
    for i in range(first, first + size):
        yield {
            "q": f"question {i}?",
            "context": ["", "c ", "end\n"][i % 3],
            "choices": [f"ch{i}a", f"b{i}", "c c", f"d{i}"],
            "gold": i * 7 % 4,
            "letter": "ABCD"[i % 4],
            "a": f"answer {i}",
            "several": [f"m{i}", "mm"],
            "n": i,
            "prefix": ["P:", "P: ", ""][i % 3],
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("parity")
    for split, size, first in (("test", 12, 0), ("train", 9, 100)):
        lines = (json.dumps(doc) + "\n" for doc in documents(size, first))
        (found / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    return found


def rendered(messages: Any, *, add_generation_prompt: bool = True) -> str:
    return json.dumps([dict(message) for message in messages]) + str(add_generation_prompt)


def theirs(case: dict[str, Any], mode: dict[str, Any], shots: int, folder: Path) -> list[Any]:
    from lm_eval.api.task import ConfigurableTask

    files = {split: str(folder / f"{split}.jsonl") for split in ("test", "train")}
    config = {
        "task": "t",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": files},
        "test_split": "test",
        **json.loads(json.dumps(case)),
    }
    task = ConfigurableTask(config=config)
    task.set_config(key="num_fewshot", value=shots)
    task.set_fewshot_seed(1234)
    chat = mode.get("apply_chat_template")
    task.build_all_requests(limit=7, chat_template=rendered if chat else None, **mode)
    return [(request.doc_id, request.idx, *request.args) for request in task.instances]


def ours(case: dict[str, Any], mode: dict[str, Any], shots: int, folder: Path) -> list[Any]:
    task = TASKS[KINDS[case["output_type"]]](
        name="t",
        data=Source(path=str(folder / "{split}.jsonl"), split="test"),
        fewshot={
            "split": case.get("fewshot_split") or case.get("training_split"),
            **case.get("fewshot_config", {}),
        },
        num_fewshot=shots,
        limit=7,
        compat="lm_eval",
        chat=mode.get("apply_chat_template"),
        fewshot_as_multiturn=mode.get("fewshot_as_multiturn", False),
        system_instruction=mode.get("system_instruction"),
        metrics=[m["metric"] for m in case.get("metric_list", ())] or None,
        **{key: case[key] for key in HANDED if key in case},
    )
    found = []
    for sample in task.samples():
        asked = [args for request in task.requests(sample) for args in arguments(request)]
        found += [(sample.doc_id, index, *args) for index, args in enumerate(asked)]
    return found


def arguments(request: Any) -> list[tuple[Any, ...]]:
    if isinstance(request, Rolling):
        return [(request.text,)]
    if isinstance(request, Generate):
        return [(text(request.prompt), {"until": list(request.stop)})]
    return [(text(request.context), continuation) for continuation in request.continuations]


def text(prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    return rendered(prompt, add_generation_prompt=prompt[-1]["role"] != "assistant")


@pytest.mark.parametrize(("case", "mode", "shots"), RUNS)
def test_requests_are_those_of_the_harness(
    case: str, mode: str, shots: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contexts, examples, delimiters and continuations are equal in compat mode."""
    pytest.importorskip("lm_eval")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    arguments = CASES[case], MODES[mode], shots, folder
    assert ours(*arguments) == theirs(*arguments)
