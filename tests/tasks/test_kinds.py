from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from xpe.errors import DataError
from xpe.tasks.choices import choice_id
from xpe.tasks.generation import Generation, generate_settings
from xpe.tasks.loglikelihood import LogLikelihoodTask
from xpe.tasks.multiple_choice import MultipleChoice
from xpe.tasks.perplexity import Perplexity
from xpe.types import Answer, Generate, Generated, LogLikelihood, Rolling, Scored

Write = Callable[..., str]
ROW = {"q": "1+1?", "c": ["one", "two"], "gold": 1, "a": "two", "p": "It is"}


@pytest.fixture
def make(rows_file: Write) -> Callable[..., Any]:
    """Build a task over one row, or those given."""

    def build(cls: Any, rows: list[dict[str, Any]] | None = None, **settings: Any) -> Any:
        return cls(name="t", data={"path": rows_file(rows or [ROW])}, **settings)

    return build


def choice(make: Any, rows: list[dict[str, Any]] | None = None, **settings: Any) -> Any:
    stated = {"doc_to_text": "Q: {{ q }}\nA:", "doc_to_choice": "c", "doc_to_target": "gold"}
    return make(MultipleChoice, rows, **(stated | settings))


def requests(task: Any) -> tuple[Any, ...]:
    return task.requests(task.samples()[0])


def test_multiple_choice_is_one_request_for_all_choices(make: Any) -> None:
    """The delimiter belongs to the continuations; the reference names choices by letters."""
    task = choice(make)
    task.check()
    sample = task.samples()[0]
    assert task.requests(sample) == (LogLikelihood("Q: 1+1?\nA:", (" one", " two")),)
    assert sample.target == 1
    assert sample.reference == {
        "answer": {"type": "choice", "value": "B"},
        "choices": [{"id": "A", "text": "one"}, {"id": "B", "text": "two"}],
    }


@pytest.mark.parametrize("target", ["a", "{{ gold }}", "{{ a }}", "{{ [gold] }}"])
def test_gold_by_index_by_text_and_in_a_list(target: str, make: Any) -> None:
    """All of them are the second choice."""
    sample = choice(make, doc_to_target=target).samples()[0]
    assert sample.reference["answer"]["value"] == "B"
    assert sample.target in (1, [1])


def test_several_golds(make: Any) -> None:
    """All are in the reference; the first is its value."""
    sample = choice(make, doc_to_target="{{ [1, 0] }}").samples()[0]
    assert sample.target == [1, 0]
    assert sample.reference["answer"] == {"type": "choice", "value": "B", "values": ["B", "A"]}


def test_mutual_information_asks_without_the_question(make: Any) -> None:
    """A second request has the same continuations after nothing."""
    first, second = requests(choice(make, metrics=("acc", {"metric": "acc_mutual_info"})))
    assert second == LogLikelihood("", first.continuations)


def test_questions_that_are_the_choices(make: Any) -> None:
    """Where the question is an index, each choice is a context for the same continuation."""
    task = choice(make, doc_to_text="gold", doc_to_target="a")
    assert task.samples()[0].target == 1
    assert requests(task) == (LogLikelihood("one", (" two",)), LogLikelihood("two", (" two",)))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"gold": 2}, "gold index 2 is out of range for 2 choices"),
        ({"gold": -1}, "gold index -1 is out of range"),
        ({"gold": "three"}, "gold 'three' is none of the choices"),
        ({"gold": None}, "gold is None"),
        ({"gold": []}, "empty list"),
        ({"c": ["one", "one"]}, "given twice"),
        ({"c": ["one", ""]}, "an empty choice"),
        ({"c": ["one"]}, "expected at least 2"),
        ({"c": "AB"}, "expected a list of choices"),
    ],
)
def test_wrong_golds_and_choices_are_found_by_check(
    row: dict[str, Any], message: str, make: Any
) -> None:
    """The message names file and line of the document."""
    task = choice(make, [ROW, ROW | row])
    with pytest.raises(DataError, match=f"rows.jsonl, line 2: .*{message}"):
        task.check()


def test_in_compat_mode_a_gold_that_is_no_choice_is_minus_hundred(make: Any) -> None:
    """Such a document scores 0 in the harness; a doubled choice does not trouble it."""
    rows = [ROW, ROW | {"gold": 7}, ROW | {"gold": "x", "c": ["one", "one"]}]
    task = choice(make, rows, compat="lm_eval")
    task.check()
    assert [sample.target for sample in task.samples()] == [1, -100, -100]


def test_ids_of_choices() -> None:
    """Letters, then pairs of letters, as spreadsheets count."""
    assert [choice_id(i) for i in (0, 25, 26, 27, 701, 702)] == ["A", "Z", "AA", "AB", "ZZ", "AAA"]


def test_a_dialogue_asks_once_and_answers(make: Any) -> None:
    """The test plays the model."""
    task = choice(make)
    sample = task.samples()[0]
    talk = task.dialogue(sample)
    (request,) = next(talk)
    reply = Scored((-1.0, -2.0), (True, False), (1, 1))
    with pytest.raises(StopIteration) as end:
        talk.send((reply,))
    answer = end.value.value
    assert isinstance(answer, Answer)
    assert (answer.exchanges[0].request, answer.scored) == (request, (reply,))


def test_generation_asks_each_repeat(make: Any) -> None:
    """Repeats are equal requests; whoever asks them gives each its seed."""
    task = make(
        Generation,
        doc_to_text="q",
        doc_to_target="a",
        repeats=2,
        generation_kwargs={"until": "\n", "max_new_tokens": 8, "temperature": 0.7, "min_p": 0.1},
    )
    request = Generate("1+1?", max_tokens=8, stop=("\n",), temperature=0.7, extra={"min_p": 0.1})
    assert requests(task) == (request, request)
    talk = task.dialogue(task.samples()[0])
    assert len(next(talk)) == 2
    with pytest.raises(StopIteration) as end:
        talk.send((Generated("a"), Generated("b")))
    assert [reply.text for reply in end.value.value.generated] == ["a", "b"]


def test_generation_stops_at_the_next_example_unless_told(make: Any) -> None:
    """The default stop string is the delimiter of examples; null means none."""
    plain = make(Generation, doc_to_text="q", doc_to_target="a", fewshot_delimiter="\n#\n")
    assert requests(plain)[0].stop == ("\n#\n",)
    without = make(
        Generation, doc_to_text="q", doc_to_target="a", generation_kwargs={"until": None}
    )
    assert requests(without)[0].stop == ()


@pytest.mark.shared
def test_generation_settings_as_the_harness(harness_cases: Any) -> None:
    """Token limit by alias, and greedy decoding, as the harness reads them."""
    for case in harness_cases("normalize_gen_kwargs"):
        given, wanted = case["args"][0], case["expect"]
        if given.get("until") == [None]:
            continue
        settings = generate_settings(given)
        assert settings["max_tokens"] == wanted["max_gen_toks"]
        assert settings["stop"] == tuple(stop for stop in wanted["until"] if stop is not None)
        assert settings["temperature"] == wanted.get("temperature", 0.0)
        assert settings["top_p"] == wanted.get("top_p", 1.0)
        assert settings["top_k"] == wanted.get("top_k", 0)
        assert settings["extra"] == {}


def test_several_token_limits_count_by_priority_in_compat_mode(make: Any) -> None:
    """The harness takes the first name of its list, whatever the order they are given in."""
    kwargs = {"max_tokens": 9, "max_gen_toks": 8}
    task = make(
        Generation, doc_to_text="q", doc_to_target="a", compat="lm_eval", generation_kwargs=kwargs
    )
    assert requests(task)[0].max_tokens == 8


def test_sampling_without_a_temperature_is_at_one() -> None:
    """`do_sample: true` alone means what it means to transformers."""
    assert generate_settings({"do_sample": True})["temperature"] == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_gen_toks": 0},
        {"max_gen_toks": "8"},
        {"temperature": -1},
        {"top_p": 0},
        {"until": [""]},
        {"until": [3]},
        {"until": 3},
        {"max_gen_toks": 8, "max_tokens": 9},
    ],
)
def test_impossible_settings_of_generation(wrong: dict[str, Any], make: Any) -> None:
    """They are found when the task is built."""
    with pytest.raises(ValueError, match="generation_kwargs"):
        make(Generation, doc_to_text="q", doc_to_target="a", generation_kwargs=wrong)


@pytest.mark.parametrize(
    ("settings", "reference"),
    [
        ({"doc_to_target": "a"}, {"type": "text", "value": "two"}),
        ({"doc_to_target": "gold"}, {"type": "number", "value": "1"}),
        ({"doc_to_target": "a", "answer_type": "syndrome"}, {"type": "syndrome", "value": "two"}),
        ({"doc_to_target": "a", "answer_type": "{{ q }}"}, {"type": "1+1?", "value": "two"}),
        ({"doc_to_target": "c"}, {"type": "text", "value": "one", "values": ["one", "two"]}),
    ],
)
def test_references_of_free_answers(
    settings: dict[str, Any], reference: dict[str, Any], make: Any
) -> None:
    """The type is stated, or seen from the target; further targets are kept."""
    task = make(Generation, doc_to_text="q", **settings)
    assert task.samples()[0].reference == {"answer": reference}


@pytest.mark.parametrize(("typed", "meant"), [("numbr", "number"), ("Text", "text")])
def test_a_misspelt_answer_type_is_told(typed: str, meant: str, make: Any) -> None:
    """It would be compared as text; a name that is like none of ours may be a plugin's."""
    with pytest.raises(DataError, match=f"answer_type is '{typed}'. Did you mean '{meant}'"):
        make(Generation, doc_to_text="q", doc_to_target="a", answer_type=typed).samples()
    own = make(Generation, doc_to_text="q", doc_to_target="a", answer_type="formula").samples()[0]
    assert own.reference["answer"]["type"] == "formula"


def test_generation_over_choices(make: Any) -> None:
    """The target is the text of the choice, the reference its letter."""
    sample = make(Generation, doc_to_text="q", doc_to_target="gold", doc_to_choice="c").samples()[0]
    assert sample.target == "two"
    assert sample.reference["answer"] == {"type": "choice", "value": "B"}
    assert [c["id"] for c in sample.reference["choices"]] == ["A", "B"]


def test_loglikelihood_adds_no_delimiter(make: Any) -> None:
    """The target follows the context as it is."""
    task = make(LogLikelihoodTask, doc_to_text="q", doc_to_target=" {{ a }}")
    assert requests(task) == (LogLikelihood("1+1?", (" two",)),)


def test_perplexity_asks_for_the_whole_text(make: Any) -> None:
    """No question, no examples."""
    task = make(Perplexity, doc_to_target="q", num_fewshot=5)
    task.check()
    assert requests(task) == (Rolling("1+1?"),)


def test_plain_prompt_holds_system_description_examples_question_and_prefix(make: Any) -> None:
    """System text and description are joined; nothing follows them but what they bring."""
    task = make(
        Generation,
        [ROW, {**ROW, "q": "2+2?", "a": "four"}],
        doc_to_text="q",
        doc_to_target="a",
        system_instruction="Be brief.",
        description="Sums.\n\n",
        gen_prefix="p",
        num_fewshot=1,
    )
    assert requests(task)[0].prompt == ("Be brief.\n\nSums.\n\n2+2? It is four\n\n1+1? It is")


@pytest.mark.parametrize("multiturn", [True, False])
def test_chat_messages(multiturn: bool, make: Any) -> None:
    """Examples are turns or one user message; a prefix is the begun answer of the assistant."""
    task = choice(
        make,
        [ROW, {**ROW, "q": "2+2?", "c": ["four", "five"], "gold": 0}],
        doc_to_text="q",
        chat=True,
        fewshot_as_multiturn=multiturn,
        system_instruction="Be brief.",
        gen_prefix="It is",
        num_fewshot=1,
    )
    (request,) = requests(task)
    between = (
        [
            {"role": "user", "content": "2+2?"},
            {"role": "assistant", "content": "It is four"},
            {"role": "user", "content": "1+1?"},
        ]
        if multiturn
        else [{"role": "user", "content": "2+2? It is four\n\n1+1?"}]
    )
    assert request.context == (
        {"role": "system", "content": "Be brief."},
        *between,
        {"role": "assistant", "content": "It is"},
    )
    assert request.continuations == (" one", " two")


def test_chat_continuations_have_no_delimiter(make: Any) -> None:
    """The template ends the prompt; only a begun answer needs the delimiter."""
    assert requests(choice(make, chat=True))[0].continuations == ("one", "two")


def test_clusters_are_a_field(make: Any) -> None:
    """Samples that share chance say so."""
    assert choice(make, cluster="q").samples()[0].cluster == "1+1?"


@pytest.mark.parametrize("lacking", ["doc_to_text", "doc_to_target", "doc_to_choice"])
def test_a_kind_needs_its_templates(lacking: str, make: Any) -> None:
    """Found when the task is built."""
    with pytest.raises(ValueError, match=f"kind multiple_choice needs {lacking}"):
        choice(make, **{lacking: None})


def test_samples_are_loaded_once(make: Any) -> None:
    """The data is read once, and the digest covers the pool where it is used."""
    task = choice(make, [ROW, {**ROW, "q": "?"}], limit=1)
    assert task.samples() is task.samples()
    assert (task.n_original, len(task.samples())) == (2, 1)
    assert task.digest == task.documents.digest != choice(make, num_fewshot=1).digest
