"""Side outputs, which wait for a snapshot: late events and bad records, stored in folders.

A folder publishes an epoch atomically, so its rows are not released tick by tick. A task stores the
rows since its last snapshot beside the next one, in ``<tick>.side-output``, before that snapshot
counts.
The driver publishes the files up to a common tick as one epoch of that number. So a file up to the
newest published tick has been published, and one after the common tick is void.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from cutwater.spark.exchange.sink_rows import bucket_rows
from cutwater.spark.job.spec import Job
from cutwater.spark.realtime.opening import Opening
from cutwater.spark.realtime.snapshots import (
    SIDE_OUTPUT_SUFFIX,
    read_summed,
    side_output_tick,
    write_summed,
)
from cutwater.spark.storage.durable import make_folder

__all__ = ["SideOutputRow", "publish_side_outputs", "read_side_outputs", "store_side_outputs"]

SideOutputRow = tuple[int, int, bytes]
"""The number of the sink, the label of the bucket, and the packed rows."""
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[SideOutputRow]).decode


def store_side_outputs(folder: Path, tick: int, rows: list[SideOutputRow]) -> None:
    """Store the rows up to a tick, durably; call it before its snapshot is stored."""
    if rows:
        make_folder(folder)
        write_summed(folder / f"{tick}{SIDE_OUTPUT_SUFFIX}", _pack(rows))


def publish_side_outputs(job: Job, opening: Opening) -> None:
    """Publish what all tasks have stored, in the driver; safe to repeat after an interruption."""
    common = opening.snapshots.common()
    stored = sorted(_stored(opening, common))
    if not stored:
        return
    names = sorted(
        {
            job.addresses.sink_at(target)
            for _, path in stored
            for target, _, _ in read_side_outputs(path)
        }
    )
    for name in names:
        _publish(job, name, common, stored)
    for _, path in stored:
        path.unlink()


def _publish(job: Job, name: str, tick: int, stored: list[tuple[int, Path]]) -> None:
    sink, claim, target = job.sinks[name], job.claim_of(name), job.addresses.target_of_sink(name)
    newest = sink.newest_epoch(name, job.query_id)
    found: dict[int, list[bytes]] = {}
    for at, path in stored:
        if newest is None or at > newest:
            for to, label, body in read_side_outputs(path):
                if to == target:
                    found.setdefault(label, []).append(body)
    if found:
        buckets = [
            bucket_rows(job, target, label, bodies) for label, bodies in sorted(found.items())
        ]
        sink.publish(claim, tick, [sink.write(claim, tick, job.addresses.record_of(name), buckets)])


def _stored(opening: Opening, common: int) -> Iterator[tuple[int, Path]]:
    for partition in range(opening.partitions):
        folder = opening.snapshots.of(opening.levels - 1, partition).folder
        for path in folder.glob(f"*{SIDE_OUTPUT_SUFFIX}"):
            tick = side_output_tick(path)
            if tick <= common:
                yield tick, path


def read_side_outputs(path: Path) -> list[SideOutputRow]:
    """The rows in a ``.side-output`` file; refused if they are not what was stored."""
    return _unpack(read_summed(path))
