"""A table of states: slots come and go, columns are read, written, saved and converted."""

import msgspec
import numpy as np
import pytest
from support.spark.toy_buckets import COLUMNS, bucket, entries
from support.spark.toy_spark import Group

from cutwater.spark.state import bucket as buckets
from cutwater.spark.state import changelog
from cutwater.spark.state.cache import StateCache
from cutwater.spark.state.table import StateColumn, StateKindChanged, StateTable


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    monkeypatch.setattr(buckets, "_cache", StateCache())


def table(**kinds):
    return StateTable("rows", {name: StateColumn(kind) for name, kind in kinds.items()})


def test_a_key_has_a_slot_until_it_is_removed():
    rows = table(n="int")
    added = rows.add([b"a", b"b", b"c"])
    assert rows.slots([b"c", b"x", b"a"]).tolist() == [added[2], -1, added[0]]
    assert rows.keys_of(added[::-1]) == [b"c", b"b", b"a"]
    rows.remove(added[:2])
    assert rows.slots([b"a", b"b", b"c"]).tolist() == [-1, -1, added[2]]
    assert len(rows) == 1


def test_a_slot_that_is_used_again_does_not_show_what_was_there():
    rows = StateTable("rows", COLUMNS)
    rows.write(rows.add([b"a"]), {"count": [7], "names": [["x"]]})
    rows.remove(rows.slots([b"a"]))
    slots = rows.add([b"b"])
    assert {name: values.tolist() for name, values in rows.read(slots).items()} == {
        "count": [0],
        "sum": [0.0],
        "seen": [False],
        "names": [None],
    }


def test_a_table_grows():
    rows = table(n="int", x="float")
    for start in range(0, 1000, 100):
        keys = [b"%d" % number for number in range(start, start + 100)]
        rows.write(rows.add(keys), {"n": np.arange(start, start + 100), "x": 0.5})
    assert rows.read(rows.slots([b"0", b"555", b"999"]))["n"].tolist() == [0, 555, 999]
    assert sorted(rows.all().tolist()) == list(range(1000))


def test_a_key_cannot_be_added_twice():
    rows = table(n="int")
    with pytest.raises(ValueError, match="cannot be added"):
        rows.add([b"a", b"a"])
    rows = table(n="int")
    rows.add([b"a"])
    with pytest.raises(ValueError, match="cannot be added"):
        rows.add([b"a"])


@pytest.mark.parametrize("column", [("object",), ("int", list, list)], ids=["object", "int"])
def test_objects_and_nothing_else_have_an_encoding(column):
    with pytest.raises(ValueError, match="a column of objects, and no other"):
        StateColumn(*column)


def test_rows_that_were_read_and_not_written_are_not_saved():
    group = Group()
    states = bucket(group)
    states.table("rows", COLUMNS).add([b"a", b"b"])
    states.save()
    before = group.save_point()
    states = bucket(group)
    rows = states.table("rows", COLUMNS)
    rows.read(rows.slots([b"a"]))
    rows.remove(rows.add([b"new"]))
    states.save()
    assert group.save_point() == before


def test_only_rows_that_changed_are_written():
    group = Group()
    for number in range(3):
        states = bucket(group)
        rows = states.table("rows", COLUMNS)
        if not number:
            rows.add([b"%04d" % key for key in range(1000)])
        rows.write(rows.slots([b"0007"]), {"count": number + 1})
        states.save()
    sizes = list(map(len, entries(group).values()))
    assert sizes[0] > 20_000
    assert max(sizes[1:]) < 200


def test_long_objects_are_cut_into_entries():
    group = Group()
    states = bucket(group)
    rows = states.table("rows", COLUMNS)
    rows.write(rows.add([b"%d" % key for key in range(100)]), {"names": ["x" * 10_000] * 100})
    states.save()
    sizes = list(map(len, entries(group).values()))
    assert max(sizes) < 2.1 * changelog.ENTRY_BYTES
    buckets._cache = StateCache()
    rows = bucket(group).table("rows", COLUMNS)
    assert set(rows.read(rows.all())["names"]) == {"x" * 10_000}


def test_a_table_that_nobody_asks_for_is_cleaned_and_kept(monkeypatch):
    """Its objects cannot be decoded: parts of it move as they are, without what is out of date."""
    monkeypatch.setattr(buckets, "SMALLEST_LOG", 2_000)
    group = Group()
    for number in range(5):
        states = bucket(group)
        rows = states.table("rows", COLUMNS)
        rows.add([b"only in %d" % number])
        if not number:
            rows.add([b"always"])
        rows.write(rows.slots([b"always"]), {"names": [[number]]})
        states.save()
    first = min(entries(group))
    for number in range(200):
        if number % 50 == 0:
            buckets._cache = StateCache()
        states = bucket(group)
        states.put_many("one", [b"a", b"b"], [b"%0500d" % number, b"%0900d" % number])
        states.save()
    assert min(entries(group)) > first + 100
    rows = bucket(group).table("rows", COLUMNS)
    assert len(rows) == 6
    assert rows.read(rows.slots([b"always"]))["names"].tolist() == [[4]]


@pytest.mark.parametrize("is_known", [True, False], ids=["in the copy", "in the log"])
def test_a_table_is_converted_to_the_columns_that_are_wanted(is_known):
    group = Group()
    states = bucket(group)
    table = states.table("rows", {"n": StateColumn("int"), "old": COLUMNS["names"]})
    table.write(table.add([b"a", b"b"]), {"n": [1, 2], "old": ["x", "y"]})
    states.save()
    if not is_known:
        buckets._cache = StateCache()
    wanted = {"n": StateColumn("float"), "new": COLUMNS["names"]}

    def convert(rows):
        old = rows["old"] if isinstance(rows["old"], list) else msgspec.msgpack.decode(rows["old"])
        return {"n": [n / 2 for n in rows["n"]], "new": [[name] for name in old]}

    states = bucket(group)
    with pytest.raises(StateKindChanged, match=r"columns \['n', 'old'\], not \['n', 'new'\]"):
        states.table("rows", wanted)
    table = states.table("rows", wanted, convert)
    read = table.read(table.slots([b"b", b"a"]))
    assert read["n"].tolist() == [1.0, 0.5]
    assert read["new"].tolist() == [["y"], ["x"]]
    table.write(table.slots([b"a"]), {"n": np.array([9.0])})
    states.save()
    for copies in (buckets._cache, StateCache()):
        buckets._cache = copies
        table = bucket(group).table("rows", wanted, convert)
        assert table.read(table.slots([b"a", b"b"]))["n"].tolist() == [9.0, 1.0]
