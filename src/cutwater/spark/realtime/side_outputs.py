"""Rows that wait for a snapshot: late events and bad records, which lie in folders.

A folder shows an epoch at once, so its rows are not released tick by tick. A task stores what came
since its last snapshot beside the next one, in ``<tick>.aside``, before that snapshot counts. The
driver publishes what all snapshots of a common tick have, as one epoch of that number. So a file
up to the newest published tick has been published, and one behind the common tick is void.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from cutwater.spark.exchange.sink_rows import lane_of
from cutwater.spark.job.spec import Job
from cutwater.spark.realtime.opening import Opening
from cutwater.spark.realtime.snapshots import ASIDE, tick_of_aside
from cutwater.spark.storage.durable import make_folder, write_file

__all__ = ["AsideRow", "publish_side_outputs", "store_aside"]

AsideRow = tuple[int, int, bytes]
"""The number of the sink, the label of the bucket, and the packed rows."""
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[AsideRow]).decode


def store_aside(folder: Path, tick: int, rows: list[AsideRow]) -> None:
    """Store what came up to a tick, durably; to be called before its snapshot is stored."""
    if rows:
        make_folder(folder)
        write_file(folder / f"{tick}{ASIDE}", _pack(rows))


def publish_side_outputs(job: Job, opening: Opening) -> None:
    """Publish what all tasks have stored, in the driver; again if it was cut off."""
    common = opening.snapshots.common()
    stored = sorted(_stored(opening, common))
    if not stored:
        return
    names = sorted({job.sink_at(target) for _, path in stored for target, _, _ in _read(path)})
    for name in names:
        _publish(job, name, common, stored)
    for _, path in stored:
        path.unlink()


def _publish(job: Job, name: str, tick: int, stored: list[tuple[int, Path]]) -> None:
    sink, claim, target = job.sinks[name], job.claim_of(name), job.target_of_sink(name)
    newest = sink.newest_epoch(name, job.query_id)
    found: dict[int, list[bytes]] = {}
    for at, path in stored:
        if newest is None or at > newest:
            for to, label, body in _read(path):
                if to == target:
                    found.setdefault(label, []).append(body)
    if found:
        lanes = [lane_of(job, target, label, bodies) for label, bodies in sorted(found.items())]
        sink.publish(claim, tick, [sink.write(claim, tick, job.record_of(name), lanes)])


def _stored(opening: Opening, common: int) -> Iterator[tuple[int, Path]]:
    for partition in range(opening.partitions):
        folder = opening.snapshots.of(opening.levels - 1, partition).folder
        for path in folder.glob(f"*{ASIDE}"):
            tick = tick_of_aside(path)
            if tick <= common:
                yield tick, path


def _read(path: Path) -> list[AsideRow]:
    return _unpack(path.read_bytes())
