"""Dialogues: every request reaches who it names, every reply its dialogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from players import BatchedModel, Silent, StreamingModel, ToyTask

from xpe.converse import converse
from xpe.errors import EngineError, UnknownNameError
from xpe.store import waves
from xpe.types import Answer, Asked, Exchange, Failure, Generate, Model, Reply, Sample, Scored


def talk(task: ToyTask, models: dict[str, Model]) -> list[Answer]:
    talks = ((one, task.dialogue(one)) for one in task.samples())
    return list(converse(talks, models, torch_seed=1234, replied=Silent().replied))


def test_every_turn_gets_its_replies() -> None:
    """Each of 3 turns of 2 repeats is answered in the order in which it was asked."""
    answers = talk(ToyTask(n=4, turns=3, repeats=2), {"model": StreamingModel()})

    assert [answer.sample.doc_id for answer in answers] == [0, 1, 2, 3]
    assert [e.request.prompt for e in answers[2].exchanges] == [  # type: ignore[union-attr]
        f"2:{turn}:{repeat}" for turn in range(3) for repeat in range(2)
    ]


def test_a_dialogue_that_asks_nothing_has_an_answer() -> None:
    """Also where it is the last, and no reply comes after it."""

    class Quiet(ToyTask):
        def dialogue(self, one: Sample):
            if one.doc_id % 2:
                return (yield from super().dialogue(one))
            yield ()
            return Answer(one, ())

    for model in (StreamingModel(), Hungry()):
        answers = talk(Quiet(n=5), {"model": model})
        assert sorted(answer.sample.doc_id for answer in answers) == [0, 1, 2, 3, 4]


class Hungry(BatchedModel):
    """Pulls all that can be asked before it answers, and remembers the sizes of its waves."""

    def reply(self, asked: Iterable[Asked | None]) -> Iterator[tuple[Asked, Reply] | None]:
        self.waves = []
        for wave in waves(asked):
            self.waves.append(len(wave))
            yield from ((one, self.answer(one)) for one in wave)


def test_first_wave_holds_all_samples() -> None:
    """A model that plans batches sees the first request of every sample in one wave."""
    model = Hungry()
    talk(ToyTask(n=7, turns=2), {"model": model})

    assert model.waves[0] == 7
    assert sum(model.waves) == 14


def test_streaming_model_is_not_flooded() -> None:
    """Dialogues start only as the model pulls: memory does not grow with the task."""
    started: list[int] = []

    class Lazy(ToyTask):
        def dialogue(self, one: Sample):
            started.append(one.doc_id)
            return super().dialogue(one)

    task = Lazy(n=100)
    talks = ((one, task.dialogue(one)) for one in task.samples())
    stream = converse(talks, {"model": StreamingModel()}, torch_seed=0, replied=Silent().replied)
    next(stream)

    assert len(started) <= 2


class Judged(ToyTask):
    """Asks the model, then a judge."""

    def dialogue(self, one: Sample):
        answer = yield from super().dialogue(one)
        request = Generate("judge " + answer.exchanges[0].reply.text, to="judge")
        (reply,) = yield (request,)
        return Answer(one, (*answer.exchanges, Exchange(request, reply)))


@pytest.mark.parametrize("model", [StreamingModel, BatchedModel, Hungry])
@pytest.mark.parametrize("judge", [StreamingModel, BatchedModel, Hungry])
def test_requests_go_to_whom_they_name(model, judge) -> None:
    """A judge is asked what is addressed to it, whichever way either side pulls."""
    parts = {"model": model(), "judge": judge()}
    answers = talk(Judged(n=5), parts)

    assert len(answers) == 5
    assert [len(part.asked) for part in parts.values()] == [5, 5]
    assert {one.request.to for one in parts["judge"].asked} == {"judge"}


def test_unknown_addressee_is_named() -> None:
    """A request for somebody who takes no part is an error that lists who does."""
    with pytest.raises(UnknownNameError, match=r"'judge'.*Known: model"):
        talk(Judged(n=1), {"model": StreamingModel()})


def test_sampled_requests_get_seeds_of_their_own() -> None:
    """Seeds depend on document, turn and repeat, not on what else runs; greedy has none."""
    few, many, greedy = StreamingModel(), StreamingModel(), StreamingModel()
    talk(ToyTask(n=2, turns=2, repeats=3, temperature=1.0), {"model": few})
    talk(ToyTask(n=5, turns=2, repeats=3, temperature=1.0), {"model": many})
    talk(ToyTask(n=2), {"model": greedy})
    seeds = {one.origin: one.request.seed for one in few.asked}

    assert len(set(seeds.values())) == 12
    assert seeds.items() <= {one.origin: one.request.seed for one in many.asked}.items()
    assert {one.request.seed for one in greedy.asked} == {None}


def test_model_that_stops_early_is_an_error() -> None:
    """A model that ends without answering all is reported, not passed over."""

    class Quitter(StreamingModel):
        def reply(self, asked):
            for one in asked:
                yield one, self.answer(one)
                next(asked)
                return

    with pytest.raises(EngineError, match="left without a reply"):
        talk(ToyTask(n=3), {"model": Quitter()})


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_log_likelihoods_that_are_no_numbers_are_failures(value: float) -> None:
    """Weights that overflow answer nothing: such a sample failed, it is not wrong."""

    class Overflown(StreamingModel):
        def answer(self, asked: Asked) -> Reply:
            return Scored((-1.0, value), (False, False), (1, 1))

    (answer,) = talk(ToyTask(n=1), {"model": Overflown()})

    (failure,) = (exchange.reply for exchange in answer.exchanges)
    assert isinstance(failure, Failure)
    assert failure.kind == "not_finite"
    assert str(value) in failure.message
