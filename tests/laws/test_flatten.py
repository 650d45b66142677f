"""Single values out of lists of them (P4, section 5.2); the paper omits its four properties."""

from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.infinite import infinite_streams, overdue
from support.operators.orders import LETTERS, any_order, keep_monotone, streams
from support.operators.paper import mono

from cutwater.events import Data, Watermark, monotone, productive
from cutwater.operators import flatten, fproduce, produce

lists = st.lists(LETTERS, max_size=3).map(tuple)
streams_of_lists = streams(any_order(), lists)


def spread(lxs):
    """Each item in place of the list it is in; soundness and completeness at once."""
    return [
        output
        for event in lxs
        for output in (
            [Data(event.time, element) for element in event.value]
            if isinstance(event, Data)
            else [event]
        )
    ]


@given(streams_of_lists)
def test_flatten_is_the_papers(lxs):
    assert list(produce(flatten(), lxs)) == list(machines.produce(machines.flatten_op(), lxs))


@given(streams_of_lists)
def test_flatten_soundness_and_completeness(lxs):
    assert list(produce(flatten(), lxs)) == spread(lxs)


@given(infinite_streams(values=lists), st.integers(0, 30))
def test_flatten_soundness_and_completeness_on_infinite_streams(stream, n):
    assert fproduce(flatten(), stream.prefix(n))[1] == spread(stream.prefix(n))


@given(streams_of_lists)
def test_flatten_preserves_monotonicity(lxs):
    outputs = list(produce(flatten(), keep_monotone(lxs)))
    assert mono(outputs, set())
    assert monotone(outputs)


@given(infinite_streams(values=lists))
def test_flatten_preserves_productivity(stream):
    assert overdue(flatten(), stream) == []


def test_flatten_owes_longer_if_outputs_are_counted():
    """Why the law counts inputs: two more items may lie between an item and its watermark."""
    lxs = [Data(1, "abc"), Watermark(1)]
    assert productive(lxs, lag=1)
    outputs = list(produce(flatten(), lxs))
    assert not productive(outputs, lag=1)
    assert productive(outputs, lag=3)
