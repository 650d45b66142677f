"""The files of Spark's state store, read without a JVM: what is found, and what is not guessed."""

import json
import struct
import zipfile
from itertools import pairwise

import pyarrow as pa
import pytest
from rocksdict import Options, Rdict
from support.fuzz.mutations import mutations, tolerate

from cutwater.spark.checkpoint.state_store import (
    DamagedStateError,
    StateStoreFiles,
    UnknownFormatError,
)
from cutwater.spark.checkpoint.state_store.changelog_file import read_changelog
from cutwater.spark.checkpoint.state_store.rows import data_of, label_prefix, sequence_of

HERE, THERE = 2, 0
"""Labels in the first and the second of two partitions."""


def key(label, sequence):
    return label_prefix(label) + struct.pack("<BQIIQq", 0, 0, 16, 16, 0, sequence)


def value(data):
    return struct.pack("<BQII", 0, 0, len(data), 16) + data + bytes(-len(data) % 8)


def java_text(text):
    return struct.pack(">H", len(text)) + text.encode()


def record(label, sequence, data):
    name = key(label, sequence)
    if data is None:
        return struct.pack(">Bi", 0x10, len(name)) + name + struct.pack(">i", -1)
    body = value(data)
    return struct.pack(">Bi", 1, len(name)) + name + struct.pack(">i", len(body)) + body


def framed(data):
    """As LZ4 blocks of at most 50 bytes, by turns stored and compressed."""
    out = b""
    for number, (start, end) in enumerate(pairwise([*range(0, len(data), 50), len(data)])):
        part = data[start:end]
        body = pa.Codec("lz4_raw").compress(part, asbytes=True) if number % 2 else part
        out += struct.pack("<8sBiiI", b"LZ4Block", 0x25 if number % 2 else 0x15, len(body), 0, 0)
        out = out[:-8] + struct.pack("<iI", len(part), 0) + body
    return out + struct.pack("<8sBiiI", b"LZ4Block", 0x15, 0, 0, 0)


def changelog(lineage, *records, version="v4"):
    line = json.dumps([{"version": n, "checkpointUniqueId": uid} for n, uid in lineage])
    return framed(java_text(version) + java_text(line) + b"".join(records) + b"\0")


class Store:
    """A state store of one operator with two partitions, written as Spark does."""

    def __init__(self, root):
        self.root = root
        (root / "commits").mkdir()
        self.folders = [root / "state" / "0" / str(number) for number in range(2)]
        for folder in self.folders:
            (folder / "SSTs").mkdir(parents=True)

    def commit(self, epoch, *unique_ids):
        content = {"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": [[i] for i in unique_ids]}}
        (self.root / "commits" / str(epoch)).write_text(f"v2\n{json.dumps(content)}")

    def changes(self, partition, name, *records, lineage=()):
        path = self.folders[partition] / f"{name}.changelog"
        path.write_bytes(changelog(lineage, *records))
        return path

    def snapshot(self, partition, name, entries, scratch, family=2):
        database = Rdict(str(scratch), Options(raw_mode=True))
        for (label, sequence), data in entries.items():
            database[key(label, sequence)] = value(data)
        database.flush()
        database.close()
        tables = []
        with zipfile.ZipFile(self.folders[partition] / f"{name}.zip", "w") as zipped:
            for path in scratch.iterdir():
                if path.suffix == ".sst":
                    tables.append((path.name, f"{path.stem}-{name}.sst"))
                    path.rename(self.folders[partition] / "SSTs" / tables[-1][1])
                elif path.name.startswith(("MANIFEST", "CURRENT", "OPTIONS")):
                    zipped.write(path, path.name)
            content = {
                "sstFiles": [{"localFileName": a, "dfsSstFileName": b} for a, b in tables],
                "columnFamilyMapping": {"default": 1, "log": family},
            }
            zipped.writestr("metadata", f"v1\n{json.dumps(content)}")

    def logs(self, epoch, labels=()):
        found = {}
        for logs in StateStoreFiles(self.root, 0).logs(epoch, labels):
            found |= logs
        return found


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def test_changelogs_without_a_snapshot_are_the_state(store):
    store.changes(0, "1_a", record(HERE, 0, b"old"), record(HERE, 1, b"one"))
    store.changes(1, "1_b", record(THERE, 0, b""))
    store.changes(0, "2_c", record(HERE, 0, b"new"), record(HERE, 1, None), lineage=[(1, "a")])
    store.changes(1, "2_d", lineage=[(1, "b")])
    store.commit(0, "a", "b")
    store.commit(1, "c", "d")
    assert store.logs(0) == {HERE: {0: b"old", 1: b"one"}, THERE: {0: b""}}
    assert store.logs(1) == {HERE: {0: b"new"}, THERE: {0: b""}}
    assert store.logs(1, [THERE]) == {THERE: {0: b""}}


def test_of_two_attempts_the_committed_one_counts(store):
    store.changes(0, "1_lost", record(HERE, 0, b"lost"))
    store.changes(0, "1_kept", record(HERE, 0, b"kept"))
    store.changes(1, "1_b")
    store.commit(0, "kept", "b")
    assert store.logs(0) == {HERE: {0: b"kept"}}


def test_a_snapshot_and_the_changelogs_behind_it(store, tmp_path):
    store.changes(0, "1_a", record(HERE, 9, b"in no snapshot: not read"))
    entries = {(HERE, 0): b"zero", (HERE, 1): b"one", (HERE + 2, 0): b"other"}
    store.snapshot(0, "2_b", entries, tmp_path / "scratch")
    store.changes(0, "3_c", record(HERE, 1, None), lineage=[(1, "a"), (2, "b")])
    store.changes(1, "3_d", lineage=[(1, "x"), (2, "y")])
    store.snapshot(1, "3_d", {}, tmp_path / "empty")
    store.commit(1, "b", "y")
    store.commit(2, "c", "d")
    assert store.logs(2) == {HERE: {0: b"zero"}, HERE + 2: {0: b"other"}}
    assert store.logs(1, [HERE]) == {HERE: {0: b"zero", 1: b"one"}}


def test_only_partitions_of_the_labels_are_read(store):
    store.changes(0, "1_a", record(HERE, 0, b"x"), record(HERE + 2, 0, b"y"))
    store.commit(0, "a", "its files are gone")
    assert store.logs(0, [HERE]) == {HERE: {0: b"x"}}


def test_a_gap_in_the_files_is_damage(store):
    store.changes(0, "3_c", lineage=[(2, "b")])
    store.commit(2, "c", "d")
    with pytest.raises(DamagedStateError, match=r"2_b\.changelog is missing"):
        store.logs(2)


def test_a_lineage_that_begins_nowhere_is_damage(store):
    store.changes(0, "3_c", lineage=[(2, "b")])
    store.changes(0, "2_b")
    store.commit(2, "c", "d")
    with pytest.raises(DamagedStateError, match=r"no snapshot in .* leads to version 3"):
        store.logs(2)


def test_a_file_that_differs_from_its_sums_is_damage(store):
    path = store.changes(0, "1_a", record(HERE, 0, b"x"))
    path.with_name(".1_a.changelog.crc").write_bytes(b"crc\0" + struct.pack(">iI", 512, 7))
    store.commit(0, "a", "b")
    with pytest.raises(DamagedStateError, match="do not match their checksum"):
        store.logs(0)


@pytest.mark.parametrize(
    "commit",
    ["v1\n{}", '{"stateUniqueIds": {"0": [["a"]]}}', "v2\n[]", 'v2\n{"stateUniqueIds":{}}'],
)
def test_a_commit_that_names_no_states_is_left_to_spark(store, commit):
    (store.root / "commits" / "0").write_text(commit)
    with pytest.raises(UnknownFormatError):
        store.logs(0)


def test_a_snapshot_with_other_column_families_is_left_to_spark(store, tmp_path):
    store.snapshot(0, "1_a", {}, tmp_path / "scratch", family=3)
    store.commit(0, "a", "b")
    with pytest.raises(UnknownFormatError):
        store.logs(0)


WHOLE = changelog([], record(HERE, 0, b"some bytes"))


@pytest.mark.parametrize(
    "data",
    [
        b"\x28\xb5\x2f\xfd" + WHOLE,
        changelog([], version="v5"),
        changelog([], record(HERE, 0, b"x").replace(b"\x01", b"\x11", 1)),
        framed(java_text("v4") + java_text("[]") + record(HERE, 0, b"x")[:-1]),
    ],
    ids=["another codec", "another version", "a merge", "a torn record"],
)
def test_a_changelog_of_another_format_is_left_to_spark(data):
    with pytest.raises(UnknownFormatError):
        read_changelog(data)


@pytest.mark.parametrize("end", range(8, len(WHOLE) - 21, 7))
def test_a_torn_changelog_is_never_read(end):
    with pytest.raises(UnknownFormatError):
        read_changelog(WHOLE[:end])


@pytest.mark.parametrize(
    "body",
    [
        value(b"abc") + bytes(8),  # a sum behind the row, as a setting of Spark's adds
        b"\1" + value(b"abc")[1:],
        value(b"abc")[:5],
    ],
)
def test_a_value_of_another_shape_is_left_to_spark(body):
    with pytest.raises(UnknownFormatError):
        data_of(body)


@pytest.mark.parametrize("name", [key(1, 2)[:-1], b"\3" + key(1, 2)[1:]])
def test_a_key_of_another_shape_is_left_to_spark(name):
    with pytest.raises(UnknownFormatError):
        sequence_of(name)


@pytest.mark.parametrize("name", ["commits/1", "state/0/0/2_c.changelog", "state/0/0/1_a.zip"])
def test_no_damage_gives_another_error(store, tmp_path, name):
    store.snapshot(0, "1_a", {(HERE, 0): b"zero"}, tmp_path / "scratch")
    store.changes(0, "2_c", record(HERE, 1, b"one"), lineage=[(1, "a")])
    store.changes(1, "1_b")
    store.changes(1, "2_d", lineage=[(1, "b")])
    store.commit(1, "c", "d")
    assert store.logs(1) == {HERE: {0: b"zero", 1: b"one"}}
    file = store.root / name
    for data in mutations(file.read_bytes(), seed=len(name)):
        file.write_bytes(data)
        tolerate(data, lambda: store.logs(1), (DamagedStateError, UnknownFormatError))


def test_keys_and_values_come_back():
    assert sequence_of(key(37, -1)) == (37, -1)
    assert data_of(value(b"twelve bytes")) == b"twelve bytes"
