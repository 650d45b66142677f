"""How states lie in a bucket: those of a loop in one place, step by step and key by key."""

import pytest
from support.spark.toy_buckets import bucket
from support.spark.toy_spark import Group

import cutwater as cw
from cutwater.events import Data
from cutwater.ordering import NO_KEY, canonical
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.state import bucket as buckets
from cutwater.spark.state.cache import StateCache
from cutwater.spark.state.storage import storage_of


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    monkeypatch.setattr(buckets, "_cache", StateCache())


@cw.task(initial=None)
def counted(seen: int | None, n: int) -> tuple[int | None, list[int]]:
    """Counts down; a key is forgotten at its third event."""
    seen = (seen or 0) + 1
    return (None if seen == 3 else seen), [n // 10] if n >= 10 else []


def last_digit(n: int) -> int:
    return n % 10


def counting(stream: cw.Stream) -> cw.Stream:
    return stream.key_by(last_digit).apply(counted)


flow = cw.Flow("counting")
flow.sink("out", flow.source("numbers", int).iterate(counting, name="loop"))
segment = spark_plan(flow).segments[1]
storage = storage_of(segment, None, None)


def turn(group, *numbers):
    """An epoch with these numbers; what it wrote of each step, by key."""
    states = bucket(group)
    state = storage.read(states, NO_KEY, None)
    for n in numbers:
        state, _ = segment.operator.step(state, Data(0, n))
    state, _ = segment.operator.barrier(state)
    written = []
    put = states.put
    states.put = lambda step, key, encoded: (written.append((step, key)), put(step, key, encoded))
    storage.write(states, NO_KEY, state, segment.operator.is_blank(state))
    states.save()
    return {key for step, key in written if step == "counted"}


def test_an_epoch_writes_the_keys_to_which_something_came_and_no_others():
    group = Group()
    assert turn(group, *range(10)) == {canonical(n) for n in range(10)}
    assert turn(group, 43) == {canonical(3), canonical(4)}
    assert set(bucket(group).keys("counted")) == {canonical(n) for n in range(10)}


def test_an_epoch_decodes_the_keys_to_which_something_came_and_no_others():
    group = Group()
    turn(group, *range(10))
    states = bucket(group)
    asked = []
    get = states.get
    states.get = lambda step, key: (asked.append(key), get(step, key))[1]
    state = storage.read(states, NO_KEY, None)
    state, _ = segment.operator.step(state, Data(0, 6))
    segment.operator.barrier(state)
    assert set(asked) == {canonical(6)}


def test_a_key_that_is_forgotten_is_gone_from_the_bucket_and_the_loop_with_its_last():
    group = Group()
    turn(group, 1, 1, 2)
    assert set(bucket(group).keys("counted")) == {canonical(1), canonical(2)}
    turn(group, 1)
    assert set(bucket(group).keys("counted")) == {canonical(2)}
    assert set(bucket(group).keys("loop")) == {NO_KEY}
    turn(group, 2, 2)
    assert not bucket(group).keys("counted")
    assert not bucket(group).keys("loop")


def test_a_state_is_what_it_would_be_had_it_never_been_written():
    group, whole = Group(), segment.operator.start_for(None)
    for numbers in ([1, 12, 23], [31, 2], [45, 1], [1, 1, 2], [77]):
        turn(group, *numbers)
        for n in numbers:
            whole, _ = segment.operator.step(whole, Data(0, n))
        whole, _ = segment.operator.barrier(whole)
    found = storage.read(bucket(group), NO_KEY, None)
    kept = [{key: held.states[key][1] for key in held.states} for held in found.held]
    assert kept == [{k: state for k, (_, state) in held.states.items()} for held in whole.held]
    assert any(kept)
