"""Reads the state of a step at an epoch from a checkpoint, as a table."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from cutwater.spark.checkpoint.readable_states import column_of, state_of
from cutwater.spark.checkpoint.state_store import (
    DamagedStateError,
    StateStoreFiles,
    UnknownFormatError,
)
from cutwater.spark.checkpoint.store import Checkpoint, no_checkpoint
from cutwater.spark.embedded.session import check_session, closing_session, embedded_session
from cutwater.spark.exchange.bucket_hash import labels
from cutwater.spark.exchange.readable_keys import key_of
from cutwater.spark.state.cache import CachedState
from cutwater.spark.state.changelog import HEAD_KEY, ChangelogEntry
from cutwater.spark.state.input_states import input_of
from cutwater.spark.state.map import StateMap
from cutwater.spark.state.table import UnopenedTable

__all__ = ["StepState", "kept_step", "read_microbatch_state", "rows_of_log"]

_decode_entry = msgspec.msgpack.Decoder(ChangelogEntry).decode


@dataclass(frozen=True)
class StepState:
    """The state of a step at the end of an epoch."""

    flow: str
    step: str
    epoch: int
    rows: list[dict[str, Any]]
    """One row per key: the key, and its state as JSON. Bucket by bucket, otherwise unordered."""
    is_whole: bool
    """Are these all the keys that were asked for?"""
    unit: str = "epoch"
    """What `epoch` counts: epochs, or ticks of a real-time run."""


def read_microbatch_state(
    checkpoint: str | Path,
    step: str,
    spark: SparkSession | None = None,
    *,
    epoch: int | None = None,
    keys: Sequence[Any] = (),
    limit: int | None = None,
    master: str = "local[1]",
) -> StepState:
    """As `inspection.read_state`, for a checkpoint of the micro-batch engine."""
    store = Checkpoint.to_read(checkpoint)
    identity = store.identity(is_embedded=store.is_embedded)
    if identity is None:
        raise RefusedError(no_checkpoint(store))
    kept = kept_step(identity, step)
    chosen = _epoch(store, epoch)
    asked = _Asked(store, identity, kept, step, chosen, {canonical(key) for key in keys})
    rows = _rows(asked, spark, master, None if limit is None else limit + 1)
    is_whole = limit is None or len(rows) <= limit
    return StepState(identity.flow, step, chosen, rows[:limit], is_whole)


def rows_of_log(
    entries: Mapping[int, bytes], step: str, kept: StepIdentity, keys: set[bytes]
) -> Iterator[dict[str, Any]]:
    """The rows of a step in a bucket's changelog: one per key.

    In a loop where several input epochs overlap: one per input epoch and key.
    """
    copy = CachedState()
    for number in sorted(entries):
        copy.apply(_decode_entry(entries[number]), number)
    for name, found in copy.steps.items():
        number_of_input, of_step = input_of(name)
        if of_step != step:
            continue
        apart = {} if number_of_input is None else {"input_epoch": number_of_input}
        if isinstance(found, StateMap):
            for key, data in found.states.items():
                if not keys or key in keys:
                    yield apart | _row(key, _fields(state_of(data, kept.state)))
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
    """The names of an aggregate's columns, by their numbers: 0.0, 1.0, 1.1."""
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


# --- what the checkpoint has -------------------------------------------------------------------


def kept_step(identity: Identity, step: str) -> StepIdentity:
    """The identity of a step in the checkpoint; refused if the checkpoint has no state of it."""
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


def _epoch(store: Checkpoint, epoch: int | None) -> int:
    there = store.finished_epochs()
    if not there:
        message = f"no epoch of the checkpoint {store.root} is finished yet"
        raise RefusedError(Problem("no-epoch-finished", message, "run the flow first"))
    chosen = there[-1] if epoch is None else epoch
    if chosen not in there:
        raise RefusedError(
            Problem(
                "unknown-epoch",
                f"the checkpoint {store.root} has no state of epoch {chosen}; it has those of "
                f"epochs {there[0]} to {there[-1]}",
                "leave the epoch out for the newest; Spark keeps the newest hundred",
            )
        )
    return chosen


# --- two readers -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asked:
    """A query for state in a checkpoint of micro-batches."""

    store: Checkpoint
    identity: Identity
    kept: StepIdentity
    step: str
    epoch: int
    keys: set[bytes]
    """The canonical keys asked for; empty: all."""

    @property
    def operator(self) -> int:
        """Spark numbers operators from the end of the query, so the deepest level is 0."""
        return max(each.level for each in self.identity.steps.values()) - self.kept.level

    @property
    def labels(self) -> set[int]:
        """The labels of the buckets that the keys are in."""
        names = labels(self.identity.buckets)
        return {names[bucket_of(key, self.identity.buckets)] for key in self.keys}

    def rows(self, logs: Iterable[Mapping[int, Mapping[int, bytes]]]) -> Iterator[dict[str, Any]]:
        """The rows in the changelogs of buckets, which arrive one partition at a time."""
        for buckets in logs:
            for label in sorted(buckets):
                entries = {n: data for n, data in buckets[label].items() if n != HEAD_KEY}
                yield from rows_of_log(entries, self.step, self.kept, self.keys)


def _rows(
    asked: _Asked, spark: SparkSession | None, master: str, most: int | None
) -> list[dict[str, Any]]:
    """Read the files directly; use Spark if a session is given, or if their format is unknown."""
    if spark is None:
        try:
            with suppress(UnknownFormatError, ImportError):
                logs = StateStoreFiles(asked.store.spark, asked.operator)
                return list(islice(asked.rows(logs.logs(asked.epoch, asked.labels)), most))
        except DamagedStateError as error:
            raise RefusedError(_unreadable(asked, error)) from error
    with _session(spark, master) as session:
        return list(islice(asked.rows(_logs_by_spark(session, asked)), most))


def _logs_by_spark(spark: SparkSession, asked: _Asked) -> Iterator[dict[int, dict[int, bytes]]]:
    reader = spark.read.format("statestore").option("stateVarName", "log")
    reader = reader.option("operatorId", asked.operator).option("batchId", asked.epoch)
    try:
        log = reader.load(str(asked.store.spark)).selectExpr(
            "key.label as label",
            "user_map_key.sequence as sequence",
            "user_map_value.data as data",
            "partition_id",
        )
        if asked.keys:
            log = log.where(log.label.isin([*asked.labels]))
        for _, rows in groupby(log.toLocalIterator(), key=lambda row: row.partition_id):
            buckets: dict[int, dict[int, bytes]] = {}
            for row in rows:
                buckets.setdefault(row.label, {})[row.sequence] = bytes(row.data)
            yield buckets
    except Py4JNetworkError:
        raise
    except (PySparkException, Py4JError) as error:
        raise RefusedError(_unreadable(asked, error)) from error


@contextmanager
def _session(spark: SparkSession | None, master: str) -> Iterator[SparkSession]:
    if spark is not None:
        check_session(spark)
        yield spark
        return
    scratch = Path(tempfile.mkdtemp(prefix="cutwater-"))
    session = embedded_session(scratch, master=master)
    try:
        with closing_session(session, scratch, is_ours=True):
            yield session
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unreadable(asked: _Asked, error: Exception) -> Problem:
    root = asked.store.root
    text = str(error).strip().splitlines() or [type(error).__name__]
    return Problem(
        "unreadable-state",
        f"the state in {root} cannot be read at epoch {asked.epoch}: {text[0]}",
        f"see what is damaged: cutwater checkpoint verify {root}",
    )
