"""What an operator says of its states is true: `is_idle` and `is_blank`."""

from hypothesis import given
from hypothesis import strategies as st
from support.operators.orders import cases, raw_streams, total_orders, two_sided

from cutwater.events import Watermark
from cutwater.operators import (
    accumulate,
    batch,
    compose,
    flatten,
    fproduce,
    histogram,
    histogram_paths,
    histogram_total,
    identity,
    incr_batch,
    join,
    map_values,
    produce,
    union,
)


def paired(time, value):
    return ((time, value),)


def one_sided_operators(case):
    """Operators over any times, each with the buffers of the case and without."""
    return [
        identity(),
        flatten(),
        map_values(paired),
        batch(case.pending),
        batch(),
        compose(map_values(paired), accumulate(case.batches)),
        compose(batch(), accumulate()),
        incr_batch(case.pending, case.batches),
        incr_batch(case.pending),
        histogram(case.pending, case.batches),
        histogram_paths(case.pending),
        compose(batch(case.pending), batch()),
    ]


def check_idle(op, case):
    evolved, _ = fproduce(op, case.lxs)
    state = evolved.initial
    if op.is_idle(state):
        for time in case.times:
            later, outputs = op.step(state, Watermark(time))
            assert (later, list(outputs)) == (state, [Watermark(time)])


def check_blank(op, case, later):
    evolved, _ = fproduce(op, case.lxs)
    if op.is_blank(evolved.initial):
        assert list(produce(evolved, later)) == list(produce(op, later))


def cases_and_later(orders=None):
    """A case and a stream that goes on after it."""
    return st.builds(
        lambda case, raw: (case, [event.at(case.times) for event in raw]),
        cases(orders),
        raw_streams(),
    )


@given(cases())
def test_an_idle_operator_only_passes_a_watermark_on(case):
    for op in one_sided_operators(case):
        check_idle(op, case)


@given(cases_and_later())
def test_a_blank_state_is_as_good_as_the_initial_one(given_):
    case, later = given_
    for op in one_sided_operators(case):
        check_blank(op, case, later)


@given(cases_and_later(total_orders()))
def test_histogram_total_tells_the_truth(given_):
    case, later = given_
    for op in (histogram_total({"a": 1}, case.pending), histogram_total(None, case.pending)):
        check_idle(op, case)
        check_blank(op, case, later)


@given(cases_and_later(two_sided()))
def test_operators_over_two_sides_tell_the_truth(given_):
    case, later = given_
    for op in (union(), union(seen=case.seen), join(lambda a, b: a + b, case.pending)):
        check_idle(op, case)
        check_blank(op, case, later)
