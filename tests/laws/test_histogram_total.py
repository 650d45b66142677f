"""Counting over a total order: equations (24), (26) and (27)."""

from collections import Counter
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.infinite import infinite_streams, numbers, overdue
from support.operators.machines import SYMBOLS, random_operators
from support.operators.orders import (
    cases,
    completed_batches,
    keep_monotone,
    total_orders,
    uncompleted_pending,
)
from support.operators.paper import S_lcoll, mono

from cutwater.events import Data, Watermark, monotone
from cutwater.operators import Operator, eq_op, histogram, histogram_total, produce

total_cases = cases(total_orders())
numbered_streams = infinite_streams(st.just(numbers()))


def counted(batches):
    """``mset (map snd abs)``."""
    return Counter(value for _, value in batches)


def both(case):
    """The two histograms with the buffers that (24) and (27) ask for."""
    pending, batches = uncompleted_pending(case), completed_batches(case)
    return histogram_total(counted(batches), pending), histogram(pending, batches)


@given(cases(total_orders(), monotone=False))
def test_histogram_total_is_the_papers(case):
    counts = counted(case.batches)
    expected = machines.produce(machines.ihist_op_total(counts, case.pending), case.lxs)
    assert list(produce(histogram_total(counts, case.pending), case.lxs)) == list(expected)


@given(total_cases)
def test_eq24_the_two_histograms_are_equal(case):
    total, general = both(case)
    assert list(produce(total, case.lxs)) == list(produce(general, case.lxs))


@given(numbered_streams)
def test_eq24_the_two_histograms_are_equal_on_infinite_streams(stream):
    outputs = islice(produce(histogram_total(), stream), 25)
    assert list(outputs) == list(islice(produce(histogram(), stream), 25))


# Fig. 8; it shows that (24) needs a monotone stream.
def test_fig8_eq24_fails_for_a_stream_that_is_not_monotone():
    lxs = [Data(1, "a"), Watermark(1), Data(0, "a"), Watermark(0)]
    total = list(produce(histogram_total(), lxs))
    general = list(produce(histogram(), lxs))
    assert total[:2] == general[:2] == [Data(1, Counter(a=1)), Watermark(1)]
    assert total[2:] == [Data(0, Counter(a=2)), Watermark(0)]
    assert general[2:] == [Data(0, Counter(a=1)), Watermark(0)]


def test_eq24_fails_if_earlier_batches_were_not_completed():
    lxs = [Data(0, "b"), Watermark(0)]
    total, general = histogram_total({"a": 1}), histogram(batches=[(1, "a")])
    assert next(produce(total, lxs)).value == Counter("ab")
    assert next(produce(general, lxs)).value == Counter("b")


def test_eq24_fails_if_something_pending_was_completed_before():
    """With W = {1}: what is pending at 0 is late, and counts as what is there already."""
    total, general = histogram_total({"a": 1}, [(0, "b")]), histogram([(0, "b")], [(1, "a")])
    assert [d.value for d in produce(total, [])] == [Counter("ab")]
    assert [d.value for d in produce(general, [])] == [Counter("b")]


def streams_over(alphabet, length):
    return st.lists(st.sampled_from(alphabet), max_size=length).map(keep_monotone)


ALPHABET = [Data(0, "a"), Data(1, "a"), Data(1, "b"), Watermark(0), Watermark(1)]


def over_events(op):
    """A random machine that reads the alphabet and speaks of it."""

    def step(state, event):
        state, symbols = op.step(state, SYMBOLS[ALPHABET.index(event) % 2])
        return state, [Data(0, symbol) for symbol in symbols]

    return Operator(op.initial, step, lambda state: [Data(1, s) for s in op.finish(state)])


@given(random_operators(states=2), random_operators(states=2), streams_over(ALPHABET, 3))
def test_eq26_related_operators_produce_the_same(a, b, lxs):
    """To a depth of 3; most random pairs are not related, and then some stream shows it."""
    a, b = over_events(a), over_events(b)
    verdict = eq_op(a, b, ALPHABET, depth=3)
    if verdict:
        assert list(produce(a, lxs)) == list(produce(b, lxs))


@given(random_operators(states=2), streams_over(ALPHABET, 3))
def test_eq26_an_operator_is_related_to_itself(op, lxs):
    op = over_events(op)
    assert eq_op(op, op, ALPHABET, depth=3)


@given(total_cases)
def test_eq27_the_two_histograms_are_related(case):
    """To a depth of 2, over every event with two of the values."""
    total, general = both(case)
    alphabet = [Data(time, value) for time in case.times[:3] for value in "ab"]
    alphabet += [Watermark(time) for time in case.times[:3]]
    assert eq_op(total, general, alphabet, case.seen, depth=2)


def test_eq27_the_two_histograms_are_related_to_a_depth_of_6():
    assert eq_op(histogram_total(), histogram(), ALPHABET, depth=6)


def test_eq27_fails_if_the_stream_may_go_back():
    """`eq_op` looks at monotone streams only; a watermark it has not seen lets it go back."""
    lxs = [Data(1, "a"), Watermark(1)]
    total, general = (op.at(machine_state(op, lxs)) for op in (histogram_total(), histogram()))
    assert eq_op(total, general, ALPHABET, seen=[1], depth=3)
    assert not eq_op(total, general, ALPHABET, seen=[], depth=3)


def machine_state(op, lxs):
    state = op.initial
    for event in lxs:
        state, _ = op.step(state, event)
    return state


@given(total_cases)
def test_histogram_total_soundness_and_completeness(case):
    outputs = [event for event in produce(histogram_total(), case.lxs) if isinstance(event, Data)]
    for output in outputs:
        assert output.value == S_lcoll(case.lxs, output.time)
    expected = {event.time for event in case.lxs if isinstance(event, Data)}
    assert {output.time for output in outputs} == expected


@given(total_cases)
def test_histogram_total_preserves_monotonicity(case):
    outputs = list(produce(both(case)[0], case.lxs))
    assert mono(outputs, case.seen)
    assert monotone(outputs, case.seen)


@given(numbered_streams)
def test_histogram_total_preserves_productivity(stream):
    assert overdue(histogram_total(), stream) == []
