"""The same 60 questions by lm-evaluation-harness and by xpe: one model, one YAML, two programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from xpe.config import compose
from xpe.launch import run
from xpe.models.smollm2 import converted, gguf

pytestmark = [
    pytest.mark.parity,
    pytest.mark.shared,
    pytest.mark.model,
    pytest.mark.filterwarnings("ignore"),
]

LETTERS = "ABCDE"
PROMPT = (
    "{{ question }}\\n"
    "{% for letter, text in options.items() %}{{ letter }}. {{ text }}\\n{% endfor %}答案："
)
HARNESS = """\
task: tcm_spot
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{test}", dev: "{dev}"}}}}
test_split: test
fewshot_split: dev
fewshot_config: {{sampler: first_n}}
output_type: multiple_choice
doc_to_text: "{prompt}"
doc_to_choice: [A, B, C, D, E]
doc_to_target: answer
target_delimiter: ""
"""
OURS = """\
# @package task.tcm_spot
kind: multiple_choice
data: {{path: "{test}"}}
fewshot: {{source: {{path: "{dev}"}}, sampler: first_n}}
doc_to_text: "{prompt}"
doc_to_choice: [A, B, C, D, E]
doc_to_target: answer
target_delimiter: ""
"""


@pytest.fixture(scope="module")
def task(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 60 questions of five options, 10 short ones as examples, and both YAMLs."""
    folder = tmp_path_factory.mktemp("spot")
    with (shared_data / "data/tcm_choice/TCM-ED-A.jsonl").open(encoding="utf-8") as lines:
        five = [line for line in lines if len(json.loads(line)["options"]) == len(LETTERS)]
    (folder / "test.jsonl").write_text("".join(five[:60]), "utf-8")
    (folder / "dev.jsonl").write_text("".join(sorted(five[60:], key=len)[:10]), "utf-8")
    paths = {"test": folder / "test.jsonl", "dev": folder / "dev.jsonl", "prompt": PROMPT}
    (folder / "task").mkdir()
    (folder / "task" / "tcm_spot.yaml").write_text(OURS.format(**paths), "utf-8")
    (folder / "harness").mkdir()
    (folder / "harness" / "tcm_spot.yaml").write_text(HARNESS.format(**paths), "utf-8")
    return folder


@pytest.fixture(scope="module")
def harness_model() -> Any:
    """The harness's model, loaded once for both counts of examples."""
    from lm_eval.models.huggingface import HFLM

    return HFLM(str(converted(gguf())), dtype="float32", device="cpu", batch_size=8)


def by_harness(folder: Path, shots: int, model: Any) -> tuple[dict[str, Any], list[list[float]]]:
    """Run lm-evaluation-harness; return its metrics and the log likelihoods a question."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    found = simple_evaluate(
        model=model,
        tasks=["tcm_spot"],
        num_fewshot=shots,
        task_manager=TaskManager(include_path=str(folder / "harness"), include_defaults=False),
        log_samples=True,
        bootstrap_iters=0,
    )
    samples = sorted(found["samples"]["tcm_spot"], key=lambda sample: sample["doc_id"])
    scores = [[float(reply[0]) for reply in sample["filtered_resps"]] for sample in samples]
    return found["results"]["tcm_spot"], scores


def by_xpe(folder: Path, shots: int) -> tuple[dict[str, float], list[Sequence[float]]]:
    """Run xpe; return its metrics and the log likelihoods a question."""
    words = ["task=tcm_spot", f"num_fewshot={shots}", "tracking=none", f"output={folder / 'run'}"]
    result = run(compose([*words, "fresh=true"]))
    with (folder / "run/samples/tcm_spot.jsonl").open(encoding="utf-8") as lines:
        scores = [json.loads(line)["replies"][0]["log_likelihoods"] for line in lines]
    return {k: e.value or 0.0 for k, e in result.tasks["tcm_spot"].estimates.items()}, scores


@pytest.mark.parametrize("shots", [0, 3])
def test_same_accuracy_and_log_likelihoods(
    task: Path, harness_model: Any, shots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Accuracies are equal, and all 300 log likelihoods within 1e-3 nat."""
    monkeypatch.setenv("XPE_CONFIG_PATH", str(task))
    theirs, their_scores = by_harness(task, shots, harness_model)
    ours, our_scores = by_xpe(task, shots)

    assert len(our_scores) == 60
    for our, their in zip(our_scores, their_scores, strict=True):
        assert our == pytest.approx(their, abs=1e-3)
    assert ours["acc"] == theirs["acc,none"]
    assert ours["acc_norm"] == theirs["acc_norm,none"]
