"""The states of a bucket are a plain dict, whatever workers, failures and compactions do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_spark import Store

from cutwater.spark import buckets
from cutwater.spark.buckets import BucketStates

KEYS = st.sampled_from([b"a", b"b", b"c"])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["one", "two"]), KEYS, st.none() | st.binary(min_size=1, max_size=9)),
    max_size=5,
)
EPOCHS = st.lists(
    st.tuples(st.integers(0, 1), CHANGES, st.sampled_from(["good", "good", "lost", "half"])),
    max_size=12,
)


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    monkeypatch.setattr(buckets, "_copies", {})


def contents(states):
    return {
        (step, key): states.get(step, key)
        for step in ("one", "two")
        for key in (b"a", b"b", b"c")
        if states.get(step, key) is not None
    }


@given(EPOCHS, st.integers(0, 60), st.integers(1, 40))
def test_any_interleaving_of_workers_and_failures_is_a_plain_dict(epochs, smallest_log, page_bytes):
    """Two workers with copies of their own; `lost`: the store rolls back after a whole attempt.

    A `half` attempt dies before it saves. Small pages and logs make compactions frequent.
    """
    usual = buckets.SMALLEST_LOG, buckets.PAGE_BYTES, buckets._copies
    copies = [{}, {}]
    store, wanted = Store(), {}
    try:
        buckets.SMALLEST_LOG, buckets.PAGE_BYTES = smallest_log, page_bytes
        for worker, changes, fate in epochs:
            buckets._copies = copies[worker]
            before = store.save_point()
            states = BucketStates(store, "query", 0, 7)
            assert contents(states) == wanted
            attempt = dict(wanted)
            for step, key, state in changes:
                states.put(step, key, state)
                attempt[step, key] = state
            attempt = {place: state for place, state in attempt.items() if state is not None}
            assert contents(states) == attempt
            if fate != "half":
                states.save()
            if fate == "good":
                wanted = attempt
            else:
                store.roll_back(before)
        for worker in (0, 1):
            buckets._copies = copies[worker]
            assert contents(BucketStates(store, "query", 0, 7)) == wanted
        buckets._copies = {}
        assert contents(BucketStates(store, "query", 0, 7)) == wanted
    finally:
        buckets.SMALLEST_LOG, buckets.PAGE_BYTES, buckets._copies = usual


def epoch(store, *changes, place=("query", 0, 7)):
    states = BucketStates(store, *place)
    for change in changes:
        states.put(*change)
    states.save()


def test_an_epoch_that_changes_nothing_writes_nothing():
    store = Store()
    epoch(store, ("one", b"a", b"1"))
    before = store.save_point()
    epoch(store, ("one", b"a", b"1"), ("one", b"b", None))
    assert store.save_point() == before


def test_a_fresh_copy_reads_neither_pages_nor_log():
    store = Store()
    epoch(store, ("one", b"a", b"1"))
    store.pages.get = store.log.get = None
    assert BucketStates(store, "query", 0, 7).get("one", b"a") == b"1"


def test_a_copy_that_is_behind_catches_up_from_the_log_alone():
    store = Store()
    epoch(store, ("one", b"a", b"1"))
    token, states = buckets._copies["query", 0, 7]
    other_worker = {("query", 0, 7): (token, dict(states))}
    epoch(store, ("one", b"b", b"2"))
    buckets._copies = other_worker
    store.pages.get = None
    assert contents(BucketStates(store, "query", 0, 7)) == {
        ("one", b"a"): b"1",
        ("one", b"b"): b"2",
    }


def test_the_log_is_folded_into_pages_and_stays_short():
    store = Store()
    for number in range(300):
        epoch(store, ("one", b"%d" % (number % 5), b"%d" % number * 500))
        _, base_bytes, log_bytes, _, _ = store.head.value
        assert log_bytes <= max(base_bytes, buckets.SMALLEST_LOG)
    assert len(store.log.items) < 100
    assert store.pages.items


def test_pages_are_bounded():
    store = Store()
    big = bytes(buckets.PAGE_BYTES // 3)
    epoch(store, *(("one", b"%d" % number, big) for number in range(10)))
    sizes = [len(page) for (page,) in store.pages.items]
    assert len(sizes) > 1
    assert max(sizes) < 2 * buckets.PAGE_BYTES


def test_queries_levels_and_labels_do_not_share_copies():
    first, second = Store(), Store()
    epoch(first, ("one", b"a", b"1"))
    for place in (("other", 0, 7), ("query", 1, 7), ("query", 0, 8)):
        assert contents(BucketStates(second, *place)) == {}


def test_a_bucket_that_loses_every_key_is_empty_again():
    store = Store()
    epoch(store, ("one", b"a", bytes(buckets.SMALLEST_LOG)))
    epoch(store, ("one", b"a", None))
    buckets._copies.clear()
    assert contents(BucketStates(store, "query", 0, 7)) == {}
