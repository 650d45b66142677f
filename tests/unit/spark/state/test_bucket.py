"""The states of a bucket are a plain dict, whatever workers, failures and cleanings do."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.spark.toy_buckets import COLUMNS, bucket, calls, constants, entries, epoch, head
from support.spark.toy_spark import Group

from cutwater.spark.state import bucket as buckets
from cutwater.spark.state import changelog
from cutwater.spark.state.cache import StateCache
from cutwater.spark.state.table import StateKindChanged

NAN = float("nan")
KEYS = st.sampled_from([b"", b"a", b"b", b"c", b"dd" * 9])
STATES = st.none() | st.binary(max_size=9) | st.sampled_from([b"yes", b"no"])
ROWS = st.none() | st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0.0, -0.0, 1.5, NAN, math.inf]),
    st.booleans(),
    st.sampled_from([None, "x", [1, 2], "long" * 20]),
)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["one", "two"]), KEYS, STATES)
    | st.tuples(st.sampled_from(["rows", "more rows"]), KEYS, ROWS),
    max_size=6,
)
FATES = st.sampled_from(["good", "good", "good", "lost", "half"])
EPOCHS = st.lists(
    st.tuples(st.integers(0, 1), CHANGES, st.booleans(), FATES, st.sampled_from([0, 600, 10**6])),
    max_size=25,
)


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    monkeypatch.setattr(buckets, "_cache", StateCache())


class Oracle:
    """What a bucket should hold."""

    def __init__(self, contents=None):
        self.contents = dict(contents or {})

    def change(self, step, key, state):
        self.contents.pop((step, key), None)
        if state is not None:
            self.contents[step, key] = state

    def of(self, *steps):
        return {place: repr(state) for place, state in self.contents.items() if place[0] in steps}


def contents(states, steps=("one", "two")):
    return {(step, key): repr(state) for step in steps for key, state in states.items(step)}


def rows(states, steps=("rows", "more rows")):
    found = {}
    for step in steps:
        table = states.table(step, COLUMNS)
        slots = table.all()
        values = [column.tolist() for column in table.read(slots).values()]
        for key, *row in zip(table.keys_of(slots), *values, strict=True):
            found[step, key] = repr(tuple(row))
        assert len(table) == len(slots)
    return found


def change_states(states, changes, at_once):
    """Put each change, or all of a step that have different keys at once."""
    changes = [change for change in changes if change[0] in ("one", "two")]
    if not at_once:
        for change in changes:
            states.put(*change)
    for step, group in itertools.groupby(changes, lambda change: change[0]) if at_once else ():
        _, keys, values = zip(*group, strict=True)
        states.put_many(step, keys, values)


def change_rows(states, changes):
    for step, key, row in changes:
        if step in ("rows", "more rows"):
            table = states.table(step, COLUMNS)
            slots = table.slots([key])
            if row is None:
                table.remove(slots[slots >= 0])
                continue
            if slots[0] < 0:
                slots = table.add([key])
            table.write(slots, {name: [value] for name, value in zip(COLUMNS, row, strict=True)})


def check_head(group):
    """The head tells what there is."""
    told, found = head(group), entries(group)
    assert sorted(found) == list(range(told.first, told.next))
    assert told.total == sum(map(len, found.values())) + changelog.ENTRY_COST * len(found)


@given(EPOCHS, st.integers(0, 200), st.integers(1, 80), st.integers(0, 60), st.booleans())
@settings(max_examples=300)
def test_any_interleaving_of_workers_and_failures_is_a_plain_dict(
    epochs, smallest_log, entry_bytes, small_state, reads_at_once
):
    """Two workers with copies of their own, which may be dropped.

    `lost`: the store rolls back after a whole attempt. A `half` attempt dies before it saves.
    """
    workers, group, wanted = [StateCache(), StateCache()], Group(), Oracle()
    with constants(
        SMALLEST_LOG=smallest_log,
        SMALL_STATE=small_state,
        ENTRY_BYTES=entry_bytes,
        ENTRY_COST=8,
        READ_AT_ONCE=10**6 if reads_at_once else 0,
    ):
        for worker, changes, opens, fate, limit in epochs:
            buckets._cache = workers[worker]
            before = group.save_point()
            states = bucket(group, limit=limit)
            assert contents(states) == wanted.of("one", "two")
            if opens:
                assert rows(states) == wanted.of("rows", "more rows")
            attempt = Oracle(wanted.contents)
            for change in changes:
                attempt.change(*change)
            change_states(states, changes, at_once=opens)
            change_rows(states, changes)
            assert contents(states) == attempt.of("one", "two")
            if fate != "half":
                states.save()
            if fate == "good":
                wanted = attempt
            else:
                group.roll_back(before)
            check_head(group)
        for copies in (*workers, StateCache()):
            buckets._cache = copies
            states = bucket(group)
            assert contents(states) == wanted.of("one", "two")
            assert rows(states) == wanted.of("rows", "more rows")


def test_an_epoch_that_changes_nothing_writes_nothing():
    group = Group()
    epoch(group, ("one", b"a", b"1"))
    assert calls(group, ("one", b"a", b"1"), ("one", b"b", None)) == ["get"]
    states = bucket(group)
    states.put_many("one", [b"a", b"b"], [b"1", None])
    states.save()
    assert group.log.calls == ["get", "get"]


def test_an_epoch_reads_the_head_and_writes_an_entry_and_the_head():
    group = Group()
    epoch(group, ("one", b"a", b"1"))
    assert calls(group, ("one", b"a", b"2"), ("two", b"b", b"3")) == ["get", "update", "update"]


def test_marks_alone_change_the_head_alone():
    group = Group()
    epoch(group, ("one", b"a", b"1"))
    group.log.calls.clear()
    states = bucket(group)
    states.save({"source": b"5"})
    assert group.log.calls == ["get", "update"]
    assert bucket(group).watermarks == {"source": b"5"}
    assert calls(group, ("one", b"a", b"1")) == ["get"], "the copy is as good as it was"


def test_a_copy_that_is_behind_reads_the_entries_that_it_missed_and_no_others():
    group, first, second = Group(), StateCache(), StateCache()
    for number in range(20):
        epoch(group, ("one", b"%d" % number, b"1"), copies=first)
    assert calls(group, copies=second) == ["get"], "who asks for no state reads none"
    assert calls(group, ("one", b"x", b"1"), copies=second) == ["get", "iterator", *["update"] * 2]
    for number in range(3):
        epoch(group, ("one", b"%d" % number, b"2"), copies=second)
    assert calls(group, ("one", b"y", b"1"), copies=first) == ["get"] * 5 + ["update"] * 2
    assert calls(group, ("one", b"y", b"2"), copies=first) == ["get", "update", "update"]


def test_a_copy_of_an_attempt_that_failed_is_not_used():
    group, first, second = Group(), StateCache(), StateCache()
    epoch(group, ("one", b"a", b"1"), copies=first)
    before = group.save_point()
    epoch(group, ("one", b"a", b"wrong"), copies=first)
    group.roll_back(before)
    epoch(group, ("one", b"b", b"2"), copies=second)
    epoch(group, ("one", b"b", b"3"), copies=second)
    buckets._cache = first
    assert dict(bucket(group).items("one")) == {b"a": b"1", b"b": b"3"}


def test_a_long_log_is_read_entry_by_entry(monkeypatch):
    group = Group()
    epoch(group, ("one", b"a", b"1"))
    epoch(group, ("one", b"b", b"1"))
    monkeypatch.setattr(changelog, "READ_AT_ONCE", 10)
    assert calls(group, ("one", b"a", b"1"), copies=StateCache()) == ["get", "get", "get"]


def test_queries_levels_and_labels_do_not_share_copies():
    first, second = Group(), Group()
    epoch(first, ("one", b"a", b"1"))
    for place in (("other", 0, 7), ("query", 1, 7), ("query", 0, 8)):
        assert not bucket(second, place).keys("one")


def test_what_is_read_of_a_step_without_states_is_empty():
    states = bucket(Group())
    assert states.get("one", b"a") is None
    assert not states.keys("one")
    assert not states.items("one")
    assert states.states_of("one") == {}


def test_of_a_key_that_is_put_twice_at_once_the_last_state_counts():
    group = Group()
    states = bucket(group)
    states.put_many("one", [b"a", b"b", b"a"], [b"1", b"2", b"3"])
    states.put_many("one", [b"b", b"b"], [b"4", None])
    states.save()
    buckets._cache = StateCache()
    assert dict(bucket(group).items("one")) == {b"a": b"3"}


def test_keys_for_which_a_watermark_matters_are_counted_in_the_head():
    group = Group()
    epoch(group, (buckets.BUSY + "one", b"a", b""), ("one", b"a", b"1"), ("one", b"b", b"1"))
    assert bucket(group).busy == 1
    epoch(group, (buckets.BUSY + "one", b"a", None))
    assert bucket(group).busy == 0


def test_a_step_cannot_read_its_table_as_states_nor_the_reverse():
    group = Group()
    states = bucket(group)
    states.put("one", b"a", b"1")
    states.table("rows", COLUMNS).add([b"a"])
    states.save()
    for copies in (buckets._cache, StateCache()):
        buckets._cache = copies
        with pytest.raises(StateKindChanged, match="step 'rows' keeps a table"):
            bucket(group).get("rows", b"a")
        buckets._cache = copies
        with pytest.raises(StateKindChanged, match="step 'one' keeps states by key"):
            bucket(group).table("one", COLUMNS)


def test_a_step_without_keys_may_keep_anything():
    group = Group()
    epoch(group, ("one", b"a", b"1"))
    epoch(group, ("one", b"a", None))
    states = bucket(group)
    states.table("one", COLUMNS).add([b"a"])
    states.save()
    buckets._cache = StateCache()
    states = bucket(group)
    table = states.table("one", COLUMNS)
    assert table.keys_of(table.all()) == [b"a"]
    table.remove(table.all())
    states.save()
    epoch(group, ("one", b"a", b"2"), copies=StateCache())
    assert bucket(group).get("one", b"a") == b"2"
