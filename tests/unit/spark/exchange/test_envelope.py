"""Parcels: what is posted comes out again, in the bucket of its key, in the order it was put in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.ordering import bucket_of
from cutwater.spark.exchange import envelope
from cutwater.spark.exchange.batch import EventBatch, joined
from cutwater.spark.exchange.bucket_hash import labels
from cutwater.spark.exchange.envelope import (
    ARROW_SCHEMA,
    DATA,
    ShuffleWriter,
    pack_lines,
    record_batches,
    unpack_lines,
)

EVENTS = st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=3), st.binary(max_size=40)))


def batch_of(events, label=None):
    orders, keys, lines = map(list, zip(*events, strict=True)) if events else ([], [], [])
    return EventBatch(orders, keys, lines, label=label)


@given(st.lists(st.tuples(st.integers(0, 3), EVENTS)), st.integers(1, 60))
def test_nothing_is_lost_doubled_or_reordered(posted, largest_body):
    """Whatever the size at which a body is split."""
    usual, envelope.LARGEST_BODY = envelope.LARGEST_BODY, largest_body
    try:
        shuffle = ShuffleWriter(labels(4))
        for target, events in posted:
            shuffle.post(target, batch_of(events), pack_lines)
        rows = shuffle.drain()
    finally:
        envelope.LARGEST_BODY = usual
    sent = [(target, event) for target, events in posted for event in events]
    addresses = {(labels(4)[bucket_of(key, 4)], target) for target, (_, key, _) in sent}
    assert {(label, target) for label, target, _, _ in rows} == addresses
    for address in addresses:
        wanted = [
            (order, line)
            for target, (order, key, line) in sent
            if (labels(4)[bucket_of(key, 4)], target) == address
        ]
        bodies = [body for label, target, _, body in rows if (label, target) == address]
        assert [pair for body in bodies for pair in zip(*unpack_lines(body), strict=True)] == wanted
    assert all(kind == DATA for _, _, kind, _ in rows)
    assert shuffle.drain() == []


def test_a_batch_whose_bucket_is_known_is_not_hashed():
    shuffle = ShuffleWriter(labels(4))
    shuffle.post(1, batch_of([(b"o", b"key", b"line")], label=77), pack_lines)
    assert [row[:3] for row in shuffle.drain()] == [(77, 1, DATA)]


def test_an_event_that_is_too_large_goes_alone(monkeypatch):
    monkeypatch.setattr(envelope, "LARGEST_BODY", 10)
    shuffle = ShuffleWriter(labels(1))
    shuffle.post(1, batch_of([(b"1", b"", b"x" * 99), (b"2", b"", b"y")], label=0), pack_lines)
    bodies = [unpack_lines(body) for *_, body in shuffle.drain()]
    assert bodies == [([b"1"], [b"x" * 99]), ([b"2"], [b"y"])]


@given(EVENTS, st.randoms())
def test_in_order_is_the_stable_sort_by_order(events, random):
    random.shuffle(events)
    found = batch_of(events).in_order()
    assert list(zip(found.orders, found.key_bytes, found.values, strict=True)) == sorted(
        events, key=lambda event: event[0]
    )


@given(st.lists(EVENTS, min_size=1))
def test_joined_batches_follow_one_another(parts):
    found = joined([batch_of(part) for part in parts])
    assert list(zip(found.orders, found.key_bytes, found.values, strict=True)) == [
        event for part in parts for event in part
    ]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_rows_as_arrow_have_the_schema_of_rows(count):
    found = list(record_batches([(1, 2, DATA, b"x")] * count))
    assert sum(batch.num_rows for batch in found) == count
    assert all(batch.schema == ARROW_SCHEMA for batch in found)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([3, 3, 3, 3], [3, 1]), ([11], [1]), ([11, 1, 11], [1, 1, 1]), ([10], [1]), ([5, 5], [2])],
)
def test_a_batch_of_rows_has_so_many_bytes_at_most_or_one_row(monkeypatch, sizes, expected):
    monkeypatch.setattr(envelope, "LARGEST_BATCH", 10)
    rows = [(1, 2, DATA, bytes(size)) for size in sizes]
    found = list(record_batches(rows))
    assert [batch.num_rows for batch in found] == expected
    bodies = [body for batch in found for body in batch.column(3).to_pylist()]
    assert bodies == [body for _, _, _, body in rows]


class Summing:
    """Folds numbers by key."""

    def folded(self, batches):
        totals = {}
        for batch in batches:
            for key, value in zip(batch.key_bytes, batch.values, strict=True):
                totals[key] = totals.get(key, 0) + value
        return EventBatch([], list(totals), list(totals.values()))

    def pack(self, batch):
        return pack_lines(
            EventBatch(batch.key_bytes, [], [b"%d" % value for value in batch.values])
        )


def totals_of(rows):
    """What each target is told of each key, added up."""
    totals = {}
    for _, target, _, body in rows:
        for key, value in zip(*unpack_lines(body), strict=True):
            totals[target, key] = totals.get((target, key), 0) + int(value)
    return totals


RUNS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 1), st.lists(st.binary(max_size=1), min_size=1))),
        st.booleans(),
    )
)


@given(RUNS, st.integers(1, 12))
def test_what_is_gathered_adds_up_whatever_waits_and_whatever_is_dropped(runs, most):
    usual, envelope.GATHERED = envelope.GATHERED, most
    try:
        shuffle, rows, wanted = ShuffleWriter(labels(4)), [], {}
        for posts, is_dropped in runs:
            for target, keys in posts:
                shuffle.gather(target, EventBatch([], keys, [1] * len(keys)), Summing())
                for key in keys if not is_dropped else ():
                    wanted[target, key] = wanted.get((target, key), 0) + 1
            if is_dropped:
                shuffle.drop()
            rows += shuffle.ready()
        rows += shuffle.drain()
    finally:
        envelope.GATHERED = usual
    assert totals_of(rows) == wanted
    assert shuffle.drain() == []


def test_values_of_a_few_keys_wait_and_go_as_one_row():
    shuffle = ShuffleWriter(labels(1))
    for _ in range(3):
        shuffle.gather(1, EventBatch([], [b"k"] * 5, [1] * 5), Summing())
        assert shuffle.ready() == []
    assert [unpack_lines(body) for *_, body in shuffle.drain()] == [([b"k"], [b"15"])]


def test_values_that_do_not_become_fewer_do_not_wait(monkeypatch):
    monkeypatch.setattr(envelope, "GATHERED", 4)
    shuffle = ShuffleWriter(labels(1))
    shuffle.gather(1, EventBatch([], [b"a", b"b", b"c", b"d"], [1] * 4), Summing())
    assert len(shuffle.ready()) == 1
