"""P3's specification explored whole: pinned counts, Propositions 7 to 9 and Theorem 2."""

from dataclasses import replace
from itertools import product
from random import Random

import pytest
from support.progress.graphs import DIAMOND
from support.timely import paper
from support.timely.shapes import (
    DOMAINS,
    INCOMPARABLE,
    LOOP,
    PAST,
    PIPELINE,
    SHAPES,
    WAITING_FOR_ITSELF,
    collect,
    dataflow,
    m,
    rounds,
    shown,
    transitions,
)

from cutwater.checking import always, check_model, sometimes
from cutwater.errors import FlowError
from cutwater.progress import Edge
from cutwater.semantics.timely.clock import Clock, TrackedClock
from cutwater.semantics.timely.conditions import condition_1, condition_2
from cutwater.semantics.timely.dataflow import History, Message, Notified, Received, local_result
from cutwater.semantics.timely.model import Input, Notify, Receive, TimelyModel
from cutwater.semantics.timely.relation import could_result_in

RELATIONS = {name: could_result_in(shape) for name, (shape, _) in SHAPES.items()}


def model_of(name, **options):
    shape, inputs = SHAPES[name]
    clock = options.pop("clock", None) or Clock(shape, RELATIONS[name])
    return TimelyModel(shape, inputs, clock=clock, **options)


def theorem_2(model):
    return always("nothing late", lambda point: model.late(point) is None)


# states in the order of queues, with reorderings, and with Outp
COUNTS = {
    "pipeline": (86, 90, 132),
    "join": (24, 33, 31),
    "incomparable": (64, 67, 115),
    "loop": (14, 14, 31),
    "past": (18, 22, 49),
    "rounds": (74, 74, 87),
    "domains": (10, 16, 15),
    "buffered": (13, 16, 20),
}


@pytest.mark.parametrize("name", SHAPES)
def test_theorem_2_and_the_number_of_states(name):
    counts = []
    for options in ({}, {"is_reordering": True}, {"has_outputs": True}):
        model = model_of(name, **options)
        found = check_model(model, [theorem_2(model)])
        assert (found.holds, found.is_exhaustive) == (True, True)
        counts.append(found.unique_states)
    assert tuple(counts) == COUNTS[name]


@pytest.mark.parametrize("name", SHAPES)
def test_the_number_of_states_is_that_of_the_papers_formulas(name):
    """Counted once more over plain dictionaries, with Definition 2 by the letter."""
    assert paper.count(*SHAPES[name]) == COUNTS[name][0]


@pytest.mark.parametrize("name", SHAPES)
def test_the_hypotheses_of_theorem_2(name):
    """They hold of all shapes but the loop into the past: they are sufficient, not necessary."""
    shape, _ = SHAPES[name]
    assert condition_1(shape) == []
    assert bool(condition_2(shape, RELATIONS[name])) == (name == "past")


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("is_reordering", [False, True])
def test_proposition_8_the_clock_shrinks_while_inputs_do_not_grow(name, is_reordering):
    model = model_of(name, is_reordering=is_reordering, has_outputs=True)
    steps = 0
    for before, _, after in transitions(model):
        assert model.clock(after.configuration) <= model.clock(before.configuration)
        steps += 1
    assert steps > 0


@pytest.mark.parametrize("name", SHAPES)
def test_proposition_9_what_left_the_clock_does_not_come_back(name):
    model = model_of(name, has_outputs=True)
    gone = always("gone", lambda p: not (p.left & model.clock(p.configuration)))
    found = check_model(model, [gone])
    assert (found.holds, found.is_exhaustive) == (True, True)


def restless(shape):
    """The same graph, where each node that asks for notifications may also begin with requests."""
    asked = [frozenset(), frozenset(shape.times[:1]), frozenset(shape.times)]
    processors = [
        replace(p, initial=tuple((state, requests) for state, _ in p.initial for requests in asked))
        if p.initial[0][0] is not None
        else p
        for p in shape.processors
    ]
    return replace(shape, processors=tuple(processors))


@pytest.mark.parametrize("name", SHAPES)
def test_proposition_7_states_and_requests_are_those_of_local_histories(name):
    """From every choice of Initial(p), on random walks to their end."""
    shape, inputs = SHAPES[name]
    whole = restless(shape)
    clock = Clock(whole, RELATIONS[name])
    model = TimelyModel(whole, inputs, clock=clock, is_reordering=True, has_outputs=True)
    points = list(model.initial_states())
    waiting = [p for p in whole.processors if len(p.initial) == 3]
    assert len(points) == 3 ** len(waiting)
    for (number, point), seed in product(enumerate(points), range(20)):
        walk_by_histories(model, point, Random(f"{number} {seed}"))


def walk_by_histories(model, point, random):
    """Walk on, and compare each processor's state with that of its local history."""
    processors, begun = model.dataflow.processors, point.configuration
    histories = {p.name: [] for p in processors}
    while moves := model.actions(point):
        move = random.choice(moves)
        note(model.dataflow, histories, point, move)
        point = model.step(point, move)
        for at, processor in enumerate(processors):
            history = tuple(histories[processor.name])
            start = History(begun.states[at], begun.requests[at], history)
            result = local_result(processor, start)
            assert point.configuration.states[at] == result.state
            assert point.configuration.requests[at] == result.requests


def note(shape, histories, point, move):
    """The event that a move is for a processor."""
    if isinstance(move, Notify):
        histories[move.node].append(Notified(move.time))
    elif isinstance(move, Receive):
        at = shape.edge_number[move.edge]
        message = point.configuration.queues[at][move.position]
        histories[shape.edges[at].target].append(Received(move.edge, message))


@pytest.mark.parametrize("name", SHAPES)
def test_all_inputs_are_worked_off(name):
    """The model does not deadlock: in the end only outputs are left, one for each time at most."""
    model = model_of(name)
    shape = model.dataflow
    outputs = {shape.edge_number[edge.name] for edge in shape.outputs}
    ends = [after for _, _, after in transitions(model) if not model.actions(after)]
    assert ends
    for end in ends:
        c = end.configuration
        assert not any(c.requests)
        assert not any(queue for i, queue in enumerate(c.queues) if i not in outputs)


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("past", "domains")])
@pytest.mark.parametrize("is_reordering", [False, True])
def test_theorem_2_with_progress_driving_the_notifications(name, is_reordering):
    """The incremental tracker, from summaries, in place of P3's clock."""
    shape, _ = SHAPES[name]
    clock = TrackedClock(shape)
    model = model_of(name, clock=clock, is_reordering=is_reordering)
    found = check_model(model, [theorem_2(model)])
    assert (found.holds, found.is_exhaustive) == (True, True)
    exact = Clock(shape, RELATIONS[name])
    for before, _, after in transitions(model):
        assert suited(shape, exact(after.configuration)) <= clock(after.configuration)
        assert clock(after.configuration) <= clock(before.configuration)


def suited(shape, stamps):
    """Without the pointstamps whose times are in other loops than their locations."""
    depth = {t: len(t.second) if hasattr(t, "second") else 0 for t in shape.times}
    return {(x, t) for x, t in stamps if depth[t] == shape.graph.depth[x]}


def test_a_node_on_a_loop_into_the_past_waits_for_itself():
    """With Close↑ nothing comes late there; what is lost is that the notification ever comes."""
    model = TimelyModel(WAITING_FOR_ITSELF, {"in": m(1)})
    delivered = sometimes("delivered", lambda p: any(p.configuration.queues[1:]))
    found = check_model(model, [delivered])
    assert found.is_exhaustive
    assert "delivered" not in found.discoveries
    onward = model_of("loop")
    assert "delivered" in check_model(onward, [delivered]).discoveries


def test_progress_refuses_a_loop_into_the_past():
    with pytest.raises(FlowError, match="cycle-without-progress"):
        TrackedClock(PAST)


def test_with_free_inputs_theorem_2_does_not_hold():
    """P3 asks for inputs that do not grow, and this is why: here 0 comes after 1 was counted."""
    options = {"arriving": [("in", Message(0))], "clock": Clock(PIPELINE, RELATIONS["pipeline"])}
    free = TimelyModel(PIPELINE, {"in": m(1)}, **options)
    found = check_model(free, [theorem_2(free)])
    assert shown(found.discoveries["nothing late"].path.actions) == "+in@0"
    guarded = TimelyModel(PIPELINE, {"in": m(1)}, is_guarded=True, **options)
    found = check_model(guarded, [theorem_2(guarded)])
    assert (found.holds, found.is_exhaustive) == (True, True)


def test_guarded_inputs_may_add_what_may_come_anyway():
    options = {
        "arriving": [("in", Message(0)), ("in", Message(2))],
        "clock": Clock(PIPELINE, RELATIONS["pipeline"]),
        "is_guarded": True,
    }
    model = TimelyModel(PIPELINE, {"in": m(1)}, **options)
    moves = [move for _, move, _ in transitions(model) if isinstance(move, Input)]
    assert {move.message.time for move in moves} == {2}
    assert check_model(model, [theorem_2(model)]).holds


def test_several_minimal_times_may_be_due_at_once_and_come_in_any_order():
    """As P3's Not1 says."""
    model = model_of("incomparable")
    _, left, right, top = DIAMOND
    orders = set()
    for point, move, _ in transitions(model):
        due = {other.time for other in model.actions(point) if isinstance(other, Notify)}
        if isinstance(move, Notify):
            orders.add((move.time, frozenset(due)))
    assert {(left, frozenset({left, right})), (right, frozenset({left, right}))} <= orders
    # the requests themselves do not hold each other back: P3 looks at incoming edges only
    assert (top, frozenset({left, right, top})) in orders


def test_a_notification_waits_for_everything_up_to_its_time():
    model = model_of("join")
    early = sometimes(
        "early",
        lambda p: p.configuration.queues[3] != () and any(p.configuration.queues[i] for i in (0, 2))
        and p.configuration.queues[3][0].time == 1,
    )  # fmt: skip
    assert early.name not in check_model(model, [early]).discoveries


def test_a_node_may_begin_by_a_request_of_its_own():
    """Initial(p): input edges are not needed for a computation to get started."""
    begin = dataflow([collect("begin", "out", initial=[0])], [Edge("out", "begin", None)], (0, 1))
    model = TimelyModel(begin)
    [start] = model.initial_states()
    assert shown(model.actions(start)) == "begin@0"


def test_times_of_another_domain_are_held_by_what_may_be_translated():
    relation = RELATIONS["domains"]
    _, inputs = SHAPES["domains"]
    clock = Clock(DOMAINS, relation)
    [start] = TimelyModel(DOMAINS, inputs, clock=clock).initial_states()
    held = {t for x, t in clock(start.configuration) if x == "numbered"}
    assert {repr(t) for t in held} >= {"Right(time=0)", "Right(time=1)"}


def test_a_loop_ends_for_one_time_while_another_still_turns():
    shape = rounds()
    model = model_of("rounds")
    out, first, following = (shape.edge_number[name] for name in ("end", "first", "next"))
    overlap = sometimes(
        "overlap",
        lambda p: (
            p.configuration.queues[out] == tuple(m(0))
            and any(p.configuration.queues[i] for i in (first, following))
        ),
    )
    assert "overlap" in check_model(model, [overlap]).discoveries


def test_shapes_are_what_they_are_called():
    assert could_result_in(INCOMPARABLE).intransitive is None
    assert could_result_in(LOOP).intransitive is None
    assert could_result_in(PAST).intransitive is not None
