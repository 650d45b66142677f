"""Inspect a checkpoint: its summary, a step's state, its frontiers, and whether it is intact.

The same functions serve checkpoints of both engines. Those of the real-time engine never need a
session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cutwater.spark.checkpoint.inspect import CheckpointSummary, summary_of
from cutwater.spark.checkpoint.state_reader import StepState, read_microbatch_state
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.checkpoint.verify import Verified, verify_checkpoint
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint, is_real_time
from cutwater.spark.realtime.inspection.state import read_state_at_tick
from cutwater.spark.realtime.inspection.verify import verify_ticks
from cutwater.spark.telemetry.frontiers import Frontiers, frontiers_in

__all__ = ["describe", "read_frontiers", "read_state", "verify"]


def describe(checkpoint: str | Path) -> CheckpointSummary:
    """Summarise a checkpoint; read-only, and needs no session."""
    store = _opened(checkpoint)
    found = summary_of(store)
    return replace(found, ticks=store.ticks()) if isinstance(store, RealTimeCheckpoint) else found


def read_frontiers(checkpoint: str | Path, *, asked: str | None = None) -> Frontiers:
    """The frontiers recorded in a checkpoint; read-only, and safe while a run is active."""
    return frontiers_in(_opened(checkpoint), asked)


def verify(checkpoint: str | Path, sinks: Mapping[str, SinkConnector] | None = None) -> Verified:
    """Check every file of a checkpoint, and the ledgers of the given sinks.

    Read-only. Files come and go while a run is active, so verify a checkpoint at rest.
    """
    store = _opened(checkpoint)
    if isinstance(store, RealTimeCheckpoint):
        return verify_ticks(store, sinks or {})
    return verify_checkpoint(store, sinks)


def read_state(
    checkpoint: str | Path,
    step: str,
    spark: SparkSession | None = None,
    *,
    epoch: int | None = None,
    keys: Sequence[Any] = (),
    limit: int | None = None,
    master: str = "local[1]",
) -> StepState:
    """The state of a step at an epoch; read-only, and safe while a run is active.

    Parameters
    ----------
    checkpoint
        The folder of a `run`, or of a query with `transform` that has no stateful operator
        downstream of the flow; a step or epoch that it does not have raises `RunError`.
    step
        The name of a stateful step.
    spark
        A session to read with; without one, the files are read directly. Only files that another
        version or setting of Spark wrote need an embedded session, which is started and stopped.
        A checkpoint of the real-time engine needs none.
    epoch
        The epoch, or tick, at whose end to read; default: the newest finished one.
    keys
        Only these keys; default: all.
    limit
        The maximum number of keys.
    """
    store = _opened(checkpoint)
    if isinstance(store, RealTimeCheckpoint):
        return read_state_at_tick(store, step, tick=epoch, keys=keys, limit=limit)
    return read_microbatch_state(
        checkpoint, step, spark, epoch=epoch, keys=keys, limit=limit, master=master
    )


def _opened(checkpoint: str | Path) -> Checkpoint:
    store = Checkpoint.at(checkpoint)
    return RealTimeCheckpoint(store.root) if is_real_time(store.root) else store
