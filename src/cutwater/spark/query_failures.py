"""Turns a failed query into one error: Cutwater's own if there is one, else Spark's."""

from __future__ import annotations

import errno
import os
import re

from pyspark.errors import StreamingQueryException

from cutwater.endings import OF_STORAGE, of_machine
from cutwater.errors import (
    CutwaterError,
    Problem,
    RefusedError,
    ResourceError,
    RunFailure,
    extract,
)
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.checkpoint.verify import verify_checkpoint
from cutwater.spark.embedded.jvm import is_out_of_memory, out_of_memory, ran_out_of_memory

__all__ = ["cause_of", "sentence_of"]

_AROUND = re.compile(
    r"^\[STREAM_FAILED\] .*? terminated with exception: |^Job aborted due to stage failure: "
    r"|^Task \d.*? most recent failure: |^Lost task .*?\): |^[\w.]+\.\w*Exception: "
    r"| Consider setting '.*"
)
"""What Spark puts before a failure on the way to the driver, and advice on its own settings."""

_IS_STOPPING = '"org.apache.spark.SparkContext.dagScheduler()" is null'
"""What a query meets while Spark stops since a task ran out of memory."""


def sentence_of(error: StreamingQueryException, checkpoint: Checkpoint) -> CutwaterError:
    """The error that ended the query: Cutwater's own if there is one, else Spark's, explained."""
    ours = extract(str(error))
    if ours is not None:
        return ours
    scratch = checkpoint.root / "scratch"
    has_no_memory = _IS_STOPPING in str(error) and ran_out_of_memory(scratch)
    if has_no_memory or is_out_of_memory(str(error)):
        return ResourceError(out_of_memory(scratch))
    failed = _failure_of_the_system(str(error), checkpoint)
    if failed:  # first: a failed write does not mean that the checkpoint is damaged
        return failed
    damages = verify_checkpoint(checkpoint).problems
    if damages:
        return RefusedError(damages)
    return RunFailure(
        Problem(
            "spark-failed",
            f"Spark ended the run: {cause_of(str(error))}",
            f"see {scratch / 'spark.log'}, or run with --debug",
        )
    )


def _failure_of_the_system(text: str, checkpoint: Checkpoint) -> CutwaterError | None:
    """An error of the operating system; the JVM passes on its message but not its errno."""
    found = [number for number in OF_STORAGE if os.strerror(number) in text]
    if not found and os.statvfs(checkpoint.root).f_bavail:
        return None
    number = found[0] if found else errno.ENOSPC
    message = cause_of(text) if found else os.strerror(number)
    return of_machine(OSError(number, message, str(checkpoint.root)))


def cause_of(text: str) -> str:
    """The line of a Spark error that names the cause: the last line of a Python traceback."""
    lines = text.split("\n\n")[0].split("=== Streaming Query ===")[0].strip().splitlines()
    causes = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return causes[-1] if causes else _unwrapped(lines[0]) if lines else "no reason given"


def _unwrapped(line: str) -> str:
    """A failure without what Spark put around it."""
    while (inner := _AROUND.sub("", line)) and inner != line:
        line = inner
    return line.rstrip(".")
