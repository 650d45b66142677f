from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operators.orders import any_order, streams

from cutwater.events import Data, Verdict, Watermark, monotone, productive, uncompleted
from cutwater.times import Left, Product, Right


def test_events_are_values():
    assert Data(1, "a") == Data(1, "a")
    assert Data(1, "a") != Data(1, "b")
    assert Data(1, None) != Watermark(1)
    assert len({Data(1, "a"), Data(1, "a"), Watermark(1)}) == 2
    assert repr(Watermark(1)) == "Watermark(time=1)"
    with pytest.raises(AttributeError):
        Data(1, "a").time = 2


@pytest.mark.parametrize(
    "stream",
    [
        [],
        [Data(1, "a"), Data(0, "b")],
        [Watermark(1), Watermark(0), Watermark(1)],
        [Data(1, "a"), Watermark(1), Data(2, "b")],
        [Watermark(Left(1)), Data(Right(0), "a"), Data(Left(2), "b")],
        [Watermark(Product(1, 0)), Data(Product(0, 1), "a")],
    ],
)
def test_monotone(stream):
    assert monotone(stream) == Verdict(True)


# P4: not monotone.
def test_a_stream_that_goes_back():
    stream = [Data(1, "a"), Watermark(1), Data(0, "a"), Watermark(0)]
    assert monotone(stream) == Verdict(False, 2, "time 0 was completed by the watermark 1")


def test_a_watermark_is_inclusive():
    assert not monotone([Watermark(1), Data(1, "a")])
    assert monotone([Watermark(1), Data(2, "a")])


def test_a_verdict_names_the_first_event_that_is_late():
    stream = [Watermark(5), Watermark(3), Data(6, "a"), Data(4, "b"), Data(1, "c")]
    assert monotone(stream) == Verdict(False, 3, "time 4 was completed by the watermark 5")


# P4, section 4.1: "tracking only one of these incomparable time-stamps would lose information".
def test_all_incomparable_watermarks_are_remembered():
    stream = [Watermark(Product(0, 2)), Watermark(Product(2, 0)), Data(Product(0, 1), "a")]
    reason = (
        "time Product(first=0, second=1) was completed by the watermark Product(first=0, second=2)"
    )
    assert monotone(stream) == Verdict(False, 2, reason)


def test_watermarks_may_have_been_seen_before():
    assert monotone([Data(1, "a")], seen=[0])
    assert not monotone([Data(1, "a")], seen=[0, 1])
    assert monotone([Data(1, "a")], seen=iter(())).reason == ""


def test_monotone_on_a_prefix_of_an_infinite_stream():
    stream = (event for n in count() for event in (Data(n, "a"), Watermark(n)))
    assert monotone(islice(stream, 1000))


def test_monotone_takes_no_more_than_it_needs():
    stream = (Watermark(0) if n == 0 else Data(0, n) for n in count())
    assert monotone(stream).position == 1


def test_uncompleted():
    stream = [Data(1, "a"), Data(3, "b"), Watermark(2), Data(3, "c")]
    assert uncompleted(stream) == [Data(3, "b"), Data(3, "c")]
    assert uncompleted([*stream, Watermark(3)]) == []
    assert uncompleted([]) == []


def test_only_a_later_watermark_completes():
    assert uncompleted([Watermark(5), Data(1, "late")]) == [Data(1, "late")]


def test_an_incomparable_watermark_completes_nothing():
    assert uncompleted([Data(Left(1), "a"), Watermark(Right(1))]) == [Data(Left(1), "a")]


@given(streams(any_order()))
def test_uncompleted_by_its_definition(stream):
    assert uncompleted(stream) == [
        event
        for n, event in enumerate(stream)
        if isinstance(event, Data)
        if not any(isinstance(mark, Watermark) and event.time <= mark.time for mark in stream[n:])
    ]


# The item is completed by the second event after it.
STREAM = [Data(1, "a"), Data(2, "b"), Watermark(2)]


@pytest.mark.parametrize(("lag", "holds"), [(0, False), (1, False), (2, True), (3, True)])
def test_the_lag_is_the_number_of_events_that_may_follow(lag, holds):
    assert bool(productive(STREAM, lag=lag)) == holds


def test_a_verdict_names_the_first_item_that_is_not_completed_in_time():
    stream = [Data(1, "a"), Watermark(1), Data(2, "b"), Watermark(1), Watermark(1)]
    assert productive(stream, lag=2) == Verdict(
        False, 2, "time 2 was not completed within 2 events"
    )


@pytest.mark.parametrize(("more", "holds"), [(0, True), (1, True), (2, False)])
def test_items_near_the_end_are_not_judged(more, holds):
    """With fewer than `lag` events after it an item may still be completed in time."""
    assert bool(productive([Data(1, "a"), *[Watermark(0)] * more], lag=2)) == holds


def test_the_last_event_of_the_lag_counts():
    assert productive([Data(1, "a"), Watermark(0), Watermark(1)], lag=2)
    assert not productive([Data(1, "a"), Watermark(0), Watermark(0), Watermark(1)], lag=2)


def test_a_later_item_may_be_the_one_that_is_owed():
    stream = [Data(Left(1), "a"), Data(Right(1), "b"), Watermark(Left(1)), Watermark(Left(2))]
    assert productive(stream, lag=2).position == 1


def test_productive_takes_no_more_than_it_needs():
    assert productive((Data(n, "a") for n in count()), lag=3).position == 0


@given(streams(any_order()), st.integers(0, 5))
def test_productive_by_its_definition(stream, lag):
    def is_late(n, item):
        marks = stream[n + 1 : n + 1 + lag]
        paid = any(isinstance(mark, Watermark) and item.time <= mark.time for mark in marks)
        return isinstance(item, Data) and n + lag < len(stream) and not paid

    late = [n for n, item in enumerate(stream) if is_late(n, item)]
    verdict = productive(stream, lag=lag)
    assert bool(verdict) == (not late)
    assert verdict.position == (late[0] if late else None)
