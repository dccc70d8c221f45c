"""The config of a run: what is handed down, refused, dumped and fingerprinted."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from config_parts import configs, write  # noqa: F401
from hydra import compose as hydra_compose
from hydra import initialize_config_dir

from xpe.config import RunConfig, compose, dump, fingerprint, finish
from xpe.errors import ConfigError, SettingTypeError, UnknownNameError

pytestmark = pytest.mark.usefixtures("configs")

BASE = ("model=talker", "tracking=none")


def made(*overrides: str) -> RunConfig:
    return compose([*BASE, *overrides])


# --- handing down ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "shots"),
    [
        ([], {"quiz": None, "essay": 3, "pinned": 0}),
        (["num_fewshot=5"], {"quiz": 5, "essay": 5, "pinned": 0}),
        (["num_fewshot=0"], {"quiz": 0, "essay": 0, "pinned": 0}),
        (
            ["num_fewshot=5", "task.essay.num_fewshot=2", "task.pinned.num_fewshot=1"],
            {"quiz": 5, "essay": 2, "pinned": 1},
        ),
        (["task.quiz.num_fewshot=4"], {"quiz": 4, "essay": 3, "pinned": 0}),
    ],
)
def test_few_shot_count_typed_beats_pinned_beats_global_beats_file(
    overrides: list[str], shots: dict[str, int | None]
) -> None:
    """A typed count wins, then a pinned 0, then the global one, then the file's."""
    config = made("task=[quiz,essay,pinned]", *overrides)

    assert shots == {name: task.num_fewshot for name, task in config.task.items()}


def test_a_pinned_zero_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever set a global count learns that a task did not follow it."""
    caplog.set_level(logging.INFO, "xpe")

    made("task=pinned", "num_fewshot=5")

    assert "task.pinned: num_fewshot stays 0" in caplog.text


def test_a_number_in_a_preset_loses_to_the_global_one() -> None:
    """Only what was typed for the task beats the global count."""
    assert made("experiment=small").task["quiz"].num_fewshot == 6
    assert made("experiment=small", "num_fewshot=5").task["quiz"].num_fewshot == 5


def test_gen_kwargs_reach_generation_tasks_only_and_lose_to_typed_ones() -> None:
    """They are merged into what the file says, key by key; a temperature beats its do_sample."""
    config = made(
        "task=[quiz,essay]",
        "gen_kwargs.max_gen_toks=50",
        "gen_kwargs.temperature=0.5",
        "task.essay.generation_kwargs.max_gen_toks=60",
    )

    assert config.task["essay"].generation_kwargs == {
        "max_gen_toks": 60,
        "temperature": 0.5,
    }
    assert not hasattr(config.task["quiz"], "generation_kwargs")


def test_top_level_settings_are_handed_to_tasks() -> None:
    """Seeds, chat template, instruction, remap and compat all stand in the finished task."""
    task = made(
        "task=quiz",
        "seed.fewshot=7",
        "apply_chat_template=true",
        "fewshot_as_multiturn=false",
        "system_instruction=Answer",
        "data.remap={org/set: /data/set}",
        "compat=lm_eval",
    ).task["quiz"]

    assert (
        task.fewshot_seed,
        task.chat,
        task.fewshot_as_multiturn,
        task.system_instruction,
        task.remap,
        task.compat,
    ) == (7, True, False, "Answer", {"org/set": "/data/set"}, "lm_eval")


def test_limit_is_handed_down_unless_typed_for_the_task() -> None:
    """The global limit beats the file's, a typed one beats both."""
    config = made("task=[quiz,child]", "limit=0.5", "task.quiz.limit=3")

    assert (config.task["quiz"].limit, config.task["child"].limit) == (3, 0.5)
    assert made("task=child").task["child"].limit == 7


def test_samples_name_documents_by_task_in_place_of_the_limit() -> None:
    """Other tasks keep the limit."""
    config = made("task=[quiz,essay]", "limit=2", "samples={quiz:[4,9]}")

    assert (config.task["quiz"].sample_ids, config.task["quiz"].limit) == ((4, 9), None)
    assert (config.task["essay"].sample_ids, config.task["essay"].limit) == (None, 2)


def test_a_base_and_a_group_compose() -> None:
    """A base fills in what a file leaves out; a group brings its tasks, once each."""
    assert made("task=child").task["child"].num_fewshot == 2
    config = made("task=[both,quiz]", "task.essay.num_fewshot=1")

    assert {"quiz", "essay", "both"} == set(config.task)
    assert [task.name for task in config.leaves] == ["quiz", "essay"]
    assert list(config.groups) == ["both"]
    assert config.task["essay"].num_fewshot == 1


# --- evaluators ------------------------------------------------------------------------------


def test_auto_takes_what_each_task_names_else_the_metrics_of_its_kind() -> None:
    """A task without evaluators gets its list of metrics, and learns its kind of output."""
    evaluators = made("task=[quiz,essay]").evaluators

    assert {k: list(v) for k, v in evaluators.items()} == {"quiz": ["metrics"], "essay": ["marks"]}
    assert evaluators["quiz"]["metrics"].output_type == "multiple_choice"  # type: ignore[attr-defined]


def test_metrics_and_evaluators_of_a_task_are_both_used() -> None:
    """Metrics do not replace evaluators."""
    assert list(made("task=essay", "task.essay.metrics=[bleu]").evaluators["essay"]) == [
        "metrics",
        "marks",
    ]


def test_a_chosen_evaluator_replaces_and_auto_beside_it_adds() -> None:
    """`evaluator=marks` is all there is; `[auto,marks]` adds to what tasks name."""
    named = "task.essay.metrics=[bleu]"

    assert list(made("task=essay", "evaluator=marks", named).evaluators["essay"]) == ["marks"]
    assert list(made("task=essay", "evaluator=[auto,marks]", named).evaluators["essay"]) == [
        "metrics",
        "marks",
    ]


def test_parameters_reach_the_evaluator_that_auto_picks() -> None:
    """For all tasks by `evaluator.<name>`, for one by the task."""
    config = made("task=essay", "evaluator.marks.strict=true")
    one = made("task=essay", "task.essay.evaluators.marks.strict=true")

    assert config.evaluators["essay"]["marks"].strict  # type: ignore[attr-defined]
    assert one.evaluators["essay"]["marks"].strict  # type: ignore[attr-defined]


def test_predict_only_scores_nothing() -> None:
    """There are no evaluators, and a wrong one is refused all the same."""
    assert made("task=essay", "predict_only=true").evaluators == {"essay": {}}
    with pytest.raises(ConfigError, match="kind essay"):
        made("task=quiz", "evaluator=marks", "predict_only=true")


# --- refusals --------------------------------------------------------------------------------

REFUSED: list[tuple[list[str], type[Exception], str]] = [
    (["task=quizz"], UnknownNameError, "there is no task 'quizz'. Did you mean 'quiz'"),
    (["task=[quiz,essey]"], UnknownNameError, "Did you mean 'essay'"),
    (["model=talkr"], UnknownNameError, "Did you mean 'talker'"),
    (["task=quiz", "experiment=smal"], UnknownNameError, "Did you mean 'small'"),
    (["tsk=quiz"], UnknownNameError, "tsk: no such setting. Did you mean 'task'"),
    (["task=quiz", "seed.fewshoot=3"], UnknownNameError, "seed.fewshoot.*Did you mean 'fewshot'"),
    (
        ["task=quiz", "task.quiz.num_fewshots=3"],
        UnknownNameError,
        "task.quiz.num_fewshots: no such setting. Did you mean 'num_fewshot'",
    ),
    (["task=quiz", "task.quiz.part.sise=3"], UnknownNameError, "task.quiz.part.sise.*'size'"),
    (["task=quiz", "task.quiz.part.size=0"], ConfigError, "task.quiz.part.size: .*got 0"),
    (["task=quiz", "task.quiz.num_fewshot=x"], SettingTypeError, "task.quiz.num_fewshot: .*'x'"),
    (["task=quiz", "+foo=1"], UnknownNameError, "foo: no such setting"),
    (["task=quiz", "limit=0"], ConfigError, "got 0; write limit=10"),
    (["task=quiz", "limit=1.0"], ConfigError, "got 1.0; write limit=1 for a count of 1"),
    (["task=quiz", "limit=2.5"], ConfigError, "got 2.5; write limit=2"),
    (["task=quiz", "limit=-3"], ConfigError, "got -3"),
    (["task=quiz", "limit=0.0"], ConfigError, "got 0.0"),
    (["task=quiz", "limit=true"], SettingTypeError, r"got True \(bool\)"),
    (["task=quiz", "limit=many"], SettingTypeError, r"got 'many' \(str\)"),
    (["task=quiz", "task.quiz.limit=0"], ConfigError, "task.quiz.limit: .*got 0"),
    (["task=[]"], ConfigError, "no task is chosen"),
    (["task=headless"], ConfigError, "must be `# @package task.<name>`.*headless.yaml"),
    (["task=quiz", "samples={quizz:[1]}"], UnknownNameError, "Did you mean 'quiz'"),
    (["task=quiz", "samples=[1]"], ConfigError, r"samples=\[1\]"),
    (["task=quiz", "samples=1"], SettingTypeError, "document ids by task, got 1"),
    (["task=quiz", "gen_kwargs=1"], SettingTypeError, "gen_kwargs: expected a mapping"),
    (["task=[quiz]", "model=[]"], ConfigError, "model: needs `kind`"),
    (["task=quiz", "compat=lmeval"], ConfigError, "expected 'lm_eval', got 'lmeval'"),
    (["task=quiz", "max_failed=-1"], ConfigError, "max_failed: .*got -1"),
    (["task=quiz", "log_samples=perhaps"], SettingTypeError, "log_samples: .*got 'perhaps'"),
    (["task=quiz", "model=faceless"], ConfigError, "model.path: is needed but not given"),
    (["task=quiz", "model.path=${nowhere}"], ConfigError, "model.path: .*nowhere"),
    (["task=quiz", "task.quiz.kind=quizz"], UnknownNameError, "unknown task kind.*'quiz'"),
    (["task=quiz,essay"], ConfigError, "a sweep, which needs -m"),
    (["quiz"], ConfigError, "expected key=value"),
    (["task=quiz", "任务=1"], ConfigError, "key in ASCII letters"),
    (["task=quiz", "task.quiz.display_name=[题"], ConfigError, "check its brackets and quotes"),
    (["task=quiz", "task.quiz.unsafe_code=true"], ConfigError, "confirm_run_unsafe_code=true"),
    (["task=quiz", "task.quiz.modality=image"], ConfigError, "takes image.*talker takes text"),
    (["task=quiz", "evaluator=marks"], ConfigError, "kind essay, and quiz is of kind quiz"),
    (["task=quiz", "evaluator.marks.strict=true"], UnknownNameError, "no task names it"),
    (["task=essay", "evaluator.marks.stric=true"], UnknownNameError, "stric.*'strict'"),
    (
        ["task=essay", "task.essay.metrics=[mark]"],
        ConfigError,
        "both give 'mark'. Tell them apart: evaluator.marks.name=marks",
    ),
    (
        ["task=quiz", "task.quiz.evaluators={a:{kind:metrics},b:{kind:metrics,names:[f1]}}"],
        ConfigError,
        "both give 'the name Listed'. Tell them apart: evaluator.b.name=b",
    ),
]


@pytest.mark.parametrize(("overrides", "kind", "message"), REFUSED, ids=str)
def test_what_is_wrong_is_refused_with_its_place_and_the_next_step(
    overrides: list[str], kind: type[Exception], message: str
) -> None:
    """Each mistake is one error that names what was got and what is right."""
    with pytest.raises(kind, match=f"(?s){message}"):
        made(*overrides)


def test_a_prefix_tells_two_metrics_of_one_name_apart() -> None:
    """The advice of the error works."""
    config = made("task=essay", "task.essay.metrics=[mark]", "evaluator.marks.name=strict")

    assert {"metrics", "marks"} == set(config.evaluators["essay"])


def test_confirmation_and_a_fitting_model_lift_the_refusals() -> None:
    """Unsafe code runs where it is confirmed; images go to a model that takes them."""
    assert made("task=quiz", "task.quiz.unsafe_code=true", "confirm_run_unsafe_code=true")
    assert made("task=quiz", "model=painter", "task.quiz.modality=image")


def test_a_group_that_names_an_absent_task_is_refused() -> None:
    """A group without one of its tasks would give a number of something else."""
    with pytest.raises(UnknownNameError, match=r"task\.both\.tasks 'quizz'"):
        made("task=both", "task.both.tasks=[quizz]")


def test_broken_yaml_is_refused_with_its_file(configs: Path) -> None:  # noqa: F811
    """The reader's complaint names file and line."""
    write(configs, "task/broken", "# @package task.broken\nkind: [quiz\n")

    with pytest.raises(ConfigError, match=r"not valid YAML[\s\S]*broken\.yaml"):
        made("task=broken")


# --- search path -----------------------------------------------------------------------------


def test_folders_shadow_in_order(
    configs: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """./conf beats $XPE_CONFIG_PATH, which beats ~/.config/xpe, which beats ours."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "home/xpe", "seed/default", "random: 1\n")
    assert made("task=quiz").seed.random == 1

    write(configs, "seed/default", "random: 2\n")
    assert made("task=quiz").seed.random == 2

    write(tmp_path / "conf", "seed/default", "random: 3\n")
    assert made("task=quiz").seed.random == 3


def test_the_conf_of_another_hydra_project_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ./conf with a YAML at its top level would replace our config.yaml."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "conf", "config", "defaults: [db: x]\n")
    write(tmp_path / "conf", "seed/default", "random: 3\n")

    assert made("task=quiz").seed.random == 0


def test_a_folder_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt folder would otherwise be ignored without a word."""
    monkeypatch.setenv("XPE_CONFIG_PATH", "/no/such/folder")

    with pytest.raises(ConfigError, match="XPE_CONFIG_PATH names '/no/such/folder'"):
        made("task=capitals_en")


def test_compose_works_inside_another_hydra_app(tmp_path: Path) -> None:
    """The surrounding app's state is set aside and put back."""
    write(tmp_path / "app", "main", "a: 1\n")

    with initialize_config_dir(str(tmp_path / "app"), version_base="1.3"):
        made("task=quiz")

        assert hydra_compose("main") == {"a": 1}


# --- dump and fingerprint --------------------------------------------------------------------

ROUND_TRIPS = [
    ["task=[quiz,essay,pinned]"],
    ["task=both", "num_fewshot=5", "task.essay.num_fewshot=2", "gen_kwargs.top_k=3"],
    ["task=essay", "evaluator=[auto,marks]", "samples={essay:[1]}", "store=cache"],
    ["task=essay", "evaluator.marks.strict=true", "model.path=/数据/模型", "limit=0.25"],
]


@pytest.mark.parametrize("overrides", ROUND_TRIPS)
def test_a_dumped_config_comes_back_the_same(overrides: list[str]) -> None:
    """Through YAML too: defaults are in, kinds are written."""
    config = made(*overrides)

    text = yaml.safe_dump(dump(config), allow_unicode=True)
    back = finish(yaml.safe_load(text))

    assert config == back
    assert fingerprint(config) == fingerprint(back)
    assert yaml.safe_load(text)["model"]["kind"] == "talker"


@pytest.mark.parametrize(
    "override",
    [
        "model.device=cuda",
        "model.colour=blue",
        "stats.threads=2",
        "store=cache",
        "output=/somewhere",
        "log_samples=false",
        "fresh=true",
        "rerun=true",
        "max_failed=3",
        "task.quiz.display_name=Test",
        "data.remap={a: b}",
    ],
)
def test_what_decides_no_result_leaves_the_fingerprint(override: str) -> None:
    """A run on another device, with another name or place, is the same run."""
    assert made("task=quiz").fingerprint == made("task=quiz", override).fingerprint


@pytest.mark.parametrize(
    "override",
    [
        "model.path=elsewhere",
        "model=painter",
        "task=essay",
        "limit=3",
        "samples={quiz:[1]}",
        "num_fewshot=1",
        "seed.torch=5",
        "stats.bootstrap_iters=0",
        "compat=lm_eval",
        "predict_only=true",
        "apply_chat_template=true",
        "system_instruction=Think",
        "evaluator.metrics.names=[f1]",
    ],
)
def test_what_decides_a_result_changes_the_fingerprint(override: str) -> None:
    """Two runs that may differ never share a folder."""
    assert made("task=quiz").fingerprint != made("task=quiz", override).fingerprint


def test_the_fingerprint_is_of_the_finished_config() -> None:
    """Stating a default changes nothing, and it is twelve hex digits."""
    mark = made("task=quiz").fingerprint

    assert mark == made("task=quiz", "model.path=here", "seed.random=0").fingerprint
    assert len(mark) == 12
    int(mark, 16)


def test_a_config_without_model_or_task_is_refused() -> None:
    """From a plain dict too."""
    with pytest.raises(ConfigError, match="no model is chosen"):
        finish({"task": {"quiz": {"kind": "quiz"}}})
    with pytest.raises(ConfigError, match="no task is chosen"):
        finish({"model": {"kind": "talker"}})


def test_a_config_is_frozen() -> None:
    """Nothing changes once it is checked."""
    config: Any = made("task=quiz")

    with pytest.raises(AttributeError):
        config.limit = 3
