"""The lock of a checkpoint: one run at a time, held by the JVM that runs the query."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cutwater.errors import Problem, ResourceError
from cutwater.spark.checkpoint.store import Checkpoint

__all__ = ["LOCK_WAIT_SECONDS", "locked"]

LOCK_WAIT_SECONDS = 60.0
"""How long a start waits for an earlier run: the JVM of a killed driver outlives it briefly."""


@contextmanager
def locked(
    checkpoint: Checkpoint, spark: SparkSession, wait_seconds: float, notify: Callable[[str], None]
) -> Iterator[None]:
    """Hold the checkpoint's lock in the driver's JVM, so that it lives exactly as long as the
    query.

    The JVM of a killed driver keeps running for a moment; a start waits for it to exit.
    """
    with _marked(checkpoint, spark):
        channel = _open_channel(checkpoint.root / "lock", spark)
        try:
            _wait_for_lock(checkpoint, channel, wait_seconds, notify)
            yield
        finally:
            channel.close()


@contextmanager
def _marked(checkpoint: Checkpoint, spark: SparkSession) -> Iterator[None]:
    """Make sure that only one thread of this JVM opens the lock file.

    Closing a second channel to the file would release the lock of the first.
    """
    jvm = spark._jvm
    assert jvm is not None
    marks, name = jvm.java.lang.System.getProperties(), f"cutwater.lock:{checkpoint.root.resolve()}"
    if marks.putIfAbsent(name, "held") is not None:
        raise ResourceError(_in_use(checkpoint))
    try:
        yield
    finally:
        marks.remove(name)


def _wait_for_lock(
    checkpoint: Checkpoint, channel: Any, wait_seconds: float, notify: Callable[[str], None]
) -> None:
    deadline = time.monotonic() + wait_seconds
    has_notified = False
    while not _try_lock(channel):
        if time.monotonic() > deadline:
            raise ResourceError(_in_use(checkpoint))
        if not has_notified:
            notify("waiting for an earlier run to release the checkpoint")
            has_notified = True
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
