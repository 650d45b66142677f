"""A checkpoint: whose it is, what it holds, and who may write to it.

::

    checkpoint/
      cutwater.json     identity: query id, flow, generation, steps that keep states
      lock              held by the driver's JVM while a run lives
      sources/<name>/   the log of files of each source
      spark/            Spark's own checkpoint: offsets, commits, state
      bad-records/      what --on-bad-record skip kept aside
      late-events/      events that came after their time was complete
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from cutwater.errors import Problem, RunError
from cutwater.spark.durable import damaged, read_json, why_unwritable, write_json
from cutwater.spark.identity import FORMAT, Identity

__all__ = ["Checkpoint", "locked"]


class Checkpoint:
    """The folder of a checkpoint."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.spark = root / "spark"

    def identity(self) -> Identity | None:
        """Whose checkpoint this is; None if there is none yet."""
        hindrance = why_unwritable(self.root)
        if hindrance:
            raise RunError(_unwritable(self.root, hindrance))
        path, what = self.root / "cutwater.json", "the checkpoint's identity"
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
            return msgspec.convert(data, Identity)
        except msgspec.ValidationError as error:
            raise damaged(path, what, error) from None

    def save(self, identity: Identity) -> None:
        """Write the identity, durably."""
        write_json(self.root / "cutwater.json", asdict(identity))

    def create(self) -> None:
        """Make the folder, for its owner only."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = self.root / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise RunError(_unwritable(self.root, error.strerror or str(error))) from None

    def next_epoch(self) -> int:
        """The first epoch that Spark's offset log does not have."""
        offsets = self.spark / "offsets"
        names = [path.name for path in offsets.iterdir()] if offsets.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=-1) + 1

    def is_ending(self) -> bool:
        """Is the end of the input the newest epoch that was begun? Our own offsets say so."""
        newest = self.spark / "offsets" / str(self.next_epoch() - 1)
        lines = newest.read_text().splitlines() if newest.exists() else []
        return any(line.startswith("{") and '"end"' in line for line in lines[2:])


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
    jvm = spark._jvm
    assert jvm is not None
    held, name = jvm.java.lang.System.getProperties(), f"cutwater.lock:{checkpoint.root.resolve()}"
    # Closing a second channel to the file would drop the first one's lock: never open two.
    if held.get(name) is not None:
        raise RunError(_in_use(checkpoint))
    channel = _open_channel(checkpoint.root / "lock", spark)
    held.put(name, channel)
    deadline = time.monotonic() + wait_seconds
    told = False
    try:
        while not _try_lock(channel):
            if time.monotonic() > deadline:
                raise RunError(_in_use(checkpoint))
            if not told:
                tell("waiting for an earlier run to let go of the checkpoint")
                told = True
            time.sleep(0.1)
        yield
    finally:
        held.remove(name)
        channel.close()


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
