import pytest

from cutwater.progress import Edge
from cutwater.semantics.timely.actions import (
    Configuration,
    change_inputs,
    change_outputs,
    initial_configurations,
    notify,
    pointstamps,
    receive,
)
from cutwater.semantics.timely.dataflow import (
    Dataflow,
    Message,
    Notified,
    Processor,
    buffer,
    reaction,
)
from cutwater.times import Product

A, B, C = Message(1, "a"), Message(2, "b"), Message(1, "c")
EDGES = (Edge("in", None, "p"), Edge("out", "p", None))


def counting(state, event):
    if isinstance(event, Notified):
        return reaction(state, {"out": [Message(event.time, state)]}, requests=[event.time + 1])
    return reaction(state + 1, requests=[event.time])


DATAFLOW = Dataflow((Processor("p", counting, ((0, frozenset()),)),), EDGES, (1, 2, 3), (A, B, C))


def start(*queue):
    [c] = initial_configurations(DATAFLOW, {"in": queue})
    return c


def test_every_choice_of_initial_states_is_a_start():
    p = Processor("p", counting, ((0, frozenset()), (5, frozenset({1}))))
    found = initial_configurations(Dataflow((p,), EDGES, (1,), ()), {})
    assert [(c.states, c.requests) for c in found] == [
        ((0,), (frozenset(),)),
        ((5,), (frozenset({1}),)),
    ]


def test_mess_dequeues_the_head_and_reacts():
    after = receive(DATAFLOW, start(A, B), "in")
    assert after == Configuration((1,), (frozenset({1}),), ((B,), ()))
    assert pointstamps(DATAFLOW, after) == [("in", 2), ("p", 1)]


def test_mess_needs_a_message_and_a_reader():
    assert receive(DATAFLOW, start(), "in") is None
    assert receive(DATAFLOW, Configuration((0,), (frozenset(),), ((), (A,))), "out") is None


@pytest.mark.parametrize(
    ("queue", "allowed"),
    [
        ((A, B), [0]),
        ((B, A), [0, 1]),
        ((A, C), [0]),
        ((B, A, C), [0, 1]),
        ((Message(Product(1, 5)), Message(Product(2, 0)), Message(Product(2, 5))), [0, 1]),
    ],
    ids=["in order", "out of order", "equal times", "behind an equal one", "incomparable"],
)
def test_the_variant_takes_any_message_with_none_ahead_at_or_before_its_time(queue, allowed):
    dataflow = Dataflow((buffer("p", "out"),), EDGES, (), ())
    [c] = initial_configurations(dataflow, {"in": queue})
    taken = [i for i in range(-1, 4) if receive(dataflow, c, "in", i) is not None]
    assert taken == allowed


def test_the_variant_leaves_the_rest_in_its_order():
    dataflow = Dataflow((buffer("p", "out"),), EDGES, (), ())
    [c] = initial_configurations(dataflow, {"in": (B, A, C)})
    assert receive(dataflow, c, "in", 1).queues == ((B, C), (A,))


def test_not_is_for_a_requested_time_that_has_left_the_clock_of_every_input():
    c = receive(DATAFLOW, start(A), "in")
    assert notify(DATAFLOW, c, "p", 1, {("in", 1)}) is None
    assert notify(DATAFLOW, c, "p", 2, set()) is None
    after = notify(DATAFLOW, c, "p", 1, {("in", 2), ("p", 1), ("out", 1)})
    assert after == Configuration((1,), (frozenset({2}),), ((), (Message(1, 1),)))


def test_inp_extends_inputs_anywhere_and_nothing_else():
    c = start(A)
    for queue in [(A,), (A, B), (B, A), (B, A, C)]:
        assert change_inputs(DATAFLOW, c, {"in": queue}).queues[0] == queue
    assert change_inputs(DATAFLOW, c, {"in": (B,)}) is None
    assert change_inputs(DATAFLOW, c, {"out": (B,)}) is None


def test_outp_removes_outputs_in_any_order_and_nothing_else():
    c = Configuration((0,), (frozenset(),), ((A,), (A, B, C)))
    for queue in [(), (A,), (C,), (A, C), (A, B, C)]:
        assert change_outputs(DATAFLOW, c, {"out": queue}).queues[1] == queue
    assert change_outputs(DATAFLOW, c, {"out": (C, A)}) is None
    assert change_outputs(DATAFLOW, c, {"in": ()}) is None
