"""Running aggregates, against Python's own over all values so far."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.events import Data, Watermark
from cutwater.operators import aggregates, produce
from cutwater.operators.aggregate import aggregate

BY_HAND = {
    "count": len,
    "sum": sum,
    "mean": statistics.mean,
    "min": min,
    "max": max,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "collect": list,
}
NUMBERS = st.integers(-100, 100)


def made(name):
    return getattr(aggregates, name)()


def test_every_aggregate_is_tested():
    assert {name for name in aggregates.__all__ if name != "Aggregate"} == set(BY_HAND)


def row(key, *results):
    return results


@given(st.lists(NUMBERS))
def test_after_each_event_the_aggregates_of_all_so_far(values):
    op = aggregate([made(name) for name in BY_HAND], row)
    expected = [
        Data(n, tuple(by_hand(values[: n + 1]) for by_hand in BY_HAND.values()))
        for n in range(len(values))
    ]
    assert list(produce(op, [Data(n, value) for n, value in enumerate(values)])) == expected


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), NUMBERS), max_size=4), max_size=5))
def test_by_epoch_once_for_each_that_had_events_at_the_time_of_the_last(epochs):
    op = aggregate([aggregates.collect()], row, emit="epoch")
    state, seen = op.initial, []
    for epoch in epochs:
        for time, value in epoch:
            state, outputs = op.step(state, Data(time, value))
            seen.append(value)
            assert outputs == ()
        state, outputs = op.barrier(state)
        assert list(outputs) == ([Data(epoch[-1][0], (seen,))] if epoch else [])
    assert list(op.finish(state)) == []


def test_the_end_of_the_input_is_a_barrier():
    op = aggregate([aggregates.count()], row, emit="epoch")
    assert list(produce(op, [Data(3, "a"), Watermark(2), Data(4, "b")])) == [
        Watermark(2),
        Data(4, (2,)),
    ]


@given(
    st.sampled_from(sorted(BY_HAND)), st.lists(NUMBERS, min_size=1), st.lists(NUMBERS, min_size=1)
)
def test_to_merge_is_to_add_the_later_values_to_the_earlier(name, earlier, later):
    a = made(name)

    def kept(values):
        state = a.zero
        for value in values:
            state = a.add(state, value)
        return state

    assert a.result(a.merge(kept(earlier), kept(later))) == BY_HAND[name](earlier + later)
    assert a.merge(a.zero, kept(later)) == kept(later)
    assert a.merge(kept(earlier), a.zero) == kept(earlier)


def test_a_field_or_the_whole_value():
    class Point:
        x = 5

    assert aggregates.sum("x").value_of(Point()) == 5
    assert aggregates.sum().value_of(7) == 7


@pytest.mark.parametrize(
    ("name", "field_type", "result_type"),
    [
        ("count", str, int),
        ("sum", float, float),
        ("mean", int, float),
        ("mean", float, float),
        ("min", str, str),
        ("last", bytes, bytes),
        ("collect", int, list[int]),
    ],
)
def test_the_type_of_a_result(name, field_type, result_type):
    assert made(name).type_of(field_type) == result_type


def test_the_key_is_in_the_record():
    op = aggregate([aggregates.count()], lambda key, n: (key, n))
    _, outputs = op.step(op.start_for("k"), Data(1, "a"))
    assert outputs == [Data(1, ("k", 1))]
