"""A checkpoint with every kind of file that there is, written without a JVM."""

import json
import struct
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.checkpoint.sink_records import note_released, remember_sinks
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.job.spec import Job
from cutwater.spark.storage import entry_log
from cutwater.spark.telemetry.row_counts import note_rows
from cutwater.spark.telemetry.topology import topology_of, write_topology

EPOCHS = 2


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def total(state: int, item: Item) -> tuple[int, list[Item]]:
    return state + item.size, [item]


@dataclass(frozen=True)
class Made:
    """A checkpoint and the job whose it is."""

    checkpoint: Checkpoint
    job: Job

    def file(self, name: str) -> Path:
        """A file, by its path in the folder of all."""
        return self.checkpoint.root.parent / name


def make_checkpoint(folder: Path) -> Made:
    """Two epochs that are finished, with a snapshot of the state after the second."""
    flow = cw.Flow("totals")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(total))
    (folder / "in").mkdir()
    job = make_job(flow, folder)
    sources = {"items": JsonLines(str(folder / "in"))}
    job = replace(
        job,
        sources=sources,
        sinks={"out": Folder(str(folder / "out"))},
        checkpoint=str(folder / "state"),
    )
    checkpoint = Checkpoint(folder / "state")
    checkpoint.create()
    identity = replace(identity_of(job, 1), generation=1)
    checkpoint.save(identity)
    job = replace(job, query_id=identity.query_id, generation=1)
    _logs(checkpoint, folder / "in")
    _states(checkpoint)
    _output(job)
    remember_sinks(checkpoint.root, job)
    note_released(checkpoint.root, EPOCHS - 1, ["out"])
    SparkFiles(checkpoint.root, 1).sync_all()
    write_topology(checkpoint.root, topology_of(job))
    return Made(checkpoint, job)


def _logs(checkpoint: Checkpoint, source: Path) -> None:
    _put(checkpoint.spark / "metadata", b'{"id":"5ee0"}')
    folder = checkpoint.root / "sources" / "items"
    log = entry_log.EntryLog(folder, "the log", generation=1)
    chunk = {"number": 0, "path": str(source / "1"), "size": 9, "modified_ns": 1}
    for epoch in range(EPOCHS):
        log.append([{**chunk, "start": epoch, "end": epoch + 1}])
        about = json.dumps({"conf": {"spark.sql.shuffle.partitions": "1"}})
        offset = f"v1\n{about}\n" + json.dumps({"entry": epoch + 1})
        _put(checkpoint.spark / "offsets" / str(epoch), offset.encode())
        ids = json.dumps({"stateUniqueIds": {"0": [[f"id{epoch}"]]}})
        _put(checkpoint.spark / "commits" / str(epoch), f"v2\n{ids}".encode())
    log._compact(1)


def _states(checkpoint: Checkpoint) -> None:
    state = checkpoint.spark / "state" / "0"
    for epoch in range(EPOCHS):
        _put(state / "0" / f"{epoch + 1}_id{epoch}.changelog", bytes(range(64 + epoch)))
    _put(state / "0" / "SSTs" / "8-x.sst", b"table" * 30)
    snapshot = state / "0" / "2_id1.zip"
    with zipfile.ZipFile(snapshot, "w") as archive:
        about = {"sstFiles": [{"dfsSstFileName": "8-x.sst", "sizeBytes": 150}]}
        archive.writestr("metadata", "v1\n" + json.dumps(about))
    _put(snapshot, snapshot.read_bytes())
    schema = state / "_stateSchema" / "default" / "0"
    _put(schema, b"v3\nx")
    moved = f"file:/elsewhere/state/0/_stateSchema/{schema.relative_to(state / '_stateSchema')}"
    about = {"operatorInfo": {}, "stateStoreInfo": [{"stateSchemaFilePaths": [moved]}]}
    _put(state / "_metadata" / "v2" / "0", f"v2\n{json.dumps(about)}".encode())


def _output(job: Job) -> None:
    claim = job.claim_of("out")
    assert isinstance(claim, Claim)
    sink = job.sinks["out"]
    sink.prepare("out", Item)
    sink.claim(claim)
    line = BucketRows(1, [b"\0"], [b'{"name":"a","size":1}\n'])
    for epoch in range(EPOCHS):
        sink.publish(claim, epoch, [sink.write(claim, epoch, Item, [line])])
    note_rows(job.checkpoint, EPOCHS - 1, {"out": EPOCHS})


def _put(path: Path, data: bytes) -> None:
    """Write a file with the sums that Hadoop's file system writes beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    sums = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    beside = path.with_name(f".{path.name}.crc")
    beside.write_bytes(b"crc\0" + struct.pack(">i", 512) + struct.pack(f">{len(sums)}I", *sums))
