"""The states of a bucket are a plain dict, whatever workers, failures and cleanings do."""

import itertools
import math
import random
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from toy_spark import Group

from cutwater.spark import buckets, statelog
from cutwater.spark.buckets import BucketStates, StateStore
from cutwater.spark.copies import COPIES_LIMIT, Copies
from cutwater.spark.state_table import Column, StateKindChanged

PLACE = ("query", 0, 7)
NAN = float("nan")


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    monkeypatch.setattr(buckets, "_copies", Copies())


@contextmanager
def constants(**values):
    """Small logs and entries, so that few changes make many entries and cleanings."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(buckets if hasattr(buckets, name) else statelog, name, value)
            if name == "ENTRY_COST":
                patch.setattr(statelog, name, value)
        yield


def bucket(group, place=PLACE, limit=COPIES_LIMIT):
    return BucketStates(StateStore(group), *place, limit)


def head(group):
    return StateStore(group).head()


def entries(group):
    return {key: value for (key,), (value,) in group.log.items.items() if key >= 0}


# --- any interleaving --------------------------------------------------------------------------

COLUMNS = {
    "count": Column("int"),
    "sum": Column("float"),
    "seen": Column("bool"),
    "names": Column("object", msgspec.msgpack.encode, msgspec.msgpack.decode),
}
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
    assert told.total == sum(map(len, found.values())) + statelog.ENTRY_COST * len(found)


@given(EPOCHS, st.integers(0, 200), st.integers(1, 80), st.integers(0, 60), st.booleans())
@settings(max_examples=300)
def test_any_interleaving_of_workers_and_failures_is_a_plain_dict(
    epochs, smallest_log, entry_bytes, small_state, reads_at_once
):
    """Two workers with copies of their own, which may be dropped.

    `lost`: the store rolls back after a whole attempt. A `half` attempt dies before it saves.
    """
    workers, group, wanted = [Copies(), Copies()], Group(), Oracle()
    with constants(
        SMALLEST_LOG=smallest_log,
        SMALL_STATE=small_state,
        ENTRY_BYTES=entry_bytes,
        ENTRY_COST=8,
        READ_AT_ONCE=10**6 if reads_at_once else 0,
    ):
        for worker, changes, opens, fate, limit in epochs:
            buckets._copies = workers[worker]
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
        for copies in (*workers, Copies()):
            buckets._copies = copies
            states = bucket(group)
            assert contents(states) == wanted.of("one", "two")
            assert rows(states) == wanted.of("rows", "more rows")


# --- what an epoch reads and writes ------------------------------------------------------------


def epoch(group, *changes, place=PLACE, limit=COPIES_LIMIT, copies=None):
    if copies is not None:
        buckets._copies = copies
    states = bucket(group, place, limit)
    for change in changes:
        states.put(*change)
    states.save()
    return states


def calls(group, *changes, **settings):
    group.log.calls.clear()
    epoch(group, *changes, **settings)
    return group.log.calls


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
    assert bucket(group).marks == {"source": b"5"}
    assert calls(group, ("one", b"a", b"1")) == ["get"], "the copy is as good as it was"


def test_a_copy_that_is_behind_reads_the_entries_that_it_missed_and_no_others():
    group, first, second = Group(), Copies(), Copies()
    for number in range(20):
        epoch(group, ("one", b"%d" % number, b"1"), copies=first)
    assert calls(group, copies=second) == ["get"], "who asks for no state reads none"
    assert calls(group, ("one", b"x", b"1"), copies=second) == ["get", "iterator", *["update"] * 2]
    for number in range(3):
        epoch(group, ("one", b"%d" % number, b"2"), copies=second)
    assert calls(group, ("one", b"y", b"1"), copies=first) == ["get"] * 5 + ["update"] * 2
    assert calls(group, ("one", b"y", b"2"), copies=first) == ["get", "update", "update"]


def test_a_copy_of_an_attempt_that_failed_is_not_used():
    group, first, second = Group(), Copies(), Copies()
    epoch(group, ("one", b"a", b"1"), copies=first)
    before = group.save_point()
    epoch(group, ("one", b"a", b"wrong"), copies=first)
    group.roll_back(before)
    epoch(group, ("one", b"b", b"2"), copies=second)
    epoch(group, ("one", b"b", b"3"), copies=second)
    buckets._copies = first
    assert dict(bucket(group).items("one")) == {b"a": b"1", b"b": b"3"}


def test_a_long_log_is_read_entry_by_entry(monkeypatch):
    group = Group()
    epoch(group, ("one", b"a", b"1"))
    epoch(group, ("one", b"b", b"1"))
    monkeypatch.setattr(statelog, "READ_AT_ONCE", 10)
    assert calls(group, ("one", b"a", b"1"), copies=Copies()) == ["get", "get", "get"]


def test_queries_levels_and_labels_do_not_share_copies():
    first, second = Group(), Group()
    epoch(first, ("one", b"a", b"1"))
    for place in (("other", 0, 7), ("query", 1, 7), ("query", 0, 8)):
        assert not bucket(second, place).keys("one")


def test_entries_are_bounded():
    group = Group()
    big = bytes(statelog.ENTRY_BYTES // 3)
    states = bucket(group)
    states.put_many("one", [b"%d" % number for number in range(10)], [big] * 10)
    states.put("two", b"huge", bytes(statelog.ENTRY_BYTES * 3))
    states.save()
    sizes = sorted(map(len, entries(group).values()))
    assert len(sizes) == 6
    assert sizes[-2] < 1.01 * statelog.ENTRY_BYTES


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
    buckets._copies = Copies()
    assert dict(bucket(group).items("one")) == {b"a": b"3"}


def test_keys_for_which_a_watermark_matters_are_counted_in_the_head():
    group = Group()
    epoch(group, (buckets.BUSY + "one", b"a", b""), ("one", b"a", b"1"), ("one", b"b", b"1"))
    assert bucket(group).busy == 1
    epoch(group, (buckets.BUSY + "one", b"a", None))
    assert bucket(group).busy == 0


# --- the log stays short -----------------------------------------------------------------------


def is_bounded(group):
    """Spelled out: what is removed keeps pace with what is appended and with what is deleted."""
    told = head(group)
    slack = 2 * buckets.SMALLEST_LOG + 2 * (statelog.ENTRY_BYTES + statelog.ENTRY_COST)
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
    buckets._copies = Copies()
    assert not bucket(group).keys("one")


def test_work_of_an_epoch_follows_what_it_changes_not_what_there_is():
    """Twenty times the states, and a cleaning that goes on all the time: the same traffic."""

    def traffic(keys):
        buckets._copies = Copies()
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
    assert max(large) < 2 * statelog.ENTRY_BYTES
    assert sum(large) / len(large) < 1.3 * sum(small) / len(small)


def test_keys_that_come_and_go_leave_nothing_behind():
    """A soak: a key space that moves on, over 2,000 epochs, in two workers with small limits."""
    group, rng, workers = Group(), random.Random(5), [Copies(), Copies()]
    limit, steady, wanted = 200_000, [], {}
    for number in range(2_000):
        buckets._copies = rng.choice(workers)
        states = bucket(group, limit=limit)
        table = states.table("rows", COLUMNS)
        new = [b"%d" % (number * 10 + digit) for digit in range(10)]
        old = [b"%d" % ((number - 50) * 10 + digit) for digit in range(10)]
        states.put_many("one", [*new, *old], [b"state of %s" % key for key in new] + [None] * 10)
        wanted = {key: state for key, state in wanted.items() if key not in old}
        wanted |= {key: b"state of %s" % key for key in new}
        table.write(table.add(new), {"count": number, "sum": NAN, "names": [["x"]] * 10})
        gone = table.slots(old)
        table.remove(gone[gone >= 0])
        states.save()
        assert is_bounded(group)
        assert buckets._copies.bytes <= limit
        if number > 200:
            steady.append((head(group).total, len(entries(group)), buckets._copies.bytes))
    assert max(total for total, _, _ in steady) < 250_000
    assert max(count for _, count, _ in steady) < 150
    buckets._copies = Copies()
    states = bucket(group)
    assert states.states_of("one") == wanted
    assert set(states.table("rows", COLUMNS).keys_of(states.table("rows", COLUMNS).all())) == {
        *wanted
    }


# --- the memory of a worker --------------------------------------------------------------------


def test_copies_stay_within_their_limit_and_what_went_is_read_again():
    groups = [Group() for _ in range(8)]
    one = epoch(groups[0], *(("one", b"%d" % key, bytes(100)) for key in range(100)))
    limit = 5 * one._copy.memory
    for turn in range(6):
        for label, group in enumerate(groups):
            key = b"%d" % turn
            epoch(
                group,
                *(("one", b"%d" % key, bytes(100)) for key in range(100)),
                ("two", key, b"%d" % label),
                place=("query", 0, label),
                limit=limit,
            )
            assert buckets._copies.bytes <= limit
    for label, group in enumerate(groups):
        assert dict(bucket(group, ("query", 0, label)).items("two")) == {
            b"%d" % turn: b"%d" % label for turn in range(6)
        }


def test_buckets_that_are_used_in_turns_do_not_drive_one_another_out():
    """One bucket too many: only a few are read again, not all of them."""
    groups = [Group() for _ in range(8)]
    for label, group in enumerate(groups):
        one = epoch(group, ("one", b"a", bytes(1000)), place=("query", 0, label))
    limit = 7 * one._copy.memory
    reads = 0
    for turn in range(30):
        for label, group in enumerate(groups):
            change = ("one", b"a", b"%01000d" % turn)
            reads += calls(group, change, place=("query", 0, label), limit=limit).count("iterator")
    assert reads < 0.4 * 30 * 8


def test_a_bucket_over_the_limit_is_worked_on_and_not_kept():
    group, other = Group(), Group()
    epoch(other, ("one", b"a", b"1"), place=("query", 0, 8))
    epoch(group, ("one", b"a", bytes(10_000)), limit=5_000)
    assert calls(group, ("one", b"a", bytes(9_999)), limit=5_000)[:2] == ["get", "iterator"]
    assert calls(other, ("one", b"a", b"2"), place=("query", 0, 8)) == ["get", "update", "update"]


# --- steps that change what they keep ----------------------------------------------------------


def test_a_step_cannot_read_its_table_as_states_nor_the_reverse():
    group = Group()
    states = bucket(group)
    states.put("one", b"a", b"1")
    states.table("rows", COLUMNS).add([b"a"])
    states.save()
    for copies in (buckets._copies, Copies()):
        buckets._copies = copies
        with pytest.raises(StateKindChanged, match="step 'rows' keeps a table"):
            bucket(group).get("rows", b"a")
        buckets._copies = copies
        with pytest.raises(StateKindChanged, match="step 'one' keeps states by key"):
            bucket(group).table("one", COLUMNS)


def test_a_step_without_keys_may_keep_anything():
    group = Group()
    epoch(group, ("one", b"a", b"1"))
    epoch(group, ("one", b"a", None))
    states = bucket(group)
    states.table("one", COLUMNS).add([b"a"])
    states.save()
    buckets._copies = Copies()
    states = bucket(group)
    table = states.table("one", COLUMNS)
    assert table.keys_of(table.all()) == [b"a"]
    table.remove(table.all())
    states.save()
    epoch(group, ("one", b"a", b"2"), copies=Copies())
    assert bucket(group).get("one", b"a") == b"2"


@pytest.mark.parametrize("is_known", [True, False], ids=["in the copy", "in the log"])
def test_a_table_is_converted_to_the_columns_that_are_wanted(is_known):
    group = Group()
    states = bucket(group)
    table = states.table("rows", {"n": Column("int"), "old": COLUMNS["names"]})
    table.write(table.add([b"a", b"b"]), {"n": [1, 2], "old": ["x", "y"]})
    states.save()
    copies = buckets._copies if is_known else Copies()
    buckets._copies = copies
    wanted = {"n": Column("float"), "new": COLUMNS["names"]}
    with pytest.raises(StateKindChanged, match=r"columns \['n', 'old'\], not \['n', 'new'\]"):
        bucket(group).table("rows", wanted)

    def convert(rows):
        old = rows["old"] if isinstance(rows["old"], list) else msgspec.msgpack.decode(rows["old"])
        return {"n": [n / 2 for n in rows["n"]], "new": [[name] for name in old]}

    buckets._copies = Copies()
    states = bucket(group)
    table = states.table("rows", wanted, convert)
    read = table.read(table.slots([b"b", b"a"]))
    assert read["n"].tolist() == [1.0, 0.5]
    assert read["new"].tolist() == [["y"], ["x"]]
    table.write(table.slots([b"a"]), {"n": np.array([9.0])})
    states.save()
    for copies in (buckets._copies, Copies()):
        buckets._copies = copies
        table = bucket(group).table("rows", wanted, convert)
        assert table.read(table.slots([b"a", b"b"]))["n"].tolist() == [9.0, 1.0]
