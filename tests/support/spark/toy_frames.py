"""A flow over DataFrames without a JVM: record batches go through the real rows, levels and sinks.

Tasks, and the batches of a task, may be cut anywhere; what comes from different tasks is mixed.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from support.spark.toy_spark import Group, Handle

from cutwater.flow import Flow
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.exchange.columns import RecordCodec
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import dump_job, load_job
from cutwater.spark.microbatch.dataframes import FrameRows
from cutwater.spark.microbatch.stateful_operator import Level
from cutwater.spark.state import bucket as buckets
from cutwater.spark.state.cache import StateCache

Tasks = Sequence[Sequence[pa.RecordBatch]]
"""For each task of a source the batches that it reads."""


class ToyFrames:
    """A query over DataFrames, with its states."""

    def __init__(
        self, flow: Flow, order: Sequence[str], patch: pytest.MonkeyPatch, seed: int = 0
    ) -> None:
        names = [step.name for step in flow.steps if type(step).__name__ == "Source"]
        frames = {name: Frame(None, order) for name in names}
        self.data = dump_job(Job(flow, frames, {}, "toy", 1, 16, "", permute=seed))
        self.job = load_job(self.data)
        self._random = random.Random(seed)
        self._states: dict[tuple[int, int], Group] = {}
        self._levels = [
            (Level(self.data, n), Handle()) for n in range(len(self.job.topology.levels))
        ]
        for level, handle in self._levels:
            level.init(handle)  # type: ignore[arg-type]
        patch.setattr(buckets, "_cache", StateCache())

    def epoch(self, sources: Mapping[str, Tasks]) -> list[Row]:
        """The rows that are left for the sinks after an epoch."""
        tasks = [
            list(_rows(FrameRows(self.data, name)(iter(batches))))
            for name, found in sources.items()
            for batches in found
        ]
        self._random.shuffle(tasks)
        rows = [row for task in tasks for row in task]
        for number in range(len(self._levels)):
            rows = list(self._level(number, rows))
        return rows

    def records(self, sources: Mapping[str, Tasks]) -> dict[str, list[Any]]:
        """What an epoch gives to each sink."""
        found: dict[str, list[Any]] = {name: [] for name in self.job.addresses.sink_names}
        for row in self.epoch(sources):
            codec = RecordCodec(self.job.addresses.type_of_sink(row.target))
            name = self.job.addresses.sink_names[row.target - len(self.job.plan.segments)]
            found[name] += codec.decode(row.body)
        return found

    def _level(self, number: int, rows: Iterable[Row]) -> Iterator[Row]:
        groups: dict[int, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.label, []).append(row)
        level, handle = self._levels[number]
        for label, group in groups.items():
            handle.store = self._states.setdefault((number, label), Group())
            yield from level.handleInputRows((label,), iter(group), None)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    return (Row(**row) for batch in batches for row in batch.to_pylist())
