"""Being told that a time is complete (P3, section 2.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operators.orders import any_order, cases, partial_orders
from support.operators.paper import mono

from cutwater.errors import InputError
from cutwater.events import Data, Watermark
from cutwater.operators import produce
from cutwater.operators.keyed import Keyed
from cutwater.operators.notify import Notify, on_complete
from cutwater.ordering import NO_KEY, canonical
from cutwater.times import Product


@st.composite
def requested(draw, orders=None):
    """A monotone stream, and for each time the times that are asked for at it, and when told."""
    case = draw(cases(orders if orders is not None else any_order()))
    above = {t: [s for s in case.times if t <= s] for t in case.times}
    asked = {t: draw(st.lists(st.sampled_from(above[t]), max_size=3)) for t in case.times}
    later = {t: [s for s in above[t] if s != t] for t in case.times}
    again = {
        t: draw(st.lists(st.sampled_from(later[t]), max_size=2)) if later[t] else []
        for t in case.times
    }
    return case, asked, again


def telling(asked, again):
    """Emits what it got and what it was told, in order."""

    def receive(count, time, value):
        return count + 1, [("got", value), *map(Notify, asked[time])]

    def complete(count, time):
        return count + 1, [("told", count), *map(Notify, again[time])]

    return on_complete(receive, complete, 0)


def told(outputs):
    return [event.time for event in outputs if isinstance(event, Data) and event.value[0] == "told"]


def completed_by(marks, times):
    return {t for t in times if any(t <= mark for mark in marks)}


@given(requested())
def test_each_requested_time_is_notified_once_when_it_is_complete_and_the_last_ones_at_the_end(
    drawn,
):
    case, asked, _ = drawn
    op = telling(asked, dict.fromkeys(case.times, ()))
    outputs, state, waiting = [], op.initial, set()
    for event in case.lxs:
        state, more = op.step(state, event)
        if isinstance(event, Watermark):
            due = completed_by([event.time], waiting)
            assert sorted(map(repr, told(more))) == sorted(map(repr, due))
            assert more[-1] == event
            waiting -= due
        else:
            assert told(more) == []
            waiting |= set(asked[event.time])
        outputs += more
    assert sorted(map(repr, told(op.finish(state)))) == sorted(map(repr, waiting))


@given(requested())
def test_a_time_is_notified_after_all_events_at_or_before_it(drawn):
    """So nothing at or before it is got any more."""
    case, asked, again = drawn
    outputs = list(produce(telling(asked, again), case.lxs))
    for n, event in enumerate(outputs):
        if isinstance(event, Data) and event.value[0] == "told":
            assert not [
                e
                for e in outputs[n:]
                if isinstance(e, Data) and e.value[0] == "got" and e.time <= event.time
            ]


@given(requested())
def test_minimal_times_come_first_also_those_that_are_asked_for_during_a_notification(drawn):
    """By hand: at each watermark take, again and again, a minimal one of those that are due."""
    case, asked, again = drawn
    op = telling(asked, again)
    state, waiting = op.initial, set()
    for event in case.lxs:
        state, more = op.step(state, event)
        if isinstance(event, Data):
            waiting |= set(asked[event.time])
            continue
        for time in told(more):
            due = completed_by([event.time], waiting)
            assert time in due
            assert not any(other <= time and other != time for other in due)
            waiting.remove(time)
            waiting |= set(again[time])
        assert not completed_by([event.time], waiting)


@given(requested())
def test_the_end_tells_what_was_asked_for_but_nothing_beyond(drawn):
    case, asked, again = drawn
    op = telling(asked, again)
    state = op.initial
    for event in case.lxs:
        state, _ = op.step(state, event)
    waiting = set() if state is None else set(state[1])
    reached = set(waiting)
    found = told(op.finish(state))
    for time in found:
        waiting.remove(time)
        waiting |= set(again[time])
    assert reached <= set(found)
    assert all(any(time <= limit for limit in reached) for time in found)
    assert not completed_by(reached, waiting)


@given(requested())
def test_monotone_streams_stay_monotone_and_watermarks_pass(drawn):
    case, asked, again = drawn
    outputs = list(produce(telling(asked, again), case.lxs))
    assert mono(outputs, set(case.seen))
    marks = [event for event in case.lxs if isinstance(event, Watermark)]
    assert [event for event in outputs if isinstance(event, Watermark)] == marks


@given(partial_orders(), st.data())
def test_a_request_into_the_past_or_sideways_is_refused(times, data):
    now = data.draw(st.sampled_from(times))
    asked = data.draw(st.sampled_from(times))
    op = on_complete(lambda s, t, v: (s, [Notify(asked)]), lambda s, t: (s, []), 0, name="asks")
    if now <= asked:
        op.step(op.initial, Data(now, "a"))
    else:
        with pytest.raises(InputError, match=r"notification-in-the-past.*'asks' asked"):
            op.step(op.initial, Data(now, "a"))


def test_during_a_notification_a_request_for_the_present_is_refused():
    op = on_complete(lambda s, t, v: (s, [Notify(t)]), lambda s, t: (s, [Notify(t)]), 0)
    with pytest.raises(InputError, match="notification-in-the-past"):
        list(produce(op, [Data(1, "a"), Watermark(1)]))


def test_a_request_during_a_notification_never_overtakes_an_earlier_one_that_is_due():
    """The case from P3's neighbours: told of 1, it asks for 3, while 2 is due."""
    asked, again = {0: [1, 2]}, {1: [3], 2: [], 3: []}
    op = telling(asked, again)
    assert told(produce(op, [Data(0, "a"), Watermark(5)])) == [1, 2, 3]


def test_what_is_asked_for_twice_is_notified_once():
    asked, again = {0: [2], 1: [2], 3: [3]}, {2: [], 3: []}
    op = telling(asked, again)
    events = [Data(0, "a"), Data(1, "b"), Watermark(2), Watermark(2), Data(3, "c"), Watermark(3)]
    assert told(produce(op, events)) == [2, 3]


def test_the_state_goes_away_when_it_is_none_and_nothing_is_asked_for():
    op = on_complete(lambda s, t, v: (None, [Notify(t)]), lambda s, t: (None, [s]), 7)
    state, _ = op.step(op.initial, Data(1, "a"))
    assert not op.is_blank(state)
    assert not op.is_idle(state)
    state, outputs = op.step(state, Watermark(1))
    assert outputs == [Data(1, 7), Watermark(1)]
    assert op.is_blank(state)


def test_a_state_without_requests_is_kept_and_left_alone():
    op = on_complete(lambda s, t, v: (s + 1, []), lambda s, t: (s, []), 0)
    state, _ = op.step(op.initial, Data(1, "a"))
    assert op.is_idle(state)
    assert not op.is_blank(state)


@given(requested(), st.data())
def test_what_is_asked_for_before_the_first_event_is_notified_as_if_an_event_had_asked(drawn, data):
    """P3's Initial(p): the same as a request made by an event before all others."""
    case, asked, again = drawn
    first = data.draw(st.lists(st.sampled_from(case.times), max_size=3))

    def receive(count, time, value):
        return count + 1, [("got", value), *map(Notify, asked[time])]

    def complete(count, time):
        return count + 1, [("told", count), *map(Notify, again[time])]

    by_hand = on_complete(receive, complete, 0)
    state = (None, tuple(dict.fromkeys(first))) if first else by_hand.initial
    awake = on_complete(receive, complete, 0, requests=first)
    assert awake.is_awake == bool(first)
    assert list(produce(awake, case.lxs)) == list(produce(by_hand.at(state), case.lxs))


@given(st.permutations([Product(0, 2), Product(1, 1), Product(2, 0)]))
def test_unrelated_times_that_are_due_at_once_are_notified_in_the_order_of_their_bytes(asked):
    """Which comes first does not depend on who asked first."""
    op = on_complete(lambda s, t, v: (s, []), lambda s, t: (s, [("told", t)]), 0, requests=asked)
    outputs = produce(op, [Watermark(Product(5, 5))])
    assert told(outputs) == sorted(asked, key=canonical)


@given(st.permutations([0.25, 0.5, 0.75]))
def test_an_earlier_time_is_notified_first_also_where_its_bytes_come_later(asked):
    assert canonical(0.5) < canonical(0.25)
    op = on_complete(lambda s, t, v: (s, []), lambda s, t: (s, [("told", t)]), 0, requests=asked)
    assert told(produce(op, [Watermark(1.0)])) == [0.25, 0.5, 0.75]


def test_times_without_canonical_bytes_are_notified_in_the_order_of_the_requests():
    class Own:
        def __le__(self, other):
            return self is other or other is everything

    everything, one, two = Own(), Own(), Own()
    op = on_complete(
        lambda s, t, v: (s, []), lambda s, t: (s, [("told", t)]), 0, requests=[two, one]
    )
    assert told(produce(op, [Watermark(everything)])) == [two, one]


def test_what_was_asked_for_first_is_not_asked_for_again_when_the_state_goes_away():
    op = on_complete(
        lambda s, t, v: (None, []), lambda s, t: (None, [("told", t)]), 0, requests=[1]
    )
    held = Keyed(op)
    assert [told(out) for *_, out in held.watermarks([1])] == [[1]]
    held.data(None, NO_KEY, Data(2, "a"))
    assert [told(out) for *_, out in held.watermarks([2])] == []
    assert [told(out) for *_, out in held.finish()] == [[]]
