"""What stacks of calls as times are good for: a recursive sum, explored whole."""

import pytest
from support.timely.divide import BODY, summing
from support.timely.shapes import transitions

from cutwater.checking import always, check_model, sometimes
from cutwater.semantics.timely.clock import Clock
from cutwater.semantics.timely.dataflow import Message
from cutwater.semantics.timely.model import Notify, TimelyModel
from cutwater.semantics.timely.recursion import CallClock
from cutwater.semantics.timely.relation import CouldResultIn

NUMBERS = (1, 2, 4)
SUM = sum(NUMBERS)


def by_stacks(**options):
    dataflow = summing(BODY.time, depth=2)
    ask = Message(BODY.time("in", ()), ((), NUMBERS))
    return TimelyModel(dataflow, {"ask": [ask]}, clock=CallClock(dataflow, BODY), **options)


def result(model, point):
    return point.configuration.states[model.dataflow.number["out"]]


def is_over(model, point):
    c = point.configuration
    return not any(c.queues) and not any(c.requests)


def test_the_sum_is_right_in_every_order_and_nothing_comes_late():
    model = by_stacks()
    claims = [
        always("nothing late", lambda p: model.late(p) is None),
        always("right", lambda p: not is_over(model, p) or result(model, p) == (SUM,)),
        always("goes on", lambda p: is_over(model, p) or bool(model.actions(p))),
        sometimes("ends", lambda p: is_over(model, p)),
    ]
    found = check_model(model, claims)
    assert (found.holds, found.is_exhaustive) == (True, True)
    assert found.unique_states == 233


@pytest.mark.slow
def test_a_call_is_complete_while_the_other_half_is_still_at_work():
    """(l) and (r) are incomparable at `add`: the one does not wait for the other.

    On the way there it must be allowed to overtake: all calls share the edges of one body.
    """
    model = by_stacks(is_reordering=True)
    left, right = BODY.time("add", ("l",)), BODY.time("add", ("r",))
    assert not left <= right
    assert not right <= left
    under_way = {
        message.value[0]
        for point, move, _ in transitions(model)
        if isinstance(move, Notify) and move.time == right
        for queue in point.configuration.queues
        for message in queue
    }
    assert ("l",) in under_way
    assert not any(stack[:1] == ("r",) for stack in under_way)


def test_the_whole_is_complete_after_its_parts():
    """At `add`, (r) comes before (): what a call returns is in the time of its caller."""
    model = by_stacks()
    for point, move, _ in transitions(model):
        if isinstance(move, Notify) and move.time.stack == ():
            assert not any(point.configuration.queues)


def test_with_one_time_for_all_calls_a_node_waits_for_itself():
    """What `add` sends comes back to it by a return, so its time is never complete."""
    dataflow = summing(lambda node, stack: 0, depth=2)
    graph = dataflow.graph
    relation = CouldResultIn(
        {
            (x, 0): {(y, 0): routes[0].path for y, routes in graph.routes(x).items()}
            for x in graph.locations
        }
    )
    model = TimelyModel(
        dataflow, {"ask": [Message(0, ((), NUMBERS))]}, clock=Clock(dataflow, relation)
    )
    found = check_model(model, [sometimes("a result", lambda p: bool(result(model, p)))])
    assert found.is_exhaustive
    assert "a result" not in found.discoveries
    assert not any(isinstance(move, Notify) for _, move, _ in transitions(model))
