"""The state of a step at an epoch, read from a checkpoint as a table."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import msgspec
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cutwater.errors import Problem, RefusedError, did_you_mean
from cutwater.ordering import bucket_of, canonical
from cutwater.spark.checkpoint.compatibility import Identity, StepIdentity
from cutwater.spark.checkpoint.readable_keys import key_of
from cutwater.spark.checkpoint.readable_states import column_of, state_of
from cutwater.spark.checkpoint.store import Checkpoint, no_checkpoint, refuse_real_time
from cutwater.spark.embedded.session import check_session, embedded_session, looked_after
from cutwater.spark.exchange.bucket_hash import labels
from cutwater.spark.state.cache import Copy
from cutwater.spark.state.changelog import HEAD_KEY, Entry
from cutwater.spark.state.map import StateMap
from cutwater.spark.state.table import UnopenedTable

__all__ = ["StepState", "read_state", "rows_of_log"]

_decode_entry = msgspec.msgpack.Decoder(Entry).decode


@dataclass(frozen=True)
class StepState:
    """The state of a step at the end of an epoch."""

    flow: str
    step: str
    epoch: int
    rows: list[dict[str, Any]]
    """For each key: it, and its state as JSON has it. Bucket by bucket, in no other order."""
    is_whole: bool
    """Are these all keys that were asked for?"""


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
    """The state of a step at an epoch; nothing is written, and a run may go on meanwhile.

    Parameters
    ----------
    checkpoint
        The folder of a `run`, or of a query with `transform` that has no stateful operator behind
        the flow; what it does not have raises `RunError`.
    step
        The name of a step that keeps a state.
    spark
        A session to read with; without one an embedded session is made and stopped.
    epoch
        At the end of which epoch; default: the newest that is finished.
    keys
        Only these keys; default: all.
    limit
        So many keys at the most.
    """
    place = Checkpoint.to_read(checkpoint)
    identity = place.identity(is_embedded=place.is_embedded)
    if identity is None:
        raise RefusedError(no_checkpoint(place))
    refuse_real_time(identity, "read states")
    kept = _step(identity, step)
    chosen = _epoch(place, epoch)
    wanted = {canonical(key) for key in keys}
    with _session(spark, master) as session:
        found = _rows(session, place, identity, kept, step, chosen, wanted)
        most = None if limit is None else limit + 1
        rows = list(islice(found, most))
    is_whole = limit is None or len(rows) <= limit
    return StepState(identity.flow, step, chosen, rows[:limit], is_whole)


def rows_of_log(
    entries: Mapping[int, bytes], step: str, kept: StepIdentity, keys: set[bytes]
) -> Iterator[dict[str, Any]]:
    """What the log of a bucket says of a step: a row for each key."""
    copy = Copy()
    for number in sorted(entries):
        copy.apply(_decode_entry(entries[number]), number)
    found = copy.steps.get(step)
    if isinstance(found, StateMap):
        for key, data in found.states.items():
            if not keys or key in keys:
                yield _row(key, _fields(state_of(data, kept.state)))
    elif isinstance(found, UnopenedTable):
        yield from _table_rows(found, kept, keys)


def _table_rows(
    table: UnopenedTable, kept: StepIdentity, keys: set[bytes]
) -> Iterator[dict[str, Any]]:
    names = _aggregates(kept)
    for part in table.current():
        columns = {
            names.get(name, name): column_of(kind, data, _column_schema(kept, name))
            for name, (kind, data) in part.columns.items()
            if not (names and name == "key")
        }
        for number, key in enumerate(part.keys):
            if key is not None and (not keys or key in keys):
                state = {name: values[number] for name, values in columns.items()}
                yield _row(key, state)


def _aggregates(kept: StepIdentity) -> dict[str, str]:
    """What the columns of an aggregate are called, by the numbers they have: 0.0, 1.0, 1.1."""
    if kept.verb != "aggregate":
        return {}
    called = kept.settings.split(", ")
    return {
        f"{number}.{part}": name if part == 0 else f"{name} ({part})"
        for number, name in enumerate(called)
        for part in range(4)
    }


def _column_schema(kept: StepIdentity, name: str) -> Any:
    fields = kept.state.get("fields", {}) if isinstance(kept.state, dict) else {}
    return fields[name]["type"] if name in fields else kept.state


def _row(key: bytes, state: dict[str, Any]) -> dict[str, Any]:
    shown = key_of(key)
    return {**({} if key == b"" else {"key": shown}), **state}


def _fields(state: Any) -> dict[str, Any]:
    is_record = isinstance(state, dict) and all(isinstance(name, str) for name in state)
    return state if is_record and "key" not in state and state else {"state": state}


# --- what is there -----------------------------------------------------------------------------


def _step(identity: Identity, step: str) -> StepIdentity:
    if step in identity.steps:
        return identity.steps[step]
    there = ", ".join(sorted(identity.steps)) or "none"
    raise RefusedError(
        Problem(
            "unknown-step",
            f"the checkpoint holds no state of a step '{step}'",
            did_you_mean(step, identity.steps) or f"steps that keep a state: {there}",
        )
    )


def _epoch(place: Checkpoint, epoch: int | None) -> int:
    there = place.finished_epochs()
    if not there:
        said = f"no epoch of the checkpoint {place.root} is finished yet"
        raise RefusedError(Problem("no-epoch-finished", said, "run the flow first"))
    chosen = there[-1] if epoch is None else epoch
    if chosen not in there:
        raise RefusedError(
            Problem(
                "unknown-epoch",
                f"the checkpoint {place.root} has no state of epoch {chosen}; it has those of "
                f"epochs {there[0]} to {there[-1]}",
                "leave the epoch out for the newest; Spark keeps the newest hundred",
            )
        )
    return chosen


# --- Spark's reader ----------------------------------------------------------------------------


def _rows(
    spark: SparkSession,
    place: Checkpoint,
    identity: Identity,
    kept: StepIdentity,
    step: str,
    epoch: int,
    keys: set[bytes],
) -> Iterator[dict[str, Any]]:
    """The rows of all buckets, or of those that the keys are in; one partition at a time."""
    deepest = max(each.level for each in identity.steps.values())
    reader = spark.read.format("statestore").option("stateVarName", "log")
    # Spark numbers operators from the end of the query, so the deepest level is 0.
    reader = reader.option("operatorId", deepest - kept.level).option("batchId", epoch)
    try:
        log = reader.load(str(place.spark)).selectExpr(
            "key.label as label",
            "user_map_key.sequence as sequence",
            "user_map_value.data as data",
            "partition_id",
        )
        if keys:
            names = labels(identity.buckets)
            log = log.where(log.label.isin([names[bucket_of(k, identity.buckets)] for k in keys]))
        for _, rows in groupby(log.toLocalIterator(), key=lambda row: row.partition_id):
            buckets: dict[int, dict[int, bytes]] = {}
            for row in rows:
                if row.sequence != HEAD_KEY:
                    buckets.setdefault(row.label, {})[row.sequence] = bytes(row.data)
            for label in sorted(buckets):
                yield from rows_of_log(buckets[label], step, kept, keys)
    except Py4JNetworkError:
        raise
    except (PySparkException, Py4JError) as error:
        raise RefusedError(_unreadable(place, epoch, error)) from error


@contextmanager
def _session(spark: SparkSession | None, master: str) -> Iterator[SparkSession]:
    if spark is not None:
        check_session(spark)
        yield spark
        return
    scratch = Path(tempfile.mkdtemp(prefix="cutwater-"))
    session = embedded_session(scratch, master=master)
    try:
        with looked_after(session, scratch, is_ours=True):
            yield session
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unreadable(place: Checkpoint, epoch: int, error: Exception) -> Problem:
    said = str(error).strip().splitlines() or [type(error).__name__]
    return Problem(
        "unreadable-state",
        f"Spark cannot read the state in {place.root} at epoch {epoch}: {said[0]}",
        f"see what is damaged: cutwater checkpoint verify {place.root}; one that was moved can be "
        "read after its next run",
    )
