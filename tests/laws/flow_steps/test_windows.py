"""Windows, against batch recomputation from all events."""

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.operators.orders import keep_monotone
from support.operators.paper import mono

from cutwater.errors import InputError
from cutwater.events import Data, Watermark
from cutwater.operators import aggregates, produce
from cutwater.operators.windows import (
    aggregate_windows,
    session,
    sliding,
    starts_of,
    tumbling,
    windows_of,
)
from cutwater.times import just_before

TIMES = st.integers(-20, 20)
STREAMS = st.lists(
    st.one_of(st.builds(Data, TIMES, st.integers(0, 99)), st.builds(Watermark, TIMES)), max_size=20
).map(keep_monotone)


@st.composite
def slidings(draw):
    size, every = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    return sliding(size, every=every, offset=draw(st.none() | st.integers(-9, 9)))


def collected(window, events, **options):
    """(start, end, values) for each window that was shown, with the time it was shown at."""
    op = aggregate_windows(window, [aggregates.collect()], lambda key, *row: row, **options)
    return [e for e in produce(op, events) if isinstance(e, Data)]


def sliding_by_hand(window, data):
    """Every window of the grid with the events in it, by the definition."""
    origin = window.offset or 0
    found = {}
    for n in range(-60, 60):
        start = origin + n * window.every
        values = [event.value for event in data if start <= event.time < start + window.size]
        if values:
            found[start] = (start, start + window.size, values)
    return found


def sessions_by_hand(gap, data):
    """Sorted times, cut where the next is `gap` or more away: start, end and the values."""
    found = []
    for event in sorted(data, key=lambda event: event.time):
        if found and event.time - found[-1][1] < gap:
            found[-1] = (found[-1][0], event.time, [*found[-1][2], event.value])
        else:
            found.append((event.time, event.time, [event.value]))
    return [(start, last + gap, sorted(values)) for start, last, values in found]


def data_of(events):
    return [event for event in events if isinstance(event, Data)]


@given(slidings(), STREAMS)
def test_each_window_once_with_exactly_its_events_in_the_order_of_the_run(window, events):
    shown = {e.value[0]: e.value for e in collected(window, events)}
    assert len(collected(window, events)) == len(shown)
    assert shown == sliding_by_hand(window, data_of(events))


@given(st.integers(1, 6), STREAMS)
def test_each_session_once_with_exactly_its_events(gap, events):
    shown = [
        (s, e, sorted(values))
        for s, e, values in (d.value for d in collected(session(gap), events))
    ]
    assert sorted(shown) == sessions_by_hand(gap, data_of(events))


@given(st.one_of(slidings(), st.integers(1, 6).map(session)), STREAMS)
def test_a_window_is_shown_at_its_last_time_when_a_watermark_gets_there_or_at_the_end(
    window, events
):
    op = aggregate_windows(window, [aggregates.count()], lambda key, *row: row)
    state = op.initial
    for event in events:
        state, outputs = op.step(state, event)
        shown = data_of(outputs)
        assert not (shown and isinstance(event, Data))
        assert all(d.time == d.value[1] - 1 <= event.time for d in shown)
        if isinstance(event, Watermark):
            assert outputs[-1] == event
            assert not any(end - 1 <= event.time for _, end, _ in state[1])
    assert [d.time for d in op.finish(state)] == [end - 1 for _, end, _ in state[1]]


@given(st.one_of(slidings(), st.integers(1, 6).map(session)), STREAMS)
def test_monotone_streams_stay_monotone(window, events):
    op = aggregate_windows(window, [aggregates.count()], lambda key, *row: row)
    assert mono(list(produce(op, events)), set())


@given(st.integers(1, 4), STREAMS, st.randoms(use_true_random=False))
def test_out_of_order_events_make_no_difference_to_what_does_not_depend_on_order(
    gap, events, random
):
    data = data_of(events)
    shuffled = random.sample(data, len(data))
    for window in (session(gap), sliding(2 * gap, every=gap)):
        op = aggregate_windows(
            window, [aggregates.count(), aggregates.sum(), aggregates.max()], lambda k, *r: r
        )
        assert list(produce(op, data)) == list(produce(op, shuffled))


def test_where_sessions_grow_together_the_earlier_one_comes_first():
    """Also where its events came later: [10, then 1, then 5 between them] with a gap of 6."""
    shown = collected(session(6), [Data(10, "x"), Data(1, "y"), Data(5, "z")])
    assert shown == [Data(15, (1, 16, ["y", "x", "z"]))]


UTC, BERLIN = dt.UTC, dt.timezone(dt.timedelta(hours=1))
# a number of units as a time, and the unit
KINDS = {
    "floats": (float, 1),
    "decimals": (Decimal, 1),
    "fine floats": (lambda n: n / 4, 0.25),
    "naive": (lambda n: dt.datetime(1970, 1, 1) + n * dt.timedelta(hours=1), dt.timedelta(hours=1)),
    "aware": (
        lambda n: dt.datetime(1970, 1, 1, tzinfo=UTC) + n * dt.timedelta(minutes=1),
        dt.timedelta(minutes=1),
    ),
    "dates": (lambda n: dt.date(1970, 1, 1) + n * dt.timedelta(days=1), dt.timedelta(days=1)),
    "durations": (lambda n: n * dt.timedelta(seconds=1), dt.timedelta(seconds=1)),
}


def scaled(window, to_time, unit):
    if hasattr(window, "gap"):
        return session(window.gap * unit)
    offset = None if window.offset is None else to_time(window.offset)
    return sliding(window.size * unit, every=window.every * unit, offset=offset)


@pytest.mark.parametrize("kind", KINDS)
def test_over_other_times_the_same_windows_as_over_ints(kind):
    to_time, unit = KINDS[kind]

    @given(st.one_of(slidings(), st.integers(1, 6).map(session)), STREAMS)
    def same(window, events):
        data = data_of(events)  # all windows are complete at the end, whatever comes between
        ours = collected(
            scaled(window, to_time, unit), [Data(to_time(e.time), e.value) for e in data]
        )
        theirs = collected(window, data)
        assert [d.value for d in ours] == [
            (to_time(s), to_time(e), v) for s, e, v in (d.value for d in theirs)
        ]
        assert [d.time for d in ours] == [just_before(d.value[1]) for d in ours]
        assert all(type(d.value[0]) is type(to_time(0)) for d in ours)

    same()


@pytest.mark.parametrize(
    ("time", "size", "end"),
    [
        (12, 10, 20),
        (12.5, 10, 20.0),
        (Decimal("12.5"), 10, Decimal(20)),
        (-3, 10, 0),
        (-0.5, 1, 0.0),
        (Decimal("-0.5"), 1, Decimal(0)),
        (dt.datetime(2024, 2, 29, 23, 59), dt.timedelta(hours=1), dt.datetime(2024, 3, 1)),
        (dt.datetime(1969, 12, 31, 23, 59), dt.timedelta(hours=1), dt.datetime(1970, 1, 1)),
        (
            dt.datetime(2024, 1, 1, 0, 30, tzinfo=BERLIN),
            dt.timedelta(days=1),
            dt.datetime(2024, 1, 1, tzinfo=UTC),
        ),
        (dt.date(2024, 2, 29), dt.timedelta(days=1), dt.date(2024, 3, 1)),
        (dt.timedelta(seconds=-1), dt.timedelta(minutes=1), dt.timedelta()),
    ],
)
def test_a_window_completes_exactly_when_the_watermark_reaches_its_last_time(time, size, end):
    last = just_before(end)
    before = [Data(time, "a"), Watermark(just_before(last))]
    op = aggregate_windows(tumbling(size), [aggregates.count()], lambda key, *row: row)
    state = op.initial
    for event in before:
        state, outputs = op.step(state, event)
        assert not data_of(outputs)
    _, outputs = op.step(state, Watermark(last))
    assert outputs == [Data(last, (end - size, end, 1)), Watermark(last)]


FINITE = st.floats(-1e9, 1e9)
STEPS = st.sampled_from([0.1, 0.3, 1 / 3, 0.7, 1e-3, 2.5])


@given(FINITE, STEPS)
def test_a_float_is_in_exactly_one_tumbling_window(time, size):
    ((start, end),) = windows_of(tumbling(size), time)
    assert start <= time < end
    assert start <= just_before(end) < end
    ((_, before),) = windows_of(tumbling(size), just_before(start))
    ((after, _),) = windows_of(tumbling(size), end)
    assert (before, after) == (start, end)


@given(st.integers(0, 10_000), st.integers(1, 20))
def test_the_windows_of_two_floats_are_the_same_windows(n, overlap):
    """Bounds do not depend on the event that asks for them: no window falls into two."""
    window = sliding(0.1 * overlap, every=0.1)
    times = [n / 100, n / 100 + 0.05, n / 100 + 0.1]
    starts = [start for time in times for start in starts_of(window, time)]
    numbers = Counter(round(Fraction(start) / Fraction(0.1)) for start in set(starts))
    assert max(numbers.values()) == 1


@given(st.decimals(-1000, 1000, places=3), st.sampled_from([1, 7, Decimal("0.1")]))
def test_a_decimal_is_in_exactly_one_tumbling_window(time, size):
    ((start, end),) = windows_of(tumbling(size), time)
    assert start <= time < end
    assert end - start == size


def test_windows_with_gaps_between_them_leave_events_out():
    assert [windows_of(sliding(2, every=5), time) for time in (0, 1, 2, 4, 5)] == [
        [(0, 2)],
        [(0, 2)],
        [],
        [],
        [(5, 7)],
    ]


def test_where_times_are_floats_an_int_is_one_too():
    """Else the window [0, 10) would end at 9, and be shown before 9.5 comes."""
    events = [Data(3, "a"), Watermark(9.2), Data(9.5, "b")]
    assert collected(tumbling(10), events, number=float) == [
        Data(math.nextafter(10, 0), (0.0, 10.0, ["a", "b"]))
    ]


@given(st.floats(allow_nan=False))
def test_windows_that_cannot_be_told_apart_get_a_sentence(time):
    assume(time + 0.1 == time)
    with pytest.raises(InputError, match="window-too-small"):
        windows_of(tumbling(0.1), time)
