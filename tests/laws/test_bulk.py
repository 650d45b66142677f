"""Working on several events at once (P4, section 3.1)."""

from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.infinite import infinite_streams, overdue
from support.operators.machines import SYMBOLS
from support.operators.orders import cases
from support.operators.paper import mono

from cutwater.events import Data, Watermark
from cutwater.operators import bulk, fproduce, produce
from cutwater.operators.bulk import bulk_values

words = st.text(SYMBOLS, max_size=12)
sizes = st.integers(0, 4)


def joined(run):
    return ["".join(run)]


def in_order(run):
    """The run as it arrived."""
    return list(reversed(run))


def runs(lxs, n, buffer):
    """What each call of the function gets, newest first: (soundness and completeness at once)."""
    arrived = [*reversed(buffer), *lxs]
    first = max(n, 1, len(buffer) + 1)
    found = []
    while len(arrived) >= first:
        found.append(arrived[:first][::-1])
        arrived, first = arrived[first:], max(n, 1)
    return [*found, arrived[::-1]]


@given(words, sizes, st.text(SYMBOLS, max_size=5))
def test_bulk_is_the_papers(lxs, n, buffer):
    expected = machines.produce(machines.bulk_op(joined, n, list(buffer)), lxs)
    assert list(produce(bulk(joined, n, buffer), lxs)) == list(expected)


@given(words, sizes, st.text(SYMBOLS, max_size=5))
def test_bulk_soundness_and_completeness(lxs, n, buffer):
    outputs = list(produce(bulk(joined, n, buffer), lxs))
    assert outputs == ["".join(run) for run in runs(lxs, n, buffer)]


@given(cases(monotone=False), sizes)
def test_bulk_in_order_is_the_identity(case, n):
    assert list(produce(bulk(in_order, n), case.lxs)) == case.lxs


@given(cases(), sizes)
def test_bulk_in_order_preserves_monotonicity(case, n):
    assert mono(list(produce(bulk(in_order, n), case.lxs)), case.seen)


def test_bulk_does_not_preserve_monotonicity_if_its_function_does_not_keep_the_order():
    """A run is given newest first, so that the watermark comes before what it completes."""
    lxs = [Data(1, "a"), Watermark(1)]
    assert mono(lxs, set())
    assert not mono(list(produce(bulk(list, 2), lxs)), set())


@given(infinite_streams(), st.integers(1, 4))
def test_bulk_in_order_preserves_productivity(stream, n):
    """Here the paper's "eventually" costs something: k' is the size of a run."""
    assert overdue(bulk(in_order, n), stream, extra=n) == []


@given(infinite_streams(), st.integers(0, 30), st.integers(1, 4))
def test_bulk_holds_back_less_than_one_run(stream, m, n):
    lxs = stream.prefix(m)
    assert fproduce(bulk(in_order, n), lxs)[1] == lxs[: m - m % n]


def counted(values):
    return [len(values), *values]


def with_newest_time(run):
    """`counted`, on events."""
    values = [event.value for event in run]
    return [Data(run[0].time, output) for output in counted(values)] if run else []


@given(cases(monotone=False), st.integers(1, 4), st.integers(0, 3))
def test_on_data_bulk_values_is_bulk_with_the_time_of_the_newest(case, n, held):
    data = [event for event in case.lxs if isinstance(event, Data)]
    buffer, rest = data[:held][::-1], data[held:]
    pairs = [(event.time, event.value) for event in buffer]
    expected = produce(bulk(with_newest_time, n, buffer), rest)
    assert list(produce(bulk_values(counted, n, pairs), rest)) == list(expected)


@given(cases(monotone=False), st.integers(1, 4))
def test_bulk_values_leaves_watermarks_where_they_are(case, n):
    outputs = list(produce(bulk_values(counted, n), case.lxs))
    marks = [event for event in case.lxs if isinstance(event, Watermark)]
    assert [event for event in outputs if isinstance(event, Watermark)] == marks


@given(cases(), st.integers(1, 4))
def test_bulk_values_preserves_monotonicity(case, n):
    assert mono(list(produce(bulk_values(counted, n), case.lxs)), case.seen)


@given(infinite_streams(), st.integers(1, 4))
def test_bulk_values_preserves_productivity(stream, n):
    assert overdue(bulk_values(counted, n), stream) == []
