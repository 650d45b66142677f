"""The log of a bucket stays short, whatever happens, and no epoch pays for all of it."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.spark.toy_buckets import COLUMNS, bucket, constants, entries, epoch, head
from support.spark.toy_spark import Group

from cutwater.spark.state import bucket as buckets
from cutwater.spark.state import changelog
from cutwater.spark.state.cache import StateCache


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    monkeypatch.setattr(buckets, "_cache", StateCache())


def test_entries_are_bounded():
    group = Group()
    big = bytes(changelog.ENTRY_BYTES // 3)
    states = bucket(group)
    states.put_many("one", [b"%d" % number for number in range(10)], [big] * 10)
    states.put("two", b"huge", bytes(changelog.ENTRY_BYTES * 3))
    states.save()
    sizes = sorted(map(len, entries(group).values()))
    assert len(sizes) == 6
    assert sizes[-2] < 1.01 * changelog.ENTRY_BYTES


def is_bounded(group):
    """Spelled out: what is removed keeps pace with what is appended and with what is deleted."""
    told = head(group)
    slack = 2 * buckets.SMALLEST_LOG + 2 * (changelog.ENTRY_BYTES + changelog.ENTRY_COST)
    return told.total <= 4 * told.live + slack


SIZES = st.sampled_from([None, 0, 1, 30, 200, 900])
FLOODS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), SIZES, st.sampled_from([b"x", b"y"])),
    min_size=1,
    max_size=60,
)


@given(FLOODS, st.integers(1, 4))
@settings(max_examples=300)
@example([(0, 40, 900, b"x"), (0, 39, None, b"x")], 1)
def test_the_log_is_bounded_by_what_is_current_whatever_happens(floods, repetitions):
    with constants(SMALLEST_LOG=500, SMALL_STATE=50, ENTRY_BYTES=300, ENTRY_COST=10):
        group = Group()
        for first, last, size, letter in floods * repetitions:
            keys = [b"%d" % number for number in range(first, last)]
            epoch(group, *(("one", key, None if size is None else letter * size) for key in keys))
            largest = max([0, *map(len, entries(group).values())])
            told = head(group)
            assert told.total <= 4 * told.live + 1000 + 2 * largest


@pytest.mark.parametrize("states", [(b"yes", b"no"), (b"1" * 50, b"2" * 50, b"3" * 50)])
def test_states_that_come_back_do_not_fill_the_log(states):
    """A state in an old entry may look current, and the key has it from a newer entry."""
    group, rng = Group(), random.Random(1)
    with constants(SMALLEST_LOG=1000, ENTRY_COST=100, SMALL_STATE=0):
        for number in range(2000):
            key = b"%d" % rng.randrange(200)
            epoch(group, ("one", key, states[number % len(states)]))
        told = head(group)
        assert told.total <= 4 * told.live + 2000


def test_a_bucket_that_loses_every_key_is_empty_again():
    group = Group()
    epoch(group, *(("one", b"%d" % number, bytes(1000)) for number in range(300)))
    epoch(group, *(("one", b"%d" % number, None) for number in range(300)))
    told = head(group)
    assert told.live == 0
    assert told.total < buckets.SMALLEST_LOG
    buckets._cache = StateCache()
    assert not bucket(group).keys("one")


def test_work_of_an_epoch_follows_what_it_changes_not_what_there_is():
    """Twenty times the states, and a cleaning that goes on all the time: the same traffic."""

    def traffic(keys):
        buckets._cache = StateCache()
        group, rng, moved = Group(), random.Random(keys), []
        states = bucket(group)
        states.put_many("one", [b"%08d" % key for key in range(keys)], [bytes(30)] * keys)
        states.save()
        for number in range(3 * keys // 100):
            group.log.calls.clear()
            before = entries(group)
            changed = [b"%08d" % rng.randrange(keys) for _ in range(100)]
            epoch(group, *(("one", key, b"%030d" % number) for key in changed))
            after = entries(group)
            assert len(group.log.calls) < 40
            moved.append(sum(len(after[key]) for key in after.keys() - before.keys()))
        return moved

    small, large = traffic(2_000), traffic(40_000)
    assert max(large) < 2 * changelog.ENTRY_BYTES
    assert sum(large) / len(large) < 1.3 * sum(small) / len(small)


def test_keys_that_come_and_go_leave_nothing_behind():
    """A soak: a key space that moves on, over 2,000 epochs, in two workers with small limits."""
    group, rng, workers = Group(), random.Random(5), [StateCache(), StateCache()]
    limit, steady, wanted = 400_000, [], {}
    for number in range(2_000):
        buckets._cache = rng.choice(workers)
        states = bucket(group, limit=limit)
        table = states.table("rows", COLUMNS)
        new = [b"%d" % (number * 10 + digit) for digit in range(10)]
        old = [b"%d" % ((number - 50) * 10 + digit) for digit in range(10)]
        states.put_many("one", [*new, *old], [b"state of %s" % key for key in new] + [None] * 10)
        wanted = {key: state for key, state in wanted.items() if key not in old}
        wanted |= {key: b"state of %s" % key for key in new}
        table.write(table.add(new), {"count": number, "sum": float("nan"), "names": [["x"]] * 10})
        gone = table.slots(old)
        table.remove(gone[gone >= 0])
        states.save()
        assert is_bounded(group)
        assert buckets._cache.bytes <= limit
        if number > 200:
            steady.append((head(group).total, len(entries(group)), buckets._cache.bytes))
    assert max(total for total, _, _ in steady) < 250_000
    assert max(count for _, count, _ in steady) < 150
    buckets._cache = StateCache()
    states = bucket(group)
    assert states.states_of("one") == wanted
    assert set(states.table("rows", COLUMNS).keys_of(states.table("rows", COLUMNS).all())) == {
        *wanted
    }
