"""A checkpoint: whose it is, what it holds, and who may write to it.

::

    checkpoint/
      cutwater.json     identity: query id, flow, generation, steps that keep states
      lock              held by the driver's JVM while a run lives
      sources/<name>/   the log of what each source has read
      spark/            Spark's own checkpoint: offsets, commits, state
      bad-records/      what --on-bad-record skip kept aside
      late-events/      events that came after their time was complete
      staging/<sink>/   what sinks without a place for it have not shown yet
      calls/<sink>/     how far the functions are that are called as sinks
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from cutwater.errors import Problem, RunError
from cutwater.spark.checkpoint.compatibility import FORMAT, Identity
from cutwater.spark.checkpoint.partitions import SETTING
from cutwater.spark.storage.durable import (
    damaged,
    make_folder,
    read_json,
    why_unwritable,
    write_json,
)

__all__ = ["Checkpoint", "half_rescaled", "locked", "no_checkpoint"]


class Checkpoint:
    """The folder of a checkpoint."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.spark = root / "spark"
        self._identity = root / "cutwater.json"

    def identity(self, *, is_embedded: bool = False) -> Identity | None:
        """Whose checkpoint this is; None if there is none yet.

        `is_embedded` is asked for by a flow inside another query, whose files lie in the folder
        itself.
        """
        hindrance = why_unwritable(self.root)
        if hindrance:
            raise RunError(_unwritable(self.root, hindrance))
        if not is_embedded and (self.root / "offsets").exists():
            raise RunError(_embedded(self.root))
        path, what = self._identity, "the checkpoint's identity"
        data = read_json(path, what)
        if data is None:
            if self.root.exists() and any(self.root.iterdir()) and self.spark.exists():
                raise RunError(
                    Problem(
                        "no-identity",
                        f"the checkpoint {self.root} has no cutwater.json; it is not whole",
                        "restore it from a backup, or start with a new checkpoint and output",
                    )
                )
            return None
        if data.get("format") != FORMAT:
            raise RunError(
                Problem(
                    "checkpoint-format",
                    f"the checkpoint {self.root} has format {data.get('format')}; this version "
                    f"reads format {FORMAT}",
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
        """The newest generation that took it; 0 if none did."""
        found = read_json(self._identity, "the checkpoint's identity")
        return int(found["generation"]) if found else 0

    def create(self) -> None:
        """Make the folder, for its owner only."""
        try:
            make_folder(self.root)
            probe = self.root / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise RunError(_unwritable(self.root, error.strerror or str(error))) from None

    def next_epoch(self) -> int:
        """The first epoch that Spark's offset log does not have."""
        return self._newest("offsets") + 1

    def is_mid_epoch(self) -> bool:
        """Was the newest epoch begun and not finished?"""
        return self._newest("offsets") > self._newest("commits")

    def finished_epochs(self) -> list[int]:
        """The epochs whose state is kept, in order."""
        return sorted(set(self._epochs("commits")) & set(self._epochs("offsets")))

    def rescaling_to(self) -> int | None:
        """The number of partitions that the state was being moved to when that was cut off."""
        newest = self._newest("offsets")
        if not self.is_mid_epoch() or not newest:
            return None
        before, after = self._partitions_in(newest - 1), self._partitions_in(newest)
        return after if before and before != after else None

    def _partitions(self, identity: Identity) -> int:
        """The number by Spark's log, which a rescaling changes before it changes the identity."""
        finished = min(self._newest("offsets"), self._newest("commits"))
        return (self._partitions_in(finished) if identity.levels else None) or identity.partitions

    def _partitions_in(self, epoch: int) -> int | None:
        """The number that an epoch began with; None if Spark's log does not say."""
        path = self.spark / "offsets" / str(epoch)
        lines = path.read_text().splitlines()[1:2] if path.exists() else []
        try:
            said = json.loads(lines[0])["conf"][SETTING] if lines else None
            return None if said is None else int(said)
        except (ValueError, TypeError) as error:
            raise damaged(path, "Spark's offset log", error) from None
        except KeyError:
            return None

    def _newest(self, log: str) -> int:
        """The newest epoch in a log of Spark's; -1 if there is none."""
        return max(self._epochs(log), default=-1)

    def _epochs(self, log: str) -> list[int]:
        """The epochs in a log of Spark's."""
        folder = self.spark / log
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return [int(name) for name in names if name.isdigit()]

    def is_ending(self) -> bool:
        """Is the end of the input the newest epoch that was begun? Our own offsets say so."""
        newest = self.spark / "offsets" / str(self.next_epoch() - 1)
        lines = newest.read_text().splitlines() if newest.exists() else []
        try:
            return any(_is_end(json.loads(line)) for line in lines[2:] if line.startswith("{"))
        except ValueError as error:
            raise damaged(newest, "Spark's offset log", error) from None


def _is_end(offset: dict[str, Any]) -> bool:
    """Is it an offset of ours that ends the input? Those of others may have the same names."""
    return "entry" in offset and offset.get("end") is True


def no_checkpoint(checkpoint: Checkpoint) -> Problem:
    """What is said where a checkpoint should be."""
    return Problem(
        "no-checkpoint",
        f"there is no checkpoint in {checkpoint.root}",
        "give the folder that was given to run as its checkpoint",
    )


def half_rescaled(checkpoint: Checkpoint) -> list[Problem]:
    """What is said of a checkpoint whose state was being moved when that was cut off."""
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
        f"{root} is the checkpoint of a query of your own, not of a run: Spark's offsets lie in it",
        "choose another folder; what a query of your own keeps goes on with that query",
    )


def _unwritable(root: Path, why: str) -> Problem:
    return Problem(
        "unwritable-checkpoint",
        f"the checkpoint {root} cannot be written: {why}",
        "choose a folder that you may write to",
    )


@contextmanager
def locked(
    checkpoint: Checkpoint, spark: SparkSession, wait_seconds: float, tell: Callable[[str], None]
) -> Iterator[None]:
    """Hold the checkpoint's lock in the driver's JVM, where the query lives and dies.

    A driver that was killed leaves its JVM running for a moment; we wait for it to go.
    """
    with _marked(checkpoint, spark):
        channel = _open_channel(checkpoint.root / "lock", spark)
        try:
            _wait_for_lock(checkpoint, channel, wait_seconds, tell)
            yield
        finally:
            channel.close()


@contextmanager
def _marked(checkpoint: Checkpoint, spark: SparkSession) -> Iterator[None]:
    """Be the only one in this JVM who opens the file of the lock.

    Closing a second channel to it would drop the lock of the first.
    """
    jvm = spark._jvm
    assert jvm is not None
    marks, name = jvm.java.lang.System.getProperties(), f"cutwater.lock:{checkpoint.root.resolve()}"
    if marks.putIfAbsent(name, "held") is not None:
        raise RunError(_in_use(checkpoint))
    try:
        yield
    finally:
        marks.remove(name)


def _wait_for_lock(
    checkpoint: Checkpoint, channel: Any, wait_seconds: float, tell: Callable[[str], None]
) -> None:
    deadline = time.monotonic() + wait_seconds
    told = False
    while not _try_lock(channel):
        if time.monotonic() > deadline:
            raise RunError(_in_use(checkpoint))
        if not told:
            tell("waiting for an earlier run to let go of the checkpoint")
            told = True
        time.sleep(0.1)


def _in_use(checkpoint: Checkpoint) -> Problem:
    return Problem(
        "checkpoint-in-use",
        f"the checkpoint {checkpoint.root} is in use by another run",
        "stop that run first, or use another checkpoint",
    )


def _open_channel(path: Path, spark: SparkSession) -> Any:
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    assert jvm is not None
    assert gateway is not None
    option = jvm.java.nio.file.StandardOpenOption
    options = gateway.new_array(jvm.java.nio.file.OpenOption, 2)
    options[0], options[1] = option.CREATE, option.WRITE
    file = jvm.java.nio.file.Path.of(str(path), gateway.new_array(jvm.java.lang.String, 0))
    return jvm.java.nio.channels.FileChannel.open(file, options)


def _try_lock(channel: Any) -> bool:
    return channel.tryLock() is not None
