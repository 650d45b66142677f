"""The paper's own example: Listing 1, run as in Fig. 10."""

import pytest

from cutwater.checking import explain, explainable, failure_transparency, monotonicity, without
from cutwater.semantics.barrier_model import (
    BarrierModel,
    Fail,
    Point,
    Recover,
    TakeBarrier,
    TakeEvent,
    is_failure,
)
from cutwater.semantics.barriers import FAILED, EventContent, Message, Task, initial_configuration
from cutwater.semantics.recording import record
from cutwater.semantics.wellformed import checked_configuration, graph_of


def average(state, word):
    """The function of Listing 1; its state is the sum and the count."""
    if word == "Reset":
        return (0, 0), []
    total, count = state[0] + word, state[1] + 1
    return (total, count), [total / count]


def shown(value):
    total, count = value
    return total / count if count else 0


@pytest.fixture
def initial():
    task = Task("average", average, ("ints", "reset"), "avgs", (0, 0))
    return checked_configuration(
        initial_configuration(graph_of([task]), {"ints": [[1], [3, 5]], "reset": [[], ["Reset"]]})
    )


def take(stream, n, epoch, word):
    return TakeEvent("average", Message(n, stream, epoch, EventContent(word)))


E1, E3, E5 = take("ints", 0, 1, 1), take("ints", 2, 2, 3), take("ints", 3, 2, 5)
RESET = take("reset", 1, 2, "Reset")
BARRIER = TakeBarrier("average")
WITH_FAILURE = [E1, BARRIER, E3, Fail("average"), Recover(), RESET, E3, E5, BARRIER]
FAILURE_FREE = [E1, BARRIER, RESET, E3, E5, BARRIER]


def run(initial, moves):
    model = BarrierModel(initial, crashes=1)
    points = [Point(initial, 1)]
    for move in moves:
        assert move in model.actions(points[-1])
        points.append(model.step(points[-1], move))
    return points


def live(point):
    volatile = point.configuration.states[0].volatile
    return "failed" if volatile is FAILED else shown(volatile.value)


def archive(point):
    return {epoch: shown(value) for epoch, value in point.configuration.states[0].archive}


def observe(point):
    return point.configuration.states[0].archive


def test_the_states_and_snapshots_of_the_run_with_a_failure(initial):
    points = run(initial, WITH_FAILURE)
    assert [live(point) for point in points] == [0, 1, 1, 2, "failed", 1, 0, 3, 4, 4]
    a0, a1, a2 = {0: 0}, {0: 0, 1: 1}, {0: 0, 1: 1, 2: 4}
    assert [archive(point) for point in points] == [a0, a0, a1, a1, a1, a1, a1, a1, a1, a2]


def test_the_run_without_a_failure_shows_the_same_archives(initial):
    with_failure, failure_free = run(initial, WITH_FAILURE), run(initial, FAILURE_FREE)
    assert [live(point) for point in failure_free] == [0, 1, 1, 0, 3, 4, 4]
    changes = [
        list(dict.fromkeys(observe(point) for point in points))
        for points in (with_failure, failure_free)
    ]
    assert changes[0] == changes[1]
    assert len(changes[0]) == 3


def test_the_averages_that_are_sent(initial):
    (*_, last) = run(initial, WITH_FAILURE)
    sent = sorted(last.configuration.messages.on("avgs"), key=lambda m: m.n)
    words = [m.content.payload if isinstance(m.content, EventContent) else "barrier" for m in sent]
    assert words == [1, "barrier", 3, 4, "barrier"]
    assert [m.epoch for m in sent] == [1, 1, 2, 2, 2]


def test_the_run_is_explained_by_the_failure_free_one(initial):
    found = explain(record(initial, WITH_FAILURE))
    assert found.holds
    assert [WITH_FAILURE[i] for i in found.kept] == FAILURE_FREE
    assert found.mapping == (0, 0, 2, 2, 2, 2, 2, 2, 2, 6)
    assert [(g.start, g.stop, g.epoch) for g in found.generations] == [(0, 5, 1), (5, 9, 2)]


def test_the_archive_can_be_observed(initial):
    """With one task it is monotone, and every run is explained by what it shows."""
    model = BarrierModel(initial, crashes=2)
    failure_free = without(model, is_failure)
    assert monotonicity(model, observe).holds
    found = failure_transparency(model, failure_free, observe=observe)
    assert found.holds
    assert found.checked.is_exhaustive
    assert not found.checked.is_reduced  # it is no function of the output
    assert explainable(failure_free, model, observe=observe, observe_other=observe).holds


def test_the_live_state_cannot(initial):
    """The average goes back with the recovery, as in the figure."""
    model = BarrierModel(initial, crashes=1)
    found = monotonicity(model, lambda point: point.configuration.states[0].volatile)
    assert not found.holds
    assert found.counterexample.actions[-1] == Recover()
