"""Why a query ended, in a sentence: our own words if it was one of us, else Spark's."""

from __future__ import annotations

import errno
import os
import re

from pyspark.errors import StreamingQueryException

from cutwater.endings import of_machine
from cutwater.errors import (
    CutwaterError,
    Problem,
    RefusedError,
    ResourceError,
    RunFailure,
    recover,
)
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.checkpoint.verify import verify
from cutwater.spark.embedded.jvm import is_out_of_memory, out_of_memory

__all__ = ["cause_of", "sentence_of"]

_OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EROFS)


def sentence_of(error: StreamingQueryException, place: Checkpoint) -> CutwaterError:
    """What ended the query: our own words if it was one of us, else what can be told of Spark's."""
    ours = recover(str(error))
    if ours is not None:
        return ours
    if is_out_of_memory(str(error)):
        return ResourceError(out_of_memory(place.root / "scratch"))
    failed = _failure_of_the_machine(str(error), place)
    if failed:  # before looking for damages: what could not be written is no damage
        return failed
    damages = verify(place.root).problems
    if damages:
        return RefusedError(damages)
    return RunFailure(
        Problem(
            "spark-failed",
            f"Spark ended the run: {cause_of(str(error))}",
            f"see {place.root / 'scratch' / 'spark.log'}, or run with --debug",
        )
    )


def _failure_of_the_machine(text: str, place: Checkpoint) -> CutwaterError | None:
    """What the operating system said to the JVM, which hands on its words and not its number."""
    found = [number for number in _OF_THE_MACHINE if os.strerror(number) in text]
    if not found and os.statvfs(place.root).f_bavail:
        return None
    number = found[0] if found else errno.ENOSPC
    return of_machine(OSError(number, os.strerror(number), str(place.root)))


def cause_of(text: str) -> str:
    """The line of a Spark error that says what happened: the end of a Python traceback."""
    lines = text.split("\n\n")[0].split("=== Streaming Query ===")[0].strip().splitlines()
    said = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return (said or lines or ["no reason given"])[-1 if said else 0]
