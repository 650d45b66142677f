"""What stacks of calls as times are good for: a recursive sum, explored whole."""

import sys
from pathlib import Path

import pytest
from support.timely.shapes import transitions

from cutwater.checking import always, check_model, sometimes
from cutwater.semantics.timely.model import Notify

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from recursive_sum import (
    BODY,
    NUMBERS,
    by_one_time,
    by_stacks,
    has_added_right_before_left,
    is_over,
    result,
)

SUM = sum(NUMBERS)


def test_the_sum_is_right_in_every_order_and_nothing_comes_late():
    model = by_stacks()
    claims = [
        always("nothing late", lambda p: model.late(p) is None),
        always("right", lambda p: not is_over(p) or result(model, p) == (SUM,)),
        always("goes on", lambda p: is_over(p) or bool(model.actions(p))),
        sometimes("ends", lambda p: is_over(p)),
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
    model = by_one_time()
    found = check_model(model, [sometimes("a result", lambda p: bool(result(model, p)))])
    assert found.is_exhaustive
    assert "a result" not in found.discoveries
    assert not any(isinstance(move, Notify) for _, move, _ in transitions(model))


def test_a_half_is_added_before_the_other_has_come_only_where_messages_may_overtake():
    """All calls share the edges of one body: in line, the right half waits behind the left."""
    for is_reordering in (True, False):
        model = by_stacks(is_reordering=is_reordering)
        claim = sometimes("early", lambda p, m=model: has_added_right_before_left(m, p))
        assert ("early" in check_model(model, [claim]).discoveries) == is_reordering
