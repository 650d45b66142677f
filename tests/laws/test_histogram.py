"""Counting over any partial order: equations (22) and (23), and what is preserved."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.figures import STREAM, t0, t1, t2, t3, t4, t5
from support.operators.infinite import infinite_streams, overdue, stepwise, with_pending
from support.operators.orders import cases, uncompleted_pending
from support.operators.paper import S_coll, S_lcoll, data, mono, set_t

from cutwater.events import Data, Watermark, monotone
from cutwater.operators import fproduce, histogram, produce


@given(cases(monotone=False))
def test_histogram_is_the_papers(case):
    expected = machines.produce(machines.ihist_op(case.pending, case.batches), case.lxs)
    assert list(produce(histogram(case.pending, case.batches), case.lxs)) == list(expected)


@given(cases())
def test_eq22_histogram_soundness(case):
    for output in data(produce(histogram(), case.lxs)):
        assert output.value == S_lcoll(case.lxs, output.time)


@given(cases())
def test_eq22_histogram_soundness_with_buffers(case):
    """(22) is "simplified to use empty buffers"; this is the rest."""
    for output in data(produce(histogram(case.pending, case.batches), case.lxs)):
        before = S_coll(output.time, case.pending) + S_coll(output.time, case.batches)
        assert output.value == S_lcoll(case.lxs, output.time) + before


@given(infinite_streams(), st.integers(0, 20), st.integers(0, 20))
def test_eq22_a_count_stays_sound_however_the_stream_goes_on(stream, n, more):
    for output in data(fproduce(histogram(), stream.prefix(n))[1]):
        assert output.value == S_lcoll(stream.prefix(n + more), output.time)


def test_eq22_fails_for_a_stream_that_is_not_monotone():
    lxs = [Data(1, "a"), Watermark(1), Data(0, "a"), Watermark(0)]
    assert data(produce(histogram(), lxs))[0].value == Counter("a")
    assert S_lcoll(lxs, 1) == Counter("aa")


@given(cases(monotone=False))
def test_eq23_histogram_completeness(case):
    outputs = data(produce(histogram(case.pending, case.batches), case.lxs))
    expected = {event.time for event in data(case.lxs)} | set_t(case.pending)
    assert {output.time for output in outputs} == expected


@given(infinite_streams())
def test_eq23_histogram_completeness_on_infinite_streams(stream):
    n = 3 * stream.round_length
    outputs = stepwise(histogram(), stream.prefix(n + stream.lag))
    times = {event.time for _, event in outputs if isinstance(event, Data)}
    assert {event.time for event in data(stream.prefix(n))} <= times


def test_eq23_fails_for_a_stream_that_is_not_productive():
    assert stepwise(histogram(), [Data(n, "a") for n in range(100)]) == []


@given(cases())
def test_histogram_preserves_monotonicity(case):
    outputs = list(produce(histogram(uncompleted_pending(case), case.batches), case.lxs))
    assert mono(outputs, case.seen)
    assert monotone(outputs, case.seen)


@given(with_pending())
def test_histogram_preserves_productivity(given_):
    stream, pending = given_
    assert overdue(histogram(pending), stream) == []


# Figs. 1a and 6: one more `a` at t0 comes first.
def test_fig6():
    assert list(produce(histogram(), [Data(t0, "a"), *STREAM])) == [
        Data(t0, Counter(a=2)),
        Data(t1, Counter(a=2, c=1)),
        Watermark(t1),
        Data(t2, Counter(a=2, b=1)),
        Data(t3, Counter(a=3)),
        Data(t5, Counter(a=4, b=1, c=1)),
        Watermark(t5),
        Watermark(t2),
        Data(t4, Counter(a=2, c=1, d=1)),
    ]
