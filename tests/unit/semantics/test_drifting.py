from itertools import pairwise

import pytest
from support.drifting.runs import ONE, TWO_NODES, log
from support.drifting.xor_acker import XorAcker

from cutwater.semantics.drifting.agents import Consumer, Node
from cutwater.semantics.drifting.elements import (
    BEGIN,
    EMPTY,
    END_OF_INPUT,
    Acker,
    Change,
    Element,
    Group,
    Grouping,
    Time,
    due,
    fold,
    outputs_in_order,
    regroup,
)
from cutwater.semantics.drifting.messages import Bundle, Received, Work
from cutwater.semantics.drifting.protocol import Drifting

V1, V2 = log(2)


def test_children_come_behind_their_parents_and_before_the_next_input():
    first, second = Time((1, 0)), Time((2, 0))
    child = first.child(0, 0)
    times = [first, child, child.child(1, 0), child.child(1, 1), first.child(0, 1), second]
    assert all(a < b for a, b in pairwise(times))


def test_inputs_of_two_producers_have_one_order():
    assert Time((1, 0)) < Time((1, 1)) < Time((2, 0))


def test_a_retraction_that_overtakes_its_element_leaves_nothing():
    grouping = Grouping(2)
    owed, sent = regroup(grouping, 0, EMPTY, Change(V1, -1))
    assert (owed, sent) == (Group(balance=frozenset({(V1, -1)})), ())
    assert regroup(grouping, 0, owed, Change(V1)) == (EMPTY, ())


def test_an_element_that_comes_again_before_its_retraction_stays():
    grouping = Grouping(1)
    group, first = regroup(grouping, 0, EMPTY, Change(V1))
    group, second = regroup(grouping, 0, group, Change(V1))
    group, third = regroup(grouping, 0, group, Change(V1, -1))
    assert group == Group((V1,))
    assert [len(sent) for sent in (first, second, third)] == [1, 0, 0]


def test_two_values_with_one_t_may_lead_to_equal_outputs():
    """Each is retracted by itself: outputs are counted, not a set."""
    grouping = Grouping(1, emit=lambda window: ("same",))
    other = Element(V1.t, "w1")
    group, first = regroup(grouping, 0, EMPTY, Change(V1))
    group, second = regroup(grouping, 0, group, Change(other))
    group, third = regroup(grouping, 0, group, Change(V1, -1))
    output = Element(V1.t.child(0, 0), "same")
    assert [*first, *second, *third] == [Change(output), Change(output), Change(output, -1)]


def test_an_output_that_a_late_element_does_not_change_is_not_retracted():
    grouping = Grouping(2, emit=lambda window: window[-1:])
    group, _ = regroup(grouping, 0, EMPTY, Change(V2))
    _, sent = regroup(grouping, 0, group, Change(V1))
    assert sent == (Change(Element(V1.t.child(0, 0), "v1")),)


def test_a_barrier_releases_in_order_before_the_frontier_and_behind_t_last():
    elements = [Element(Time((n, 0), ((0, i),)), f"{n}{i}") for n in (1, 2, 3) for i in (0, 1)]
    outputs = dict.fromkeys(reversed(elements), 1)
    assert due(outputs, (3, 0), elements[0].t) == elements[1:4]
    assert due(outputs, BEGIN, None) == []
    assert due(outputs | {elements[0]: 0, elements[1]: -1}, END_OF_INPUT, None) == elements[2:]


def test_a_fold_can_go_on_where_it_stopped():
    grouping, windows = Grouping(2), {}
    parts = [fold(grouping, 0, [element], windows) for element in (V1, V2)]
    assert [output for part in parts for output in part] == outputs_in_order([grouping], [V1, V2])


class TestAcker:
    def test_an_input_is_done_when_all_that_came_of_it_is(self):
        one, child = ((1, 0), "input"), ((1, 0), "child")
        acker = Acker((BEGIN,)).advance(0, (2, 0), [one])
        assert acker.frontier == (1, 0)
        acker = acker.report([one], [child])
        assert acker.frontier == (1, 0)
        assert acker.report([child]).frontier == (2, 0)

    def test_it_waits_for_every_producers_bound(self):
        acker = Acker((BEGIN, BEGIN)).advance(0, END_OF_INPUT)
        assert acker.frontier == BEGIN
        assert acker.advance(1, (5, 1)).frontier == (5, 1)

    def test_a_bound_does_not_go_back(self):
        assert Acker((BEGIN,)).advance(0, (5, 0)).advance(0, (3, 0)).frontier == (5, 0)

    def test_it_forgets_what_it_has_passed(self):
        one = ((1, 0), "input")
        acker = Acker((BEGIN,)).advance(0, (2, 0), [one]).report([one])
        assert (acker.sent, acker.done) == (frozenset(), frozenset())
        assert acker.report([one], [((1, 0), "again")]) == acker


class TestAckerOfThePaper:
    def test_numbers_cancel_while_three_messages_are_on_their_way(self):
        names = (0b011, 0b101, 0b110)
        xor_acker = XorAcker(slots=8)
        xor_acker.report(1, *names)
        assert xor_acker.is_done(1)
        ours = Acker((BEGIN,)).advance(0, END_OF_INPUT, [((1, 0), name) for name in names])
        assert ours.frontier == (1, 0)

    def test_a_ring_that_wraps_takes_two_inputs_for_one(self):
        xor_acker = XorAcker(slots=8)
        xor_acker.report(1, 0b1)
        assert not xor_acker.is_done(1)
        xor_acker.report(9, 0b1)
        assert xor_acker.is_done(1)
        assert xor_acker.is_done(9)
        ours = Acker((BEGIN,)).advance(0, END_OF_INPUT, [((1, 0), 0b1), ((9, 0), 0b1)])
        assert ours.frontier == (1, 0)

    def test_a_copy_of_a_report_is_mistaken_for_its_opposite(self):
        xor_acker = XorAcker(slots=8)
        xor_acker.report(1, 0b1)
        xor_acker.report(1, 0b1)
        assert xor_acker.is_done(1)
        sent = [((1, 0), 0b1)]
        assert Acker((BEGIN,)).advance(0, END_OF_INPUT, sent).advance(
            0, END_OF_INPUT, sent
        ).frontier == (1, 0)


class TestRules:
    def test_a_node_ignores_a_copy(self):
        rules, work = Drifting(ONE), Work(0, 0, Change(V1))
        once, sends = rules.on_work(Node(groups=()), "node 0", "producer 0", work)
        assert [target for target, _ in sends] == ["barrier 0", "coordinator"]
        assert rules.on_work(once, "node 0", "producer 0", work) == (once, ())

    @pytest.mark.parametrize(
        ("generation", "count", "is_taken"),
        [
            (2, 1, True),
            (2, 2, False),  # the one before it is missing
            (1, 1, False),  # from an older barrier
            (3, 1, False),  # from one that has not asked
        ],
    )
    def test_a_consumer_takes_the_next_bundle_of_its_barrier(self, generation, count, is_taken):
        output = Element(V1.t.child(0, 0), "v1")
        before = Consumer(generation=2)
        after, sends = Drifting(ONE).on_bundle(
            before, generation, "barrier 0", Bundle(count, output)
        )
        assert after.received == (output,) * is_taken
        assert list(sends) == [("barrier 0", Received(1))] * is_taken

    def test_a_consumer_acknowledges_a_copy_and_does_not_keep_it(self):
        output = Element(V1.t.child(0, 0), "v1")
        before = Consumer(2, 1, (output,))
        after, sends = Drifting(ONE).on_bundle(before, 2, "barrier 0", Bundle(1, output))
        assert (after, list(sends)) == (before, [("barrier 0", Received(1))])


def test_each_consumer_is_to_get_what_its_node_makes_in_order():
    values = [[output.value for output in outputs] for outputs in TWO_NODES.expected()]
    assert values == [[("v2",)], [("v1",)]]
