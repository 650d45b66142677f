"""A function on every value (P4, section 5.1); the paper omits its four properties."""

from itertools import islice

from hypothesis import given
from support.operators import machines
from support.operators.infinite import infinite_streams, overdue
from support.operators.orders import cases
from support.operators.paper import mono

from cutwater.events import Data, monotone
from cutwater.operators import compose, map_values, produce


def paired(time, value):
    return (time, value)


def doubled(time, value):
    return (value, value)


def mapped(f, lxs):
    """``lmap``, and so soundness and completeness at once."""
    return [
        Data(event.time, f(event.time, event.value)) if isinstance(event, Data) else event
        for event in lxs
    ]


@given(cases(monotone=False))
def test_map_values_is_the_papers(case):
    expected = machines.produce(machines.map_op(paired), case.lxs)
    assert list(produce(map_values(paired), case.lxs)) == list(expected)


@given(cases(monotone=False))
def test_map_values_soundness_and_completeness(case):
    assert list(produce(map_values(paired), case.lxs)) == mapped(paired, case.lxs)


@given(infinite_streams())
def test_map_values_soundness_and_completeness_on_infinite_streams(stream):
    outputs = list(islice(produce(map_values(paired), stream), 30))
    assert outputs == mapped(paired, stream.prefix(30))


@given(cases())
def test_map_values_preserves_monotonicity(case):
    outputs = list(produce(map_values(paired), case.lxs))
    assert mono(outputs, case.seen)
    assert monotone(outputs, case.seen)


@given(infinite_streams())
def test_map_values_preserves_productivity(stream):
    assert overdue(map_values(paired), stream) == []


@given(cases(monotone=False))
def test_mapping_twice_is_mapping_by_both(case):
    both = map_values(lambda time, value: doubled(time, paired(time, value)))
    twice = compose(map_values(paired), map_values(doubled))
    assert list(produce(twice, case.lxs)) == list(produce(both, case.lxs))
