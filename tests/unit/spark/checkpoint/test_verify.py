"""A checkpoint that is damaged: which file it is, and what to do. Files as Spark writes them."""

import json
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.spark.checkpoint.checksums import why_altered
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.checkpoint.verify import damages_of_logs
from cutwater.spark.connectors.base.sink import Claim
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.storage.entry_log import EntryLog


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def total(state: int, item: Item) -> tuple[int, list[Item]]:
    return state + item.size, [item]


def put(path, data):
    """Write a file with the sums that Hadoop's file system writes beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    sums = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    beside = path.with_name(f".{path.name}.crc")
    beside.write_bytes(b"crc\0" + struct.pack(">i", 512) + struct.pack(f">{len(sums)}I", *sums))


EPOCHS = 4


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint with four epochs, a snapshot after the second and changes since."""
    flow = cw.Flow("totals")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(total))
    made = Checkpoint(tmp_path / "state")
    made.create()
    made.save(identity_of(make_job(flow, tmp_path), 1))
    put(made.spark / "metadata", b'{"id":"5ee0"}')
    log = EntryLog(made.root / "sources" / "items", "the log", generation=0)
    chunk = {"number": 0, "path": "in/1", "size": 9, "modified_ns": 1}
    state = made.spark / "state" / "0" / "0"
    for epoch in range(EPOCHS):
        log.append([{**chunk, "start": epoch, "end": epoch + 1}])
        message = json.dumps({"conf": {"spark.sql.shuffle.partitions": "1"}})
        offset = f"v1\n{message}\n" + json.dumps({"entry": epoch + 1})
        put(made.spark / "offsets" / str(epoch), offset.encode())
        ids = json.dumps({"stateUniqueIds": {"0": [[f"id{epoch}"]]}})
        put(made.spark / "commits" / str(epoch), f"v2\n{ids}".encode())
        put(state / f"{epoch + 1}_id{epoch}.changelog", bytes(range(256)) * (epoch + 3))
    put(state / "SSTs" / "8-x.sst", b"table" * 299 + b"12345")
    snapshot = tmp_path / "snapshot.zip"
    tables = {"sstFiles": [{"dfsSstFileName": "8-x.sst", "sizeBytes": 1500}]}
    with zipfile.ZipFile(snapshot, "w") as archive:
        archive.writestr("metadata", "v1\n" + json.dumps(tables))
        archive.writestr("MANIFEST", "x" * 700)
    put(state / "2_id1.zip", snapshot.read_bytes())
    return made


def truncate(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def empty(path):
    path.write_bytes(b"")


def alter(path):
    data = bytearray(path.read_bytes())
    half = range(len(data) // 2, len(data))
    data[next(at for at in half if chr(data[at]).isdigit() or data[at] > 127)] ^= 1
    path.write_bytes(bytes(data))


def remove(path):
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def problems(checkpoint, **more):
    found = cutwater_spark.verify(checkpoint.root, **more).problems
    return [(problem.code, problem.message.replace(f"{checkpoint.root}/", "")) for problem in found]


def test_a_whole_one(checkpoint):
    found = cutwater_spark.verify(checkpoint.root)
    assert (found.flow, found.problems) == ("totals", [])
    assert found.files == 20
    assert damages_of_logs(checkpoint) == []


FILES = [
    "cutwater.json",
    "sources/items/0/2.json",
    "sources/items/0/4.json",
    "spark/metadata",
    "spark/offsets/1",
    "spark/offsets/3",
    "spark/commits/1",
    "spark/commits/3",
]
STATES = [
    "spark/state/0/0/4_id3.changelog",
    "spark/state/0/0/2_id1.zip",
    "spark/state/0/0/SSTs/8-x.sst",
]


@pytest.mark.parametrize("harm", [truncate, empty, alter])
@pytest.mark.parametrize("file", [*FILES, *STATES])
def test_a_file_that_is_not_what_was_written(checkpoint, file, harm):
    harm(checkpoint.root / file)
    found = problems(checkpoint)
    assert found[0][0] == "damaged-file"
    assert any(f"{file} is damaged: " in message for _, message in found)
    assert bool(damages_of_logs(checkpoint)) == (file in FILES)


SST = "spark/state/0/0/SSTs/8-x.sst"
MISSING = {
    "spark/offsets/1": "Spark's log of offsets spark/offsets/1 is missing",
    "spark/offsets/3": "Spark's offset log spark/offsets/3 is missing; the epoch is finished",
    "spark/commits/1": "Spark's log of commits spark/commits/1 is missing",
    "sources/items/0/4.json": "the log of a source sources/items ends with entry 3, but an epoch "
    "has read up to entry 4",
    "spark/state/0/0/4_id3.changelog": "the file of a state spark/state/0/0/4_id3.changelog is "
    "missing: partition 0 needs it for epoch 3",
    SST: f"the snapshot of a state spark/state/0/0/2_id1.zip is damaged: {SST}, which it needs, is "
    "missing or has another length",
}


@pytest.mark.parametrize(("file", "message"), MISSING.items())
def test_a_file_that_is_missing(checkpoint, file, message):
    remove(checkpoint.root / file)
    assert [message for _, message in problems(checkpoint)] == [message]


def test_the_newest_commit_may_be_missing_and_the_epoch_is_done_again(checkpoint):
    remove(checkpoint.spark / "commits" / "3")
    assert problems(checkpoint) == []
    remove(checkpoint.spark / "commits" / "2")
    assert (
        problems(checkpoint)[0][1]
        == "Spark's commit log spark/commits/2 is missing; epoch 3 has begun"
    )


@pytest.fixture
def longer(checkpoint):
    """Spark's logs with four epochs more, which read nothing new."""
    for log in ("offsets", "commits"):
        newest = (checkpoint.spark / log / str(EPOCHS - 1)).read_bytes()
        for epoch in range(EPOCHS, 2 * EPOCHS):
            put(checkpoint.spark / log / str(epoch), newest)
    return checkpoint


@pytest.mark.parametrize("log", ["offsets", "commits"])
@pytest.mark.parametrize("gone", [(1,), (0, 2, 4), (1, 2, 3, 4)])
def test_old_epochs_that_spark_was_deleting_when_it_was_killed_may_be_missing(longer, log, gone):
    for epoch in gone:
        remove(longer.spark / log / str(epoch))
    assert damages_of_logs(longer) == []


@pytest.mark.parametrize(
    ("file", "is_finished"),
    [
        ("offsets/7", True),
        ("offsets/6", True),
        ("offsets/5", True),
        ("commits/6", True),
        ("commits/5", True),
        ("offsets/6", False),
        ("commits/6", False),
        ("commits/5", False),
    ],
)
def test_what_a_restart_reads_is_not_missing(longer, file, is_finished):
    """With the newest epoch finished, and with it begun."""
    if not is_finished:
        remove(longer.spark / "commits" / "7")
    remove(longer.spark / file)
    (problem,) = damages_of_logs(longer)
    assert problem.code == "damaged-file"
    assert f"{file} is missing" in problem.message


def test_a_newest_commit_that_is_damaged_can_be_deleted(checkpoint):
    truncate(checkpoint.spark / "commits" / "3")
    (problem,) = cutwater_spark.verify(checkpoint.root).problems
    assert "delete " in problem.hint
    assert "restore" not in problem.hint
    truncate(checkpoint.spark / "commits" / "1")
    assert "restore" in cutwater_spark.verify(checkpoint.root).problems[0].hint


def test_what_the_newest_state_does_not_need_may_be_gone(checkpoint):
    remove(checkpoint.root / "spark/state/0/0/1_id0.changelog")
    remove(checkpoint.root / "spark/state/0/0/2_id1.changelog")
    assert problems(checkpoint) == []


def test_a_file_without_sums_is_read(checkpoint):
    (checkpoint.spark / "offsets" / ".2.crc").unlink()
    assert problems(checkpoint) == []
    (checkpoint.spark / "offsets" / "2").write_text("v1\n{}\n{nonsense")
    assert "spark/offsets/2 is damaged: its content is invalid" in problems(checkpoint)[0][1]


def test_ledgers_belong_to_it(checkpoint, tmp_path):
    query = checkpoint.identity().query_id
    for name, of in (("mine", query), ("other", "another")):
        Folder(str(tmp_path / name)).claim(Claim("totals", "out", of, 1, str(checkpoint.root)))
    assert problems(checkpoint, sinks={"out": Folder(str(tmp_path / "mine"))}) == []
    (found,) = problems(checkpoint, sinks={"out": Folder(str(tmp_path / "other"))})
    assert found[0] == "another-checkpoint"
    side_outputs = checkpoint.root / "bad-records" / "items"
    Folder(str(side_outputs)).claim(Claim("totals", "bad records: items", "another", 1, ""))
    assert [code for code, _ in problems(checkpoint)] == ["another-checkpoint"]


def test_no_checkpoint_at_all(tmp_path):
    with pytest.raises(RunError, match="no-checkpoint"):
        cutwater_spark.verify(tmp_path / "none")


def test_a_long_file_is_compared_block_by_block(tmp_path):
    path = Path(tmp_path / "long")
    put(path, b"x" * 2000)
    assert why_altered(path) is None
    path.write_bytes(b"x" * 1100 + b"y" + b"x" * 899)
    assert why_altered(path) == "its bytes from offset 1024 on do not match their checksum"
    path.write_bytes(b"x" * 1000)
    assert "it has 1000 bytes" in why_altered(path)
