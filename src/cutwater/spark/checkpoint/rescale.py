"""Moves the state of a stopped flow to another number of partitions.

Spark's own checkpoint manager does it, in an epoch that reads and writes nothing: its offset is
logged with the new number, the states are written beside the old ones, and the commit makes them
current. A crash before the offset changes nothing; after the commit, the move is done. In between,
a run is refused, and repeating the command finishes the move.
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
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.checkpoint.relocate import relocate
from cutwater.spark.checkpoint.store import (
    Checkpoint,
    half_rescaled,
    no_checkpoint,
    refuse_real_time,
)
from cutwater.spark.embedded.session import check_session, closing_session, embedded_session
from cutwater.spark.state.partitions import check_partitions

__all__ = ["Rescaled", "rescale"]


@dataclass(frozen=True)
class Rescaled:
    """The outcome of rescaling a checkpoint."""

    flow: str
    before: int
    partitions: int
    next_epoch: int
    """The first epoch that is not in the checkpoint; the move takes one epoch, without rows.
    """


def rescale(
    checkpoint: str | Path,
    partitions: int,
    spark: SparkSession | None = None,
    *,
    master: str = "local[*]",
    notify: Callable[[str], None] = lambda _sentence: None,
) -> Rescaled:
    """Move the state of a checkpoint to another number of partitions, while no run is active.

    Parameters
    ----------
    checkpoint
        The folder; one that is in use, closed, or in the middle of an epoch raises `RunError`.
    partitions
        A divisor of the number of buckets. The current number is a no-op.
    spark
        A session to work on; without one, an embedded session is started and stopped.
    """
    store = Checkpoint.at(checkpoint)
    identity = _movable(store, partitions)
    if identity.partitions == partitions and store.rescaling_to() is None:
        return Rescaled(identity.flow, partitions, partitions, store.next_epoch())
    scratch = store.root / "scratch"
    session = spark or embedded_session(scratch, master=master)
    with closing_session(session, scratch, is_ours=spark is None):
        check_session(session)
        with locked(store, session, LOCK_WAIT_SECONDS, notify):
            files = SparkFiles(store.root, identity.generation)
            files.discard_unsynced()
            identity = _movable(store, partitions)
            relocate(store)
            _move(session, store, identity, partitions)
            if files.is_promised():
                files.sync_all()
            store.save(replace(identity, partitions=partitions))
            return Rescaled(identity.flow, identity.partitions, partitions, store.next_epoch())


def _movable(store: Checkpoint, partitions: int) -> Identity:
    """The checkpoint's identity; raises `RunError` if its state cannot be moved now."""
    identity = store.identity()
    if identity is None:
        raise RefusedError(no_checkpoint(store))
    refuse_real_time(identity, "move the state")
    problems = check_partitions(partitions, identity.buckets)
    if identity.is_closed or store.is_ending():
        problems.append(_closed(store, identity))
    elif store.rescaling_to() not in (None, partitions):
        problems += half_rescaled(store)
    elif store.is_mid_epoch() and store.rescaling_to() is None:
        problems.append(_mid_epoch(store))
    if problems:
        raise RefusedError(problems)
    return identity


def _move(spark: SparkSession, store: Checkpoint, identity: Identity, partitions: int) -> None:
    """Let Spark move the states, unless there are none or they are in place already."""
    is_there = identity.partitions == partitions and store.rescaling_to() is None
    if is_there or not identity.levels or not store.next_epoch():
        return
    try:
        spark._streamingCheckpointManager.repartition(str(store.spark), partitions)
    except Py4JNetworkError:
        raise
    except Py4JError as error:
        raise RefusedError(_not_moved(store, partitions, error)) from error


def _closed(store: Checkpoint, identity: Identity) -> Problem:
    return Problem(
        "closed-checkpoint",
        f"the input of flow '{identity.flow}' has ended: the checkpoint {store.root} was closed, "
        "and no run will use its state again",
        "leave it as it is; a new checkpoint can have another number of partitions",
    )


def _mid_epoch(store: Checkpoint) -> Problem:
    return Problem(
        "unfinished-epoch",
        f"epoch {store.next_epoch() - 1} of the checkpoint {store.root} was interrupted; only the "
        "flow can finish it",
        "run the flow until it has caught up, then rescale",
    )


def _not_moved(store: Checkpoint, partitions: int, error: Py4JError) -> Problem:
    java = getattr(error, "java_exception", None)
    message = str(java.getMessage() if java is not None else error).strip().splitlines()
    return Problem(
        "not-rescaled",
        f"Spark did not move the state in {store.root} to {partitions} partitions: "
        f"{message[0] if message else type(error).__name__}",
        f"see {store.root / 'scratch' / 'spark.log'}; the old state is still there, and the same "
        "command can be retried",
    )
