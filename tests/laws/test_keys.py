"""Every method of `Keys` is a loop over the events, to the last bit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.errors import InputError
from cutwater.vectors import Keys

FLOATS = st.floats(allow_nan=False, width=64) | st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, -0.0])
WITH_NAN = FLOATS | st.just(math.nan)
INTS = st.integers(-(2**40), 2**40)


@st.composite
def batches(draw, numbers=WITH_NAN):
    """Keys, a value for each event and one for each key; each key has an event."""
    numbered = draw(st.lists(st.integers(0, 6), min_size=1, max_size=40))
    names = sorted(set(numbered), key=draw(st.sampled_from([lambda n: n, lambda n: -n])))
    of = np.array([names.index(n) for n in numbered], np.int64)
    values = draw(st.lists(numbers, min_size=len(of), max_size=len(of)))
    start = draw(st.lists(numbers, min_size=len(names), max_size=len(names)))
    return Keys(of, len(names)), np.array(values), np.array(start)


def bits(array):
    """What tells two arrays apart: their type and bytes, where all NaNs are one."""
    array = np.asarray(array)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), math.nan, array)
    return array.dtype, array.tobytes()


def running(keys, values, start, f):
    """For each event the fold of its key so far; `start` may be None. And the fold of each key."""
    held = dict(enumerate([] if start is None else start.tolist()))
    seen = []
    for key, value in zip(keys.of.tolist(), values.tolist(), strict=True):
        held[key] = f(held[key], value) if key in held else value + 0.0
        seen.append(held[key])
    return np.array(seen), np.array([held[key] for key in range(keys.size)])


def larger(a, b):
    return math.nan if math.isnan(a) or math.isnan(b) else max(a + 0.0, b + 0.0)


def smaller(a, b):
    return math.nan if math.isnan(a) or math.isnan(b) else min(a + 0.0, b + 0.0)


def plus(a, b):
    return a + b


@given(batches())
def test_sums_are_made_one_by_one(batch):
    keys, values, start = batch
    each, last = running(keys, values, start, plus)
    assert bits(keys.running_sum(values, start)) == bits(each)
    assert bits(keys.sum(values, start)) == bits(last)
    assert bits(keys.last(each)) == bits(last)


@given(batches())
def test_sums_begin_with_zero(batch):
    keys, values, _ = batch
    each, last = running(keys, values, np.zeros(keys.size), plus)
    assert bits(keys.running_sum(values)) == bits(each)
    assert bits(keys.sum(values)) == bits(last)


@given(batches(INTS))
def test_sums_of_whole_numbers(batch):
    keys, values, start = batch
    each, last = running(keys, values, start, plus)
    assert bits(keys.running_sum(values, start)) == bits(each)
    assert bits(keys.sum(values, start)) == bits(last)
    assert keys.running_sum(values > 0).tolist() == keys.running_sum((values > 0) * 1).tolist()


@given(batches(), st.booleans())
def test_extremes(batch, has_start):
    keys, values, start = batch
    start = start if has_start else None
    each, last = running(keys, values, start, larger)
    assert bits(keys.running_max(values, start)) == bits(each)
    assert bits(keys.max(values, start)) == bits(last)
    each, last = running(keys, values, start, smaller)
    assert bits(keys.running_min(values, start)) == bits(each)
    assert bits(keys.min(values, start)) == bits(last)


@given(batches())
def test_counts_and_positions(batch):
    keys, _, _ = batch
    of = keys.of.tolist()
    assert keys.position().tolist() == [of[:n].count(key) for n, key in enumerate(of)]
    assert keys.running_count().tolist() == [of[: n + 1].count(key) for n, key in enumerate(of)]
    assert keys.count().tolist() == [of.count(key) for key in range(keys.size)]
    start = np.arange(keys.size) * 10
    expected = [of[: n + 1].count(key) + 10 * key for n, key in enumerate(of)]
    assert keys.running_count(start=start).tolist() == expected


@given(batches(), st.booleans())
def test_neighbours(batch, are_objects):
    keys, values, start = batch
    if are_objects:
        values, start = values.astype(str).astype(object), start.astype(str).astype(object)
    held = dict(enumerate(start))
    first = {}
    before = []
    for key, value in zip(keys.of.tolist(), values, strict=True):
        before.append(held[key])
        held[key] = value
        first.setdefault(key, value)
    assert list(map(repr, keys.previous(values, start))) == list(map(repr, before))
    assert list(map(repr, keys.last(values))) == [repr(held[k]) for k in range(keys.size)]
    assert list(map(repr, keys.first(values))) == [repr(first[k]) for k in range(keys.size)]


@given(batches())
def test_rounds_go_through_the_events_of_each_key_in_order(batch):
    keys, _, _ = batch
    position = keys.position()
    for number, now in enumerate(keys.rounds()):
        assert sorted(now.tolist()) == np.flatnonzero(position == number).tolist()
    assert number == position.max()


@pytest.mark.parametrize("size", [1, 30, 20_000])
def test_many_events_are_summed_one_by_one_too(size):
    """numpy adds in pairs where it can: not here."""
    drawn = np.random.default_rng(size)
    of = np.append(np.arange(size), drawn.integers(0, size, 20_000))
    keys, values = Keys(of, size), drawn.random(len(of)) * 10.0 ** drawn.integers(-9, 9, len(of))
    each, last = running(keys, values, np.zeros(size), plus)
    assert bits(keys.running_sum(values)) == bits(each)
    assert bits(keys.sum(values)) == bits(last)


def test_no_events():
    keys = Keys(np.zeros(0, np.int64), 0)
    assert keys.running_sum(np.zeros(0)).tolist() == keys.sum(np.zeros(0)).tolist() == []
    assert keys.position().tolist() == list(keys.rounds()) == []


def test_one_value_for_all_and_types_in_common():
    keys = Keys(np.array([0, 1, 0]), 2)
    assert keys.running_sum(1, start=0.5).tolist() == [1.5, 1.5, 2.5]
    assert keys.previous(np.array([1, 2, 3]), None).tolist() == [None, None, 1]
    assert keys.previous(np.array([1, 2, 3]), 0).dtype == np.int64
    assert keys.max(np.array(["b", "c", "a"], object)).tolist() == ["b", "c"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda keys: keys.sum(np.zeros(2)),
            "keys.sum was given 2 values; the batch has 3 events",
        ),
        (
            lambda keys: keys.running_count(start=np.zeros(3)),
            "keys.running_count was given a start of 3 values; the batch has 2 keys",
        ),
        (
            lambda keys: keys.last(np.zeros((3, 1))),
            "keys.last was given an array of shape (3, 1); the batch has 3 events",
        ),
    ],
)
def test_what_has_another_length_is_reported(call, message):
    with pytest.raises(InputError) as raised:
        call(Keys(np.array([0, 1, 0]), 2))
    assert raised.value.problems[0].message == message
