"""A checkpoint: which flow it belongs to, and what it holds.

::

    checkpoint/
      cutwater.json     identity: query id, flow, generation, stateful steps
      lock              held by the driver's JVM while a run is active
      topology.json     which steps read which, and the clocks of sources
      sinks.json        the output and the ledger location of each sink
      released.json     the newest epoch with rows for each sink
      sources/<name>/   the offset log of each source, with a folder per generation
      spark/            Spark's own checkpoint: offsets, commits, state
      synced-<n>.json   of generation n: up to which epoch spark/ survives a power loss
      bad-records/      dead letters of --on-bad-record skip
      late-events/      events that came after their time was complete
      fed-back/, left/  the logs of a loop that runs one round per epoch
      staging/<sink>/   staged rows of sinks that cannot stage them themselves
      calls/<sink>/     the progress of functions that are called as sinks
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from cutwater.endings import kind_of_errno
from cutwater.errors import Problem, RefusedError
from cutwater.spark.checkpoint.compatibility import CHECKPOINT_FORMAT, Identity
from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.job.spec import REALTIME
from cutwater.spark.state.partitions import SETTING
from cutwater.spark.storage.durable import (
    damaged,
    make_folder,
    parse_json,
    read_json,
    why_unwritable,
    write_json,
)
from cutwater.spark.storage.entry_log import EntryLog, read_entry
from cutwater.spark.storage.local_paths import impossible, is_url, not_local

__all__ = ["Checkpoint", "half_rescaled", "no_checkpoint", "refuse_real_time"]


class Checkpoint:
    """The folder of a checkpoint."""

    unit = "epoch"
    """What its numbers count."""
    logs_offsets = True
    """Is an epoch planned by Spark's offset log? Else the engine forgets it by itself."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.spark = root / "spark"
        self._identity = root / "cutwater.json"

    @staticmethod
    def at(path: str | Path) -> Checkpoint:
        """The checkpoint at a path that a user gives; a URL is refused."""
        if is_url(path):
            raise RefusedError(not_local("the checkpoint", path))
        if problems := list(impossible("the checkpoint", path)):
            raise RefusedError(problems)
        return Checkpoint(Path(path).absolute())

    @staticmethod
    def to_read(path: str | Path) -> Checkpoint:
        """The checkpoint of a run, or of a user's own query, whose folder is Spark's checkpoint."""
        found = Checkpoint.at(path)
        if (found.root / "offsets").exists():
            found.spark = found.root
        return found

    @property
    def is_embedded(self) -> bool:
        """Is it read as the checkpoint of a user's own query?"""
        return self.spark == self.root

    def identity(self, *, is_embedded: bool = False) -> Identity | None:
        """The identity of the checkpoint; None if there is none yet.

        Pass `is_embedded` for a flow inside a user's own query, whose files are in the folder
        itself.
        """
        hindrance = why_unwritable(self.root)
        if hindrance:
            raise RefusedError(_unwritable(self.root, hindrance))
        if not is_embedded and (self.root / "offsets").exists():
            raise RefusedError(_embedded(self.root))
        path, what = self._identity, "the checkpoint's identity"
        data = read_json(path, what)
        if data is None:
            if self.root.exists() and any(self.root.iterdir()) and self.spark.exists():
                raise RefusedError(
                    Problem(
                        "no-identity",
                        f"the checkpoint {self.root} has no cutwater.json; it is incomplete",
                        "restore it from a backup, or start with a new checkpoint and output",
                    )
                )
            return None
        if data.get("format") != CHECKPOINT_FORMAT:
            raise RefusedError(
                Problem(
                    "checkpoint-format",
                    f"the checkpoint {self.root} has format {data.get('format')}; this version "
                    f"reads format {CHECKPOINT_FORMAT}",
                    "use the version that wrote it, or start with a new checkpoint and an empty "
                    "output",
                )
            )
        try:
            identity = msgspec.convert(data, Identity)
        except msgspec.ValidationError as error:
            raise damaged(path, what, error) from None
        return replace(identity, partitions=self._partitions(identity))

    def save(self, identity: Identity) -> None:
        """Write the identity, durably."""
        write_json(self._identity, asdict(identity))

    def generation(self) -> int:
        """The newest generation that claimed it; 0 if none did."""
        found = read_json(self._identity, "the checkpoint's identity")
        return int(found["generation"]) if found else 0

    def create(self) -> None:
        """Create the folder, accessible to its owner only."""
        try:
            make_folder(self.root)
            probe = self.root / f".probe-{uuid.uuid4().hex}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            problem = _unwritable(self.root, error.strerror or str(error))
            raise kind_of_errno(error.errno)(problem) from None

    def next_epoch(self) -> int:
        """The first epoch that Spark's offset log does not have."""
        return self._newest("offsets") + 1

    def is_mid_epoch(self) -> bool:
        """Was the newest epoch begun but not finished?"""
        return self._newest("offsets") > self._newest("commits")

    def first_unfinished(self) -> int:
        """The first epoch that was begun but not finished, if there is one."""
        return self.next_epoch() - 1

    def finished_epochs(self) -> list[int]:
        """The finished epochs whose state is kept, in order."""
        return sorted(set(self._epochs("commits")) & set(self._epochs("offsets")))

    def entries_read(self, sources: Collection[str], epoch: int | None = None) -> dict[str, int]:
        """The newest entry of each source's log that an epoch reads; DataFrames have no log.

        `epoch` defaults to the newest.
        """
        epoch = self.next_epoch() - 1 if epoch is None else epoch
        offsets = self.offsets(epoch)
        if not offsets:
            return dict.fromkeys(sources, 0)
        pairs = zip(sorted(sources), offsets, strict=False)
        own = ((name, {"entry": 0} if offset is None else offset) for name, offset in pairs)
        try:
            return {name: int(offset["entry"]) for name, offset in own if _is_ours(offset)}
        except (ValueError, TypeError, OverflowError) as error:
            path = self.spark / "offsets" / str(epoch)
            raise damaged(path, "Spark's offset log", error) from None

    def last_chunks(
        self, sources: Collection[str], epoch: int | None = None
    ) -> dict[str, Chunk | None]:
        """The last chunk of each source that an epoch reads, by default the newest epoch."""
        return self.chunks_at(self.entries_read(sources, epoch))

    def chunks_at(self, entries: Mapping[str, int]) -> dict[str, Chunk | None]:
        """The last chunk of each source, up to the given entry of its log."""
        return {name: self._last_chunk(name, entry) for name, entry in entries.items()}

    def _last_chunk(self, source: str, entry: int) -> Chunk | None:
        kept = read_entry(self.root / "sources" / source, entry, LOG) if entry else None
        return Chunk.of_json(kept[-1]) if kept else None

    def read_chunks(self, source: str, note: Callable[[Chunk], None]) -> None:
        """Call `note` with each chunk in the log of a source, in order."""

        def note_all(kept: list[dict[str, Any]]) -> None:
            for chunk in kept:
                note(Chunk.of_json(chunk))

        EntryLog(self.root / "sources" / source, LOG, note_all)

    def offsets(self, epoch: int) -> list[Any]:
        """The offsets of an epoch in Spark's offset log, one for each source of the query.

        The logs of a loop come after the sources. Empty if the epoch is not in the log.
        """
        path = self.spark / "offsets" / str(epoch)
        try:
            lines = path.read_text().splitlines()[2:] if path.exists() else []
            return [None if line == "-" else parse_json(line) for line in lines]
        except ValueError as error:
            raise damaged(path, "Spark's offset log", error) from None

    def rescaling_to(self) -> int | None:
        """The target number of partitions of an interrupted rescaling; None if there is none."""
        newest = self._newest("offsets")
        if not self.is_mid_epoch() or not newest:
            return None
        before, after = self._partitions_in(newest - 1), self._partitions_in(newest)
        return after if before and before != after else None

    def _partitions(self, identity: Identity) -> int:
        """The number in Spark's log, which a rescaling changes before it changes the identity."""
        finished = min(self._newest("offsets"), self._newest("commits"))
        return (self._partitions_in(finished) if identity.levels else None) or identity.partitions

    def _partitions_in(self, epoch: int) -> int | None:
        """The number of partitions that an epoch began with; None if Spark's log does not say."""
        path = self.spark / "offsets" / str(epoch)
        try:
            lines = path.read_text().splitlines()[1:2] if path.exists() else []
            value = parse_json(lines[0])["conf"][SETTING] if lines else None
            return None if value is None else int(value)
        except (ValueError, TypeError, OverflowError) as error:
            raise damaged(path, "Spark's offset log", error) from None
        except KeyError:
            return None

    def _newest(self, log: str) -> int:
        """The newest epoch in a log of Spark's; -1 if there is none."""
        return max(self._epochs(log), default=-1)

    def _epochs(self, log: str) -> list[int]:
        """The epochs in a log of Spark's; after a power loss only the durable ones."""
        folder = self.spark / log
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        found = [int(name) for name in names if name.isdigit()]
        durable = SparkFiles(self.root).durable() if found else None
        return [epoch for epoch in found if durable is None or epoch <= durable[log]]

    def is_ending(self) -> bool:
        """Is the newest epoch that was begun the end of the input? Our own offsets say so."""
        newest = self.spark / "offsets" / str(self.next_epoch() - 1)
        try:
            lines = newest.read_text().splitlines() if newest.exists() else []
            return any(_is_end(parse_json(line)) for line in lines[2:] if line.startswith("{"))
        except ValueError as error:
            raise damaged(newest, "Spark's offset log", error) from None


def _is_ours(offset: Any) -> bool:
    return isinstance(offset, dict) and "entry" in offset


def _is_end(offset: dict[str, Any]) -> bool:
    """Does this offset of ours end the input? Foreign offsets may have the same keys."""
    return "entry" in offset and offset.get("end") is True


def no_checkpoint(checkpoint: Checkpoint) -> Problem:
    """The problem to report where a checkpoint was expected."""
    return Problem(
        "no-checkpoint",
        f"there is no checkpoint in {checkpoint.root}",
        "give the folder that was given to run as its checkpoint",
    )


def refuse_real_time(identity: Identity, doing: str) -> None:
    """Refuse an operation on Spark's own files, which a real-time checkpoint does not have."""
    if identity.engine == REALTIME:
        raise RefusedError(
            Problem(
                "checkpoint-of-real-time",
                f"the checkpoint of flow '{identity.flow}' belongs to the real-time engine; to "
                f"{doing} is for checkpoints of the micro-batch engine",
                "see the outputs of the run itself, or run the flow on micro-batches, with a new "
                "checkpoint",
            )
        )


def half_rescaled(checkpoint: Checkpoint) -> list[Problem]:
    """The problem of a checkpoint whose rescaling was interrupted; empty if none was."""
    partitions = checkpoint.rescaling_to()
    if partitions is None:
        return []
    return [
        Problem(
            "half-rescaled",
            f"the state in {checkpoint.root} was being moved to {partitions} partitions, and that "
            "was cut off",
            f"finish it: cutwater checkpoint rescale {checkpoint.root} --partitions {partitions}",
        )
    ]


def _embedded(root: Path) -> Problem:
    return Problem(
        "embedded-checkpoint",
        f"{root} is the checkpoint of a query of your own, not of a run: it has Spark's offsets",
        "choose another folder; the checkpoint of your own query continues with that query",
    )


def _unwritable(root: Path, why: str) -> Problem:
    return Problem(
        "unwritable-checkpoint",
        f"the checkpoint {root} cannot be written: {why}",
        "choose a folder that you may write to",
    )
