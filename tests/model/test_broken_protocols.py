"""The protocol with one thing broken is rejected, with the shortest run that shows it."""

import pytest
from support.models import broken
from support.models.shapes import (
    DIAMOND,
    ONE,
    PIPELINE,
    SHORT_PIPELINE,
    TWO_SOURCES,
    TWO_SOURCES_TWO_TASKS,
    shown,
    start,
)

from cutwater.checking import check_model, eventually, failure_transparency, monotonicity, replay
from cutwater.errors import InputError
from cutwater.semantics.barrier_model import BarrierModel, Barriers, Recover, fairness, is_failure
from cutwater.semantics.barriers import greatest_common_epoch

SHAPES = {
    "one task": (ONE, {"x": [[1], [2]]}),
    "short pipeline": (SHORT_PIPELINE, {"x": [[1], [2]]}),
    "pipeline": (PIPELINE, {"x": [[1], [2]]}),
    "diamond": (DIAMOND, {"x": [[1], [2]]}),
    "two sources": (TWO_SOURCES, {"x": [[1], [2]], "y": [[3], [4]]}),
    "two sources, two tasks": (TWO_SOURCES_TWO_TASKS, {"x": [[1], [2]], "y": [[3], []]}),
}


def model_of(shape, protocol, crashes=2):
    tasks, inputs = SHAPES[shape]
    return BarrierModel(start(tasks, **inputs), crashes=crashes, protocol=protocol())


def explained(model, other=None, **options):
    return failure_transparency(model, other or model.failure_free(), **options)


# protocol, shape, and the shortest run that nothing explains
REJECTED = [
    # a snapshot before any event: the recovery takes the first epoch for read
    ("a", "short pipeline", "a barrier, b barrier, a fails, recovery, a takes x2=2, a barrier, "
     "b barrier"),
    ("a", "pipeline", "a barrier, b barrier, c barrier, a fails, recovery, a takes x2=2, "
     "a barrier, b barrier, c barrier"),
    # y0 was to be taken after the barrier, and is not taken any more
    ("b", "two sources", "a takes x0=1, a barrier, a fails, recovery, a takes y2=4, a barrier"),
    # what was sent before the crash stands beside what is sent after it
    ("c", "two sources", "a takes x0=1, a fails, recovery, a takes y0=3, a takes x0=1, a barrier"),
    # an epoch that is not common is in the value, and comes again
    ("d", "pipeline", "a takes x0=1, a barrier, a fails, recovery, a takes x0=1, a barrier, "
     "b takes p0=(11), b barrier, c takes q0=((11)), c barrier"),
    # the event counts as read, and its output is lost
    ("e", "one task", "a takes x0=1, a fails, recovery, a barrier"),
    ("g, hidden counter", "one task", "a takes x0=1, a fails, recovery, a takes x0=1, a barrier"),
    ("g, shared snapshot", "one task", "a takes x0=1, a fails, recovery, a takes x0=1, a barrier"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("letter", "shape", "expected"), REJECTED, ids=[f"{r[0]} on {r[1]}" for r in REJECTED]
)
def test_it_is_rejected_with_a_shortest_counterexample(letter, shape, expected):
    model = model_of(shape, broken.UNSAFE[letter], crashes=1)
    for reduce in (True, False):
        found = explained(model, reduce=reduce)
        assert not found.holds
        path = found.counterexample
        assert ", ".join(shown(path.actions)) == expected
        assert sum(map(is_failure, path.actions)) == 1
        assert_no_action_can_be_left_out(model, path)


def assert_no_action_can_be_left_out(model, path):
    """Whatever is left out, the rest is no run, or one that is explained."""
    other = model.failure_free()
    for i in range(len(path)):
        shorter = (*path.actions[:i], *path.actions[i + 1 :])
        try:
            rest = replay(model, path.initial, shorter)
        except InputError:
            continue
        assert explained(Line(model, rest), other).holds


class Line:
    """The one run of a path, as a model."""

    def __init__(self, model, path):
        self.path, self.observe = path, model.observation

    def initial_states(self):
        return [0]

    def actions(self, at):
        return [at] if at < len(self.path) else []

    def step(self, at, action):
        return at + 1

    def observation(self, at):
        return self.observe(self.path.states[at])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("letter", broken.UNSAFE)
def test_reduced_or_not_the_verdict_is_the_same(letter, shape):
    if (letter, shape) == ("a", "diamond"):
        return  # tens of thousands of states
    model = model_of(shape, broken.UNSAFE[letter], crashes=1)
    verdicts = [explained(model, reduce=reduce).holds for reduce in (True, False)]
    assert verdicts[0] == verdicts[1]
    is_right = (letter, shape) in FINE
    assert verdicts[0] == is_right


# what is broken does not show on these
FINE = {
    *((letter, shape) for letter in "b" for shape in ("one task", "short pipeline", "pipeline")),
    *(("c", shape) for shape in ("one task", "short pipeline", "pipeline", "diamond")),
    *(("d", shape) for shape in ("one task", "two sources")),  # one task: the newest is common
}


@pytest.mark.parametrize("shape", ["short pipeline", "pipeline"])
def test_keeping_messages_on_a_pipeline_is_no_violation(shape):
    """(c) The same messages are made again, and a set has them once."""
    found = explained(model_of(shape, broken.KeepsMessages, crashes=2))
    assert found.holds
    assert found.checked.is_exhaustive


@pytest.mark.parametrize("shape", SHAPES)
def test_an_observer_that_sees_every_message_at_once_is_not_monotone(shape):
    """(f) Definition 5.3; the counterexample ends with the recovery that takes a message back."""
    model = model_of(shape, Barriers, crashes=1)

    def observe(point):
        return frozenset(m for m in point.configuration.messages if m.stream == "z")

    for order in (None, frozenset.issubset):
        found = monotonicity(model, observe, order=order)
        assert not found.holds
        path = found.counterexample
        assert path.actions[-1] == Recover()
        assert observe(path.states[-2]) > observe(path.last)
        assert sum(map(is_failure, path.actions)) == 1


def test_the_counterexample_of_the_impatient_observer():
    found = monotonicity(
        model_of("pipeline", Barriers, crashes=2),
        lambda point: frozenset(m for m in point.configuration.messages if m.stream == "z"),
    )
    assert ", ".join(shown(found.counterexample.actions)) == (
        "a takes x0=1, b takes p0=(1), c takes q0=((1)), a fails, recovery"
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_observed_of_the_protocol_is_monotone(shape):
    """Definition 5.3 of out, by inclusion and by never going back."""
    model = model_of(shape, Barriers, crashes=1)
    for order in (None, frozenset.issubset):
        found = monotonicity(model, model.observation, order=order)
        assert found.holds
        assert found.checked.is_exhaustive


def committed(epoch):
    return lambda point: greatest_common_epoch(point.configuration) >= epoch


def all_epochs(model):
    return [
        eventually(f"epoch {epoch} is committed", committed(epoch), fair=fairness, rare=is_failure)
        for epoch in (1, 2)
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_theorem_6_10_every_epoch_is_committed_in_the_end(shape):
    model = model_of(shape, Barriers, crashes=2 if shape != "diamond" else 1)
    found = check_model(model, all_epochs(model))
    assert found.holds
    assert found.is_exhaustive
    assert not found.is_reduced


@pytest.mark.parametrize("shape", SHAPES)
def test_a_protocol_that_only_gets_stuck_is_transparent_and_not_live(shape):
    """Nothing wrong is ever shown, so safety cannot tell; the last state says where it stops."""
    model = model_of(shape, broken.ForgetsInputs, crashes=1)
    assert explained(model).holds
    assert explained(model, reduce=False).holds
    claims = all_epochs(model)
    found = check_model(model, claims)
    assert [found.verdict(claim) for claim in claims] == [
        "does not hold: there is a counterexample"
    ] * 2
    path = found.discoveries["epoch 1 is committed"].path
    assert shown(path.actions)[-2:] == ["a fails", "recovery"]
    assert path.loop is None
    assert not [move for move in model.actions(path.last) if fairness(move) is not None]
    assert replay(model, path.initial, path.actions).last == path.last


def test_a_starved_task_is_caught():
    model = model_of("pipeline", broken.StarvesTheLast, crashes=0)
    assert explained(model).holds
    claims = all_epochs(model)
    found = check_model(model, claims)
    assert not found.holds
    path = found.discoveries["epoch 1 is committed"].path
    assert model.actions(path.last) == []


def test_a_fair_execution_exists():
    """As printed, B.12 admits none; here one ends where no fair action is possible."""
    model = model_of("pipeline", Barriers, crashes=1)
    never = eventually("never", lambda point: False, fair=fairness, rare=is_failure)
    path = check_model(model, [never]).discoveries["never"].path
    assert greatest_common_epoch(path.last.configuration) == 2
    # crashes are still possible there, and nobody is owed one
    assert all(is_failure(move) for move in model.actions(path.last))


def test_without_fairness_nothing_is_promised():
    """A run may stop anywhere if no action is owed."""
    model = model_of("one task", Barriers, crashes=0)
    claim = eventually("committed", committed(1), fair=lambda move: None)
    path = check_model(model, [claim]).discoveries["committed"].path
    assert len(path) == 0
