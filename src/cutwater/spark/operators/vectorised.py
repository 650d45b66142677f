"""The work of a segment that is a vectorised task: one call for all events of a bucket."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import msgspec.inspect
import numpy as np

from cutwater.codec import codec_of
from cutwater.errors import CutwaterError, many
from cutwater.flow import VectorisedTask
from cutwater.flow import steps as s
from cutwater.flow.fusing import Segment
from cutwater.flow.lowering import step_failed
from cutwater.spark.exchange.batch import EventBatch
from cutwater.spark.exchange.columns import Records, number_keys
from cutwater.spark.exchange.envelope import ShuffleWriter
from cutwater.spark.exchange.router import Sender
from cutwater.spark.job.spec import Job
from cutwater.spark.operators.segment_runner import SegmentRunner, error_at, packed_in_pieces
from cutwater.spark.state.bucket import BucketStates
from cutwater.spark.state.table import StateColumn, StateTable
from cutwater.vectors import BatchOutcome, Keys, Layout, run_batch

__all__ = ["VectorisedRunner", "vectorised_task"]


def vectorised_task(segment: Segment) -> s.Apply | None:
    """The step of a segment that is a vectorised task and nothing else."""
    steps = [part.step for part in segment.parts]
    if len(steps) == 1 and isinstance(steps[0], s.Apply) and steps[0].is_vectorised:
        return steps[0]
    return None


class VectorisedRunner(SegmentRunner):
    """Runs such a segment on one bucket."""

    def __init__(
        self,
        job: Job,
        segment: Segment,
        step: s.Apply,
        bucket: BucketStates,
        shuffle: ShuffleWriter,
    ) -> None:
        assert isinstance(step.task, VectorisedTask)
        self._job = job
        self._segment = segment
        self._step = step
        self._task = step.task
        self._layouts = step.task.layouts
        self._bucket = bucket
        self._sender = Sender(job, segment, shuffle)

    def data(self, bodies: Sequence[bytes]) -> Iterator[None]:
        for piece in packed_in_pieces(self._job, self._segment, bodies, self._bucket.label):
            self._piece(*piece)
            yield

    def _piece(self, batch: EventBatch, firsts: list[int]) -> None:
        batch.keys = self._job.codecs.event_codecs[self._segment.number].keys_of(batch)
        events = Records.of(self._layouts.event, batch.values)
        found, of = number_keys(batch.key_bytes)
        layout = self._layouts.state
        table = self._bucket.table(self._step.name, _state_columns(layout), _convert(layout))
        slots = self._slots(table, found)
        outcome = self._run(table.read(slots), events, Keys(of, len(found)), batch)
        _keep(table, slots, outcome)
        if outcome.outputs is not None:
            records = Records(self._layouts.output, outcome.outputs)
            indices = firsts if self._segment.reads_twice else None
            self._sender.records(batch, outcome.rows, records, indices)

    def _slots(self, table: StateTable, keys: list[bytes]) -> np.ndarray:
        """The slot of each key; a key without a state begins with the task's own."""
        slots = table.slots(keys)
        is_new = slots < 0
        if is_new.any():
            added = table.add([keys[i] for i in np.flatnonzero(is_new).tolist()])
            slots[is_new] = added
            initial = self._layouts.state.of_values([self._task.initial])
            table.write(added, {n: np.repeat(column, len(added)) for n, column in initial.items()})
        return slots

    def _run(
        self, states: dict[str, Any], events: Records, keys: Keys, batch: EventBatch
    ) -> BatchOutcome:
        try:
            return run_batch(self._task, states, events.columns, keys, self._layouts)
        except CutwaterError:
            raise
        except (Exception, SystemExit) as error:
            subject = _Described(
                f"a batch of {many(len(events), 'event')} of {many(keys.size, 'key')}"
            )
            row = self._first_that_fails(states, batch, type(error))
            raise error_at(step_failed(self._step, (subject,), error), batch, row) from error

    def _first_that_fails(
        self, states: dict[str, Any], batch: EventBatch, kind: type[BaseException]
    ) -> int:
        """The first event with which the events up to it fail, and without which they do not.

        The end of the batch if it does not fail again.
        """
        sizes = range(1, len(batch.values) + 1)
        return bisect_left(sizes, True, key=lambda size: self._fails(states, batch, size, kind))

    def _fails(
        self, states: dict[str, Any], batch: EventBatch, size: int, kind: type[BaseException]
    ) -> bool:
        """Do the first `size` events of a batch raise an error of this kind?"""
        events = Records.of(self._layouts.event, batch.values[:size])
        found, of = number_keys(batch.key_bytes[:size])
        begun = {name: column[: len(found)] for name, column in states.items()}
        try:
            run_batch(self._task, begun, events.columns, Keys(of, len(found)), self._layouts)
        except (Exception, SystemExit) as error:
            return type(error) is kind
        return False


def _keep(table: StateTable, slots: np.ndarray, outcome: BatchOutcome) -> None:
    if outcome.deleted is None:
        table.write(slots, outcome.states)
        return
    stays = ~outcome.deleted
    table.write(slots[stays], {name: column[stays] for name, column in outcome.states.items()})
    table.remove(slots[outcome.deleted])


class _Described:
    """A description in place of a value, for messages."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __repr__(self) -> str:
        return self._words


def _state_columns(layout: Layout) -> dict[str, StateColumn]:
    """The columns of a table that keeps values of a layout."""
    return {name: _column(kind, layout.declared[name]) for name, kind in layout.columns.items()}


def _column(kind: str, declared: Any) -> StateColumn:
    if kind != "object":
        return StateColumn(kind)  # type: ignore[arg-type]
    codec = codec_of(list[declared])
    return StateColumn("object", codec.encode, codec.decode)


def _convert(layout: Layout) -> Any:
    """A function that converts the state of an earlier flow: new fields get their default."""

    def convert(kept: dict[str, Any]) -> dict[str, list[Any]]:
        size = len(next(values for values in kept.values() if isinstance(values, list)))
        return {
            name: kept[name] if name in kept else _defaults(layout, name, size)
            for name in layout.columns
        }

    return convert


def _defaults(layout: Layout, name: str, size: int) -> list[Any]:
    record: Any = msgspec.inspect.type_info(layout.type)
    field = next(field for field in record.fields if field.name == name)
    if field.default_factory is not msgspec.NODEFAULT:
        return [field.default_factory() for _ in range(size)]
    return [field.default] * size
