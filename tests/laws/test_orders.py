"""The random orders and streams of the laws are what they claim to be."""

from hypothesis import given
from hypothesis import strategies as st
from support.operators.infinite import infinite_streams, two_sided_clocks
from support.operators.orders import any_order, cases, keep_punctual, streams, total_orders
from support.operators.paper import mono, producible, watermarks

from cutwater.events import Watermark, monotone, productive, uncompleted
from cutwater.times import check_order


@given(any_order())
def test_orders_are_partial_orders(times):
    check_order(times)


@given(total_orders())
def test_total_orders_are_total(times):
    check_order(times)
    assert all(a <= b or b <= a for a in times for b in times)


@given(cases())
def test_cases_are_monotone(case):
    assert mono(case.lxs, case.seen)


@given(cases(monotone=False))
def test_monotone_is_the_papers(case):
    """`cutwater.events.monotone` against the paper's ``mono`` (section 4.1)."""
    verdict = monotone(case.lxs, case.seen)
    assert bool(verdict) == mono(case.lxs, case.seen)
    if not verdict:
        assert mono(case.lxs[: verdict.position], case.seen)
        assert not mono(case.lxs[: verdict.position + 1], case.seen)


@given(streams(any_order()), st.integers(1, 4))
def test_punctual_streams_owe_nothing_for_long(lxs, lag):
    punctual = keep_punctual(lxs, lag)
    assert productive(punctual, lag=lag)
    assert uncompleted(punctual) == []


@given(infinite_streams())
def test_infinite_streams_are_monotone_and_productive(stream):
    prefix = stream.prefix(40)
    assert len(prefix) == 40
    assert mono(prefix, set())
    assert productive(prefix, lag=stream.lag)


@given(infinite_streams(two_sided_clocks()))
def test_every_watermark_of_a_two_sided_stream_becomes_producible(stream):
    """The side condition of (31), within one more lag."""
    n = 2 * stream.round_length
    later = watermarks(stream.prefix(n + stream.lag))
    for event in stream.prefix(n):
        if isinstance(event, Watermark):
            assert producible(event.time, later)
