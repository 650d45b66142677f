"""Clocks and processors with one thing broken are caught, each as P3 says it must be."""

import pytest
from support.progress.graphs import DIAMOND as ORDER
from support.timely import broken
from support.timely.shapes import INCOMPARABLE, PAST, m, shown

from cutwater.checking import always, check_model, replay
from cutwater.semantics.timely.clock import Clock, ReachedClock, TrackedClock
from cutwater.semantics.timely.conditions import condition_1, condition_2
from cutwater.semantics.timely.model import TimelyModel
from cutwater.semantics.timely.relation import could_result_in

LATE = "nothing late"


def search(shape, inputs, clock, **options):
    model = TimelyModel(shape, inputs, clock=clock, has_outputs=True)
    claim = always(LATE, lambda point: model.late(point) is None)
    return model, check_model(model, [claim], **options)


def counterexample(shape, inputs, clock):
    """A shortest run, as short as that of a random walk after shrinking, that can be replayed."""
    model, found = search(shape, inputs, clock)
    assert not found.holds
    path = found.discoveries[LATE].path
    _, walked = search(shape, inputs, clock, search="random", walks=50, seed=1)
    shrunk = walked.discoveries[LATE].path
    assert len(shrunk) == len(path)
    again = replay(model, path.initial, path.actions)
    assert model.late(again.last) is not None
    return shown(path.actions), model.late(again.last)


def twice(shape):
    """A node that answers each time once, when it is complete, has answered one twice."""
    out = shape.edge_number["out"]
    return always(
        "once",
        lambda p: len(set(p.configuration.queues[out])) == len(p.configuration.queues[out]),
    )


JOIN = (broken.LONG_JOIN, {"in": m(0), "other": m(0, 0)})
DIAMOND = (INCOMPARABLE, {"in": m(*ORDER[1:3], ORDER[1])})

# clock, shape, and the shortest run that ends with an answer given twice
CLOCKS = [
    (broken.WithoutRequests, JOIN, "in, other, other, both@0, count@0, counts, relayed, both@0"),
    (broken.WithoutMessages, JOIN, "other, both@0, other, both@0"),
    (broken.WithoutInputs, JOIN, "other, both@0, other, both@0"),
    (broken.NotClosed, JOIN, "in, other, other, count@0, both@0, counts, relayed, both@0"),
    (broken.OneNodeFurther, JOIN, "in, other, other, both@0, count@0, counts, relayed, both@0"),
    (broken.Strictly, JOIN, "other, both@0, other, both@0"),
    (broken.OneEdge, JOIN, "in, count@0, counts, relayed, both@0, other, both@0"),
    (broken.AsIfTotal, DIAMOND, "in, in, count@t1, in, counts, count@t1, counts"),
]


@pytest.mark.parametrize(
    ("clock", "case", "run"), CLOCKS, ids=[case[0].__name__ for case in CLOCKS]
)
def test_a_broken_clock_is_caught_by_a_run(clock, case, run):
    shape, inputs = case
    counterexample(shape, inputs, clock(shape, could_result_in(shape)))
    model = TimelyModel(shape, inputs, clock=clock(shape, could_result_in(shape)))
    found = check_model(model, [twice(shape)])
    assert shown(found.discoveries["once"].path.actions) == run


@pytest.mark.parametrize("case", [JOIN, DIAMOND], ids=["join", "diamond"])
def test_with_the_papers_clock_no_answer_is_given_twice(case):
    shape, inputs = case
    model, found = search(shape, inputs, Clock(shape, could_result_in(shape)))
    assert found.holds
    found = check_model(model, [twice(shape)])
    assert (found.holds, found.is_exhaustive) == (True, True)


@pytest.mark.parametrize(
    ("shape", "run"),
    [
        (broken.ASKS_ON_MESSAGES, "in, ask@1"),
        (broken.ASKS_ON_NOTIFICATIONS, "in, ask@2, ask@1"),
    ],
    ids=["on messages", "on notifications"],
)
def test_a_violation_of_condition_1_is_named_and_shown_by_a_run(shape, run):
    [past] = condition_1(shape)
    assert past.node == "ask"
    relation = could_result_in(shape)
    assert condition_2(shape, relation) == []
    found, late = counterexample(shape, {"in": m(2)}, Clock(shape, relation))
    assert found == run
    assert late.edge == "out"


@pytest.mark.parametrize(
    ("shape", "inputs", "path", "sender", "run"),
    [
        (PAST, m(2), "work there again back", "again", "in, there, back"),
        (broken.LONG_LOOP, m(1), "a ab b bc c ca", "c", "in, ab, bc, ca"),
    ],
    ids=["loop", "long loop"],
)
def test_a_violation_of_condition_2_shows_as_path_as_triple_and_as_run(
    shape, inputs, path, sender, run
):
    """As a run only against the clock of Proposition 3's formula."""
    relation = could_result_in(shape)
    past = condition_2(shape, relation)
    assert " ".join(past[-1].path) == path
    assert {violation.sender for violation in past} == {sender}
    a, b, c = relation.intransitive
    assert relation(a, b)
    assert relation(b, c)
    assert not relation(a, c)
    found, _ = counterexample(shape, {"in": inputs}, ReachedClock(shape, relation))
    assert found == run
    _, closed = search(shape, {"in": inputs}, Clock(shape, relation))
    assert (closed.holds, closed.is_exhaustive) == (True, True)


def test_a_processor_that_does_not_keep_to_its_summaries_is_caught_with_the_tracker():
    """P3's own clock is computed from what it does, and holds."""
    shape = broken.KEEPS_TO_NO_SUMMARY
    found, late = counterexample(shape, {"in": m(0, 2)}, TrackedClock(shape))
    assert found == "in, -out, in"
    assert (late.message.time, late.left) == (0, 0)
    _, exact = search(shape, {"in": m(0, 2)}, Clock(shape, could_result_in(shape)))
    assert exact.holds
