"""The newest epoch, if it is unfinished: what was published of it, and how it is replanned.

An epoch of which nothing was released has had no effect: it is forgotten, and its input is
replanned, by the flow, the limits and the files of this start. With the lock held and every sink
claimed, in this order:

==========================  ====================================================================
step                        what a crash right after it leaves
==========================  ====================================================================
ask every ledger            nothing has changed
remove the epoch from       entries of source logs that no epoch refers to. They were never read,
Spark's offset log, sync    so every start removes such entries
remove it from the source   the checkpoint as it was before the epoch
logs, sync
==========================  ====================================================================

In the other order a crash would leave an epoch whose input is in no log. For epoch 0, Spark's
whole checkpoint is removed by one rename: there is no earlier epoch whose states must be kept.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.compatibility import Identity, sink_location
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.side_outputs import is_side_output, side_output_folder
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.job.spec import Job
from cutwater.spark.storage.durable import sync_folder
from cutwater.spark.storage.entry_log import drop_unread

__all__ = ["drop_unplanned", "forget_newest", "released_of", "unbound_side_outputs"]

_GONE = "spark.gone-"


def unbound_side_outputs(
    checkpoint: Checkpoint, found: Identity, job: Job
) -> dict[str, SinkConnector]:
    """The side outputs that the checkpoint had and this run does not write to."""
    names = (name for name in found.sinks if is_side_output(name) and name not in job.sinks)
    return {name: Folder(str(checkpoint.root / side_output_folder(name))) for name in names}


def released_of(checkpoint: Checkpoint, found: Identity, job: Job, epoch: int) -> dict[str, str]:
    """What each sink may have released from an epoch on, as a phrase; absent: nothing.

    A sink that is bound elsewhere now, or not at all, cannot be asked, so it counts as having
    released something.
    """
    sinks: Mapping[str, SinkConnector] = {
        **unbound_side_outputs(checkpoint, found, job),
        **job.sinks,
    }
    released = {}
    for name, location in found.sinks.items():
        if name not in sinks or sink_location(name, sinks[name]) != location:
            released[name] = "an unknown part of it: it was bound to another location"
            continue
        message = sinks[name].released(job.claim_of(name), epoch)
        if message is not None:
            released[name] = message
    return released


def forget_newest(checkpoint: Checkpoint) -> None:
    """Remove the newest epoch from Spark's offset log, durably."""
    epoch = checkpoint.next_epoch() - 1
    if epoch == 0:
        checkpoint.spark.rename(checkpoint.root / f"{_GONE}{uuid.uuid4().hex}")
        sync_folder(checkpoint.root)
    else:
        (checkpoint.spark / "offsets" / str(epoch)).unlink()
        sync_folder(checkpoint.spark / "offsets")


def drop_unplanned(checkpoint: Checkpoint, sources: Collection[str], generation: int) -> None:
    """Remove entries of source logs that no epoch refers to, and leftovers of forgotten epochs.

    Decisions stay, such as where the end of a topic was when a source began there.
    """
    read = checkpoint.entries_read(sources)
    for source in sources:
        folder = checkpoint.root / "sources" / source
        if source in read and folder.is_dir():
            drop_unread(folder, read[source], generation, _is_decided)
    for path in checkpoint.root.glob(f"{_GONE}*"):
        shutil.rmtree(path, ignore_errors=True)
    _drop_sums(checkpoint.spark / "offsets")


def _is_decided(entry: list[Any]) -> bool:
    chunks = map(Chunk.of_json, entry)
    return all(chunk.is_decision or chunk.is_beginning for chunk in chunks)


def _drop_sums(folder: Path) -> None:
    """Remove the checksums of files that are gone; a new file of that name would not match."""
    for path in folder.glob("*.crc"):
        of = path.name.removesuffix(".crc").removeprefix(".").removesuffix(".crc")
        if not (folder / of).exists():
            path.unlink(missing_ok=True)
