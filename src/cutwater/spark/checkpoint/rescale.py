"""Moving the state of a flow that stands still to another number of partitions.

Spark's own checkpoint manager does it, in an epoch that reads nothing and shows nothing: its offset
is logged with the new number, the states are written beside the old ones, and the commit makes them
count. Cut off before the offset, nothing has happened; after the commit, all has. In between a run
is refused, and the same command again finishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession

from cutwater.errors import Problem, RefusedError
from cutwater.spark.checkpoint.compatibility import Identity
from cutwater.spark.checkpoint.lock import LOCK_WAIT_SECONDS, locked
from cutwater.spark.checkpoint.relocate import relocate
from cutwater.spark.checkpoint.store import (
    Checkpoint,
    half_rescaled,
    no_checkpoint,
    refuse_real_time,
)
from cutwater.spark.embedded.session import check_session, embedded_session, looked_after
from cutwater.spark.state.partitions import check_partitions

__all__ = ["Rescaled", "rescale"]


@dataclass(frozen=True)
class Rescaled:
    """What became of the partitions of a checkpoint."""

    flow: str
    before: int
    partitions: int
    next_epoch: int
    """The first epoch that is not in the checkpoint; moving takes one, which shows nothing."""


def rescale(
    checkpoint: str | Path,
    partitions: int,
    spark: SparkSession | None = None,
    *,
    master: str = "local[*]",
    tell: Callable[[str], None] = lambda _sentence: None,
) -> Rescaled:
    """Move the state in a checkpoint to another number of partitions, while nothing runs.

    Parameters
    ----------
    checkpoint
        The folder; one that is in use, closed, or in the middle of an epoch raises `RunError`.
    partitions
        A divisor of the number of buckets. The number it has already changes nothing.
    spark
        A session to work on; without one an embedded session is made and stopped.
    """
    place = Checkpoint.at(checkpoint)
    identity = _movable(place, partitions)
    if identity.partitions == partitions and place.rescaling_to() is None:
        return Rescaled(identity.flow, partitions, partitions, place.next_epoch())
    scratch = place.root / "scratch"
    session = spark or embedded_session(scratch, master=master)
    with looked_after(session, scratch, is_ours=spark is None):
        check_session(session)
        with locked(place, session, LOCK_WAIT_SECONDS, tell):
            identity = _movable(place, partitions)
            relocate(place)
            _move(session, place, identity, partitions)
            place.save(replace(identity, partitions=partitions))
            return Rescaled(identity.flow, identity.partitions, partitions, place.next_epoch())


def _movable(place: Checkpoint, partitions: int) -> Identity:
    """Whose checkpoint it is; raises `RunError` if its state cannot be moved now."""
    identity = place.identity()
    if identity is None:
        raise RefusedError(no_checkpoint(place))
    refuse_real_time(identity, "move the state")
    problems = check_partitions(partitions, identity.buckets)
    if identity.is_closed or place.is_ending():
        problems.append(_closed(place, identity))
    elif place.rescaling_to() not in (None, partitions):
        problems += half_rescaled(place)
    elif place.is_mid_epoch() and place.rescaling_to() is None:
        problems.append(_mid_epoch(place))
    if problems:
        raise RefusedError(problems)
    return identity


def _move(spark: SparkSession, place: Checkpoint, identity: Identity, partitions: int) -> None:
    """Let Spark move the states, if there are any and they are not where they should be."""
    is_there = identity.partitions == partitions and place.rescaling_to() is None
    if is_there or not identity.levels or not place.next_epoch():
        return
    try:
        spark._streamingCheckpointManager.repartition(str(place.spark), partitions)
    except Py4JNetworkError:
        raise
    except Py4JError as error:
        raise RefusedError(_not_moved(place, partitions, error)) from error


def _closed(place: Checkpoint, identity: Identity) -> Problem:
    return Problem(
        "closed-checkpoint",
        f"the input of flow '{identity.flow}' has ended: the checkpoint {place.root} was closed, "
        "and no run will use its state again",
        "leave it as it is; a new checkpoint can have another number of partitions",
    )


def _mid_epoch(place: Checkpoint) -> Problem:
    return Problem(
        "unfinished-epoch",
        f"epoch {place.next_epoch() - 1} of the checkpoint {place.root} was cut off; only the flow "
        "can finish it",
        "run the flow until it has caught up, then rescale",
    )


def _not_moved(place: Checkpoint, partitions: int, error: Py4JError) -> Problem:
    java = getattr(error, "java_exception", None)
    said = str(java.getMessage() if java is not None else error).strip().splitlines()
    return Problem(
        "not-rescaled",
        f"Spark did not move the state in {place.root} to {partitions} partitions: "
        f"{said[0] if said else type(error).__name__}",
        f"see {place.root / 'scratch' / 'spark.log'}; the old state is still there, and the same "
        "command can be tried again",
    )
