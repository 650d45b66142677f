"""The newest epoch, if it is not finished: what was shown of it, and how it is planned anew.

An epoch of which nothing was shown has had no effect: it is forgotten, and what it would have read
is planned anew, by the flow, the limits and the files that are there now. With the lock held and
every sink claimed, in this order:

==========================  ====================================================================
step                        what a crash right after it leaves
==========================  ====================================================================
ask every ledger            nothing has changed
remove the epoch from       entries of source logs that no epoch names. They were never read, so
Spark's offset log, sync    every start removes such entries
remove it from the source   what there was before the epoch
logs, sync
==========================  ====================================================================

The other way round a crash would leave an epoch that reads what is in no log. Of epoch 0 Spark's
part is removed whole, by one rename: there is no epoch before it whose states would be kept.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.compatibility import Identity, place_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.side_outputs import is_side_output, side_output_folder
from cutwater.spark.connectors.base.sink import Sink
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.job.spec import Job
from cutwater.spark.storage.durable import sync_folder
from cutwater.spark.storage.entry_log import drop_unread

__all__ = ["drop_unplanned", "forget_newest", "shown_of", "unbound_side_outputs"]

_GONE = "spark.gone-"


def unbound_side_outputs(checkpoint: Checkpoint, found: Identity, job: Job) -> dict[str, Sink]:
    """The side outputs that the checkpoint had and this run does not write to."""
    names = (name for name in found.sinks if is_side_output(name) and name not in job.sinks)
    return {name: Folder(str(checkpoint.root / side_output_folder(name))) for name in names}


def shown_of(checkpoint: Checkpoint, found: Identity, job: Job) -> dict[str, str]:
    """What each sink may have shown of what is not finished, in words; nothing: it is not there.

    A sink that is bound to another place, or to none, cannot be asked, and counts.
    """
    epoch = checkpoint.first_unfinished()
    sinks: Mapping[str, Sink] = {**unbound_side_outputs(checkpoint, found, job), **job.sinks}
    shown = {}
    for name, place in found.sinks.items():
        if name not in sinks or place_of(name, sinks[name]) != place:
            shown[name] = "an unknown part of it: it was bound to another place"
            continue
        said = sinks[name].shown(job.claim_of(name), epoch)
        if said is not None:
            shown[name] = said
    return shown


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
    """Remove what no epoch names: entries of source logs, and the rest of what was forgotten.

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
    return all(Chunk.of_json(item).is_decision for item in entry)


def _drop_sums(folder: Path) -> None:
    """Remove the sums of files that are gone; of another file they would be wrong."""
    for path in folder.glob("*.crc"):
        of = path.name.removesuffix(".crc").removeprefix(".").removesuffix(".crc")
        if not (folder / of).exists():
            path.unlink(missing_ok=True)
