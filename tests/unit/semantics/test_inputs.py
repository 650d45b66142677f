"""Epochs, times, watermarks by rule, and what is late."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.semantics.inputs import epochs_of, split
from cutwater.times import just_before

B = cw.BARRIER


@dataclass(frozen=True)
class Reading:
    at: Any
    name: str = ""


def sources(*names):
    flow = cw.Flow("inputs")
    for name in names:
        flow.source(name, int)
    return flow.steps


def cut(items, epoch_size=None):
    return [epoch["a"] for epoch in epochs_of(sources("a"), {"a": items}, epoch_size)]


@pytest.mark.parametrize(
    ("items", "epochs"),
    [
        ([], [[]]),
        ([1, 2], [[1, 2]]),
        ([1, B, 2], [[1], [2]]),
        ([1, B, 2, B], [[1], [2]]),
        ([B, 1], [[], [1]]),
        ([1, B, B, 2], [[1], [], [2]]),
        ([B], [[]]),
        ([B, B], [[], []]),
    ],
)
def test_a_barrier_ends_an_epoch_and_so_does_the_end(items, epochs):
    assert cut(items) == epochs


@pytest.mark.parametrize(
    ("size", "epochs"),
    [
        (None, [[1, 2, 3]]),
        (1, [[1], [2], [3]]),
        (2, [[1, 2], [3]]),
        (3, [[1, 2, 3]]),
        (9, [[1, 2, 3]]),
    ],
)
def test_without_barriers_epochs_have_a_size(size, epochs):
    assert cut([1, 2, 3], size) == epochs


def test_barriers_go_before_the_size():
    assert cut([1, 2, 3, B, 4], 1) == [[1, 2, 3], [4]]


def test_the_size_is_for_each_source_and_a_shorter_one_has_nothing_in_later_epochs():
    cut = epochs_of(sources("a", "b"), {"a": [1, 2, 3], "b": [B, 9]}, 2)
    assert cut == [{"a": [1, 2], "b": []}, {"a": [3], "b": [9]}]


def test_any_iterable_is_an_input():
    assert cut(iter(range(3))) == [[0, 1, 2]]


C = cw.CRASH


@pytest.mark.parametrize(
    ("items", "size", "places"),
    [
        ([C, 1], None, [(0, 0)]),
        ([1, C, 2], None, [(0, 1)]),
        ([1, C, B, 2, C], None, [(0, 1), (1, 1)]),
        ([1, C, 2, C, 3], 2, [(0, 1), (1, 0)]),
        ([1, 2, C], 2, [(1, 0)]),
        ([1, 2, C, B, 3], 2, [(0, 2)]),
    ],
)
def test_a_crash_stands_before_the_item_that_follows_it(items, size, places):
    plain, crashes = split({"a": items}, size)
    assert C not in plain["a"]
    assert [(epoch, index) for epoch, index, _ in crashes["a"]] == places


@given(st.lists(st.one_of(st.integers(), st.just(B))), st.none() | st.integers(1, 4))
def test_no_item_is_lost_or_moved(items, size):
    assert [x for epoch in cut(items, size) for x in epoch] == [x for x in items if x is not B]


def seen(items, *, time="at", delay=None, **options):
    """The events that a source lets through, by epoch, and how many were late."""
    flow = cw.Flow("source")
    rule = None if delay is None else cw.bounded_delay(delay)
    flow.sink("out", flow.source("a", Any, time=time, watermark=rule))
    result = cw.simulate(flow, {"a": items}, **options)
    return list(result.events["out"]), result.late["a"]


def data(*times):
    return [cw.Data(t, Reading(t)) for t in times]


def readings(*times):
    return [Reading(t) for t in times]


def test_a_field_is_the_time_and_nothing_is_complete_before_the_end():
    assert seen([*readings(3, 1), B, *readings(2)]) == ([data(3, 1), data(2), []], 0)


def test_without_a_field_values_are_numbered_and_each_epoch_completes_what_it_numbered():
    events, late = seen(["x", "y", B, B, "z"], time=None)
    assert late == 0
    assert events == [
        [cw.Data(0, "x"), cw.Data(1, "y"), cw.Watermark(1)],
        [],
        [cw.Data(2, "z"), cw.Watermark(2)],
        [],
    ]


def test_events_bring_their_own_times_and_watermarks():
    items = [cw.Data(7, "x"), cw.Watermark(5), cw.Data(6, "y"), cw.Data(5, "late"), cw.Watermark(9)]
    events, late = seen(items, time=None)
    assert late == 1
    assert events == [[*items[:3], items[4]], []]


def test_a_bounded_delay_completes_what_is_further_behind_after_each_epoch():
    events, late = seen([*readings(10, 4, 12), B, *readings(7), B, *readings(20)], delay=5)
    assert events == [
        [*data(10, 4, 12), cw.Watermark(6)],
        data(7),
        [*data(20), cw.Watermark(14)],
        [],
    ]
    assert late == 0


@pytest.mark.parametrize(
    ("newest", "delay"),
    [
        (10, 5),
        (10, 0),
        (-3, 2),
        (2.5, 0.5),
        (2.5, 1),
        (dt.datetime(2024, 3, 1), dt.timedelta(hours=1)),
        (dt.datetime(2024, 3, 1, tzinfo=dt.UTC), dt.timedelta(0)),
        (dt.date(2024, 3, 1), dt.timedelta(days=1)),
        (dt.timedelta(hours=1), dt.timedelta(minutes=1)),
    ],
)
def test_exactly_the_delay_behind_the_newest_is_on_time_and_anything_earlier_is_late(newest, delay):
    on_time = newest - delay
    too_late = just_before(on_time)
    events, late = seen([*readings(newest), B, *readings(on_time, too_late)], delay=delay)
    assert events == [[*data(newest), cw.Watermark(too_late)], data(on_time), []]
    assert late == 1


def test_within_an_epoch_nothing_is_late_by_the_rule():
    """Lateness is judged against what was complete when the epoch began."""
    assert seen(readings(100, 1), delay=5)[1] == 0
    assert seen([*readings(100), B, *readings(1)], delay=5)[1] == 1


@given(st.lists(st.integers(0, 30)), st.integers(0, 8), st.integers(1, 5))
def test_late_is_what_lies_behind_the_newest_of_earlier_epochs(times, delay, size):
    kept, late = [], 0
    for start in range(0, len(times), size):
        newest = max((t for t in kept), default=None)
        for t in times[start : start + size]:
            if newest is not None and t < newest - delay:
                late += 1
            else:
                kept.append(t)
    events, counted = seen(readings(*times), delay=delay, epoch_size=size)
    assert [e.time for epoch in events for e in epoch if isinstance(e, cw.Data)] == kept
    assert counted == late
    assert cw.monotone([e for epoch in events for e in epoch])


def test_a_late_event_does_not_move_the_newest():
    events, _ = seen([*readings(10), B, *readings(1), B, *readings(11)], delay=2)
    assert [e.time for epoch in events for e in epoch if isinstance(e, cw.Watermark)] == [7, 8]


def test_a_rule_adds_nothing_to_a_watermark_that_says_more():
    events, _ = seen([*readings(10), cw.Watermark(20), B, *readings(21)], delay=2)
    assert events == [[*data(10), cw.Watermark(20)], data(21), []]


@pytest.mark.parametrize("tp", [int, float, str, Any, int | None, list[int], Reading, dict])
def test_values_of_the_type_of_the_source_are_taken(tp):
    value = {
        int: True,
        float: 1,
        str: "",
        Any: object(),
        list[int]: [1],
        Reading: Reading(1),
        dict: {},
    }
    flow = cw.Flow("types")
    flow.sink("out", flow.source("a", tp))
    taken = [value.get(tp)]
    assert cw.simulate(flow, {"a": taken})["out"] == taken


@pytest.mark.parametrize(
    ("tp", "value"),
    [(int, "1"), (int, 1.5), (str, None), (Reading, {"at": 1}), (int | None, "x"), (list, ())],
)
def test_values_of_another_type_are_refused(tp, value):
    flow = cw.Flow("types")
    flow.sink("out", flow.source("a", tp))
    with pytest.raises(cw.InputError, match="record-type"):
        cw.simulate(flow, {"a": [value]})


@pytest.mark.parametrize(("policy", "kept"), [("keep", ["b"]), ("drop", [])])
def test_late_events_are_counted_and_kept_if_the_source_says_so(policy, kept):
    flow = cw.Flow("late")
    flow.sink("out", flow.source("items", str, late=policy))
    items = [cw.Data(2, "a"), cw.Watermark(2), cw.Data(1, "b")]
    result = cw.simulate(flow, {"items": items})
    assert (result.late, result.late_events) == ({"items": 1}, {"items": kept})
    assert cw.simulate(flow, {"items": items}, trace=True).late_events == {"items": kept}
    assert result["out"] == ["a"]


def test_a_late_event_ends_the_run_if_the_source_says_so():
    flow = cw.Flow("late")
    flow.sink("out", flow.source("items", str, late="fail"))
    with pytest.raises(cw.RunError, match="late-event"):
        cw.simulate(flow, {"items": [cw.Watermark(2), cw.Data(1, "b")]})
