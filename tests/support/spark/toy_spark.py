"""As much of Spark as our runtime uses, in one process and without a JVM.

It runs the real reader, levels and writer over fake state, with two workers that keep copies of
states, and it can be killed at every point at which Spark can.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from cutwater.spark.connectors.base.side_outputs import late_events_sink
from cutwater.spark.exchange.bucket_hash import spark_hash
from cutwater.spark.exchange.envelope import ROW_SCHEMA
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch import epochs
from cutwater.spark.microbatch.feedback import LogSource, log_sinks
from cutwater.spark.microbatch.source_reader import EpochDataSource
from cutwater.spark.microbatch.stateful_operator import Level
from cutwater.spark.microbatch.writer import SinksWriter
from cutwater.spark.state import bucket as buckets
from cutwater.spark.state.cache import StateCache

POINTS = ("planned", "logged", "staged", "half published", "published", "never")
"""Where an epoch may be cut off: after this, the process is gone."""


class Killed(Exception):
    """The process is gone."""


class Map:
    """A map state; what is read is in other types, as it comes from Java."""

    def __init__(self) -> None:
        self.items: dict[tuple[int], tuple[bytes]] = {}
        self.calls: list[str] = []
        """The calls that were made, each a round trip on Spark."""

    def getValue(self, key: tuple[int]) -> tuple[bytearray] | None:
        self.calls.append("get")
        return (bytearray(self.items[key][0]),) if key in self.items else None

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        self.calls.append("update")
        self.items[key] = value

    def removeKey(self, key: tuple[int]) -> None:
        self.calls.append("remove")
        self.items.pop(key, None)

    def clear(self) -> None:
        self.calls.append("clear")
        self.items.clear()

    def iterator(self) -> Iterator[tuple[tuple[int], tuple[bytearray]]]:
        """All of it, in any order."""
        self.calls.append("iterator")
        assert self.items, "nothing is asked for where nothing is"
        return ((key, (bytearray(self.items[key][0]),)) for key in sorted(self.items, key=hash))


class Group:
    """The state of a group, which can be put back to where it was."""

    def __init__(self) -> None:
        self.log = Map()

    def getMapState(self, name: str, _key: Any, _value: Any) -> Map:
        assert name == "log"
        return self.log

    def save_point(self) -> dict[tuple[int], tuple[bytes]]:
        return dict(self.log.items)

    def roll_back(self, point: dict[tuple[int], tuple[bytes]]) -> None:
        self.log.items = dict(point)


class Handle:
    """A handle whose states are those of the group at hand."""

    def __init__(self) -> None:
        self.store = Group()

    def getMapState(self, name: str, _key: Any, _value: Any) -> Any:
        return _Current(self, name)


class _Current:
    def __init__(self, handle: Handle, name: str) -> None:
        self._handle, self._name = handle, name

    def __getattr__(self, method: str) -> Any:
        return getattr(getattr(self._handle.store, self._name), method)


class ToySpark:
    """A checkpoint and what runs on it, over any number of lives."""

    def __init__(self, job: Job, patch: pytest.MonkeyPatch, seed: int, partitions: int = 2) -> None:
        self.job = replace(job, query_id="toy", generation=0)
        self._ends: list[dict[str, dict[str, Any]]] = []
        self.committed = 0
        self.states: dict[tuple[int, int], Group] = {}
        self._patch = patch
        self._random = random.Random(seed)
        self._partitions = partitions
        self._workers = [StateCache(), StateCache()]
        self._durable: dict[tuple[int, int], dict[tuple[int], tuple[bytes]]] = {}
        self.start()

    def start(self) -> None:
        """A new life: the next generation takes the sinks."""
        self.job = replace(self.job, generation=self.job.generation + 1)
        for name, sink in self.job.sinks.items():
            sink.prepare(name, self.job.addresses.record_of(name))
            sink.claim(self.job.claim_of(name))
        data = dump_job(self.job)
        if self._random.random() < 0.5:  # worker processes may outlive a query, not the JVM
            self._workers = [StateCache(), StateCache()]
        self.readers = {}
        for number, name in enumerate(sorted(self.job.sources)):
            source = EpochDataSource.of(data, name, number)({})
            self.readers[name] = source.streamReader(ROW_SCHEMA)
        for number, log in enumerate(self.job.loops.logs):
            self.readers[log.name] = LogSource.of(data, log.name, number)({}).streamReader(
                ROW_SCHEMA
            )
        for reader in self.readers.values():
            reader.prepareForTriggerAvailableNow()
        self.levels = [Level(data, level) for level in range(len(self.job.topology.levels))]
        self.handles = [Handle() for _ in self.levels]
        for level, handle in zip(self.levels, self.handles, strict=True):
            level.init(handle)  # type: ignore[arg-type]
        self.writer = SinksWriter.of(data)({}).streamWriter(ROW_SCHEMA, False)

    def go_on(self, job: Job) -> None:
        """A new life with another job."""
        generation = self.job.generation
        self.job = replace(job, query_id=self.job.query_id, generation=generation)
        self.start()

    def run(self, kill_at: str = "never") -> bool:
        """Finish an epoch, or be killed in it; False if there was nothing left to do."""
        if self.committed == len(self._ends):
            before = self._start_of(len(self._ends))
            ends = {
                name: reader.latestOffset(before[name], reader.getDefaultReadLimit())
                for name, reader in self.readers.items()
            }
            if ends == before:
                return False
            self._maybe_die("planned", kill_at)
            self._ends.append(ends)
            self._log_offsets(len(self._ends) - 1)
        self._maybe_die("logged", kill_at)
        before_states = {place: store.save_point() for place, store in self.states.items()}
        try:
            self._work(self.committed, kill_at)
        except Killed:
            self.states = {place: s for place, s in self.states.items() if place in before_states}
            for place, point in before_states.items():
                self.states[place].roll_back(point)
            raise
        self._commit()
        return True

    def _commit(self) -> None:
        if self.job.loops.logs:
            self._log("commits", self.committed, ['{"nextBatchWatermarkMs":0}'])
        self.committed += 1

    def run_and_forget(self) -> None:
        """Finish an epoch, of which a power loss makes Spark forget that it did."""
        self._durable = {place: store.save_point() for place, store in self.states.items()}
        assert self.run()

    def lose_newest_epoch(self) -> None:
        """The machine died: what was synced is there, and the newest epoch is run again."""
        self.committed -= 1
        (Path(self.job.checkpoint) / "spark" / "commits" / str(self.committed)).unlink()
        self.states = {place: self.states[place] for place in self._durable}
        for place, point in self._durable.items():
            self.states[place].roll_back(point)
        self._workers = [StateCache(), StateCache()]

    def skip_epoch(self, partitions: int | None = None) -> None:
        """An epoch that reads nothing, as Spark leaves it where state was moved."""
        assert self.committed == len(self._ends)
        self._partitions = partitions or self._partitions
        self._ends.append(self._ends[-1])
        self._log_offsets(len(self._ends) - 1)
        self._commit()

    @property
    def offsets(self) -> list[dict[str, int]]:
        """For each epoch the newest entry of each source's log."""
        return [{name: end["entry"] for name, end in ends.items()} for ends in self._ends]

    @property
    def ends(self) -> list[dict[str, dict[str, Any]]]:
        """For each epoch the offsets that it reads up to."""
        return self._ends

    def run_to_the_end(self, kills: list[str], *, close: bool = False) -> None:
        """Catch up; each kill happens in the epoch that is next then, and a new life follows.

        With `close` the end of the input follows, in another life.
        """
        waiting = list(kills)
        while True:
            try:
                while self.run(waiting.pop(0) if waiting else "never"):
                    pass
                if self.job.is_ending or not close:
                    return
                self.job = replace(self.job, is_ending=True)
            except Killed:
                self.job = replace(self.job, is_ending=False)
            self.start()

    def _log_offsets(self, epoch: int) -> None:
        """What planners of a loop read of Spark's own log."""
        if self.job.loops.logs:
            ends = [json.dumps(end) for end in self._ends[epoch].values()]
            self._log("offsets", epoch, ["{}", *ends])

    def _log(self, log: str, epoch: int, lines: list[str]) -> None:
        folder = Path(self.job.checkpoint) / "spark" / log
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(epoch)).write_text("\n".join(["v1", *lines]))

    def _start_of(self, epoch: int) -> dict[str, dict[str, Any]]:
        if epoch:
            return self._ends[epoch - 1]
        return {name: reader.initialOffset() for name, reader in self.readers.items()}

    def _work(self, epoch: int, kill_at: str) -> None:
        self._patch.setattr(epochs, "epoch_of_task", lambda: epoch)
        tasks = self._read(epoch)
        for number in range(len(self.levels)):
            tasks = [list(self._level(number, rows)) for rows in self._exchange(tasks)]
        if self.job.topology.has_scattered_buckets:
            tasks = self._exchange(tasks)
        messages = [self.writer.write(_batches(rows)) for rows in tasks]
        if self._random.random() < 0.3:  # a second attempt, of which nobody hears
            self.writer.write(_batches(tasks[0]))
        self._maybe_die("staged", kill_at)
        if kill_at == "half published":
            self._publish_one_sink(messages, epoch)
            raise Killed
        self.writer.commit(messages, epoch)
        self._maybe_die("published", kill_at)

    def _publish_one_sink(self, messages: list[Any], epoch: int) -> None:
        name, sink = next(iter(self.job.sinks.items()))
        receipts = [r for message in messages for r in message.receipts if r.sink == name]
        sink.publish(self.job.claim_of(name), epoch, receipts)

    def _maybe_die(self, point: str, kill_at: str) -> None:
        if point == kill_at:
            raise Killed

    def _read(self, epoch: int) -> list[list[Row]]:
        tasks: list[list[Row]] = []
        starts, ends = self._start_of(epoch), self._ends[epoch]
        for name, reader in self.readers.items():
            if starts[name] == ends[name]:  # Spark does not ask a source without news
                continue
            for part in reader.partitions(starts[name], ends[name]):
                batches = reader.read(part)
                tasks.append([Row(**row) for batch in batches for row in batch.to_pylist()])
        return tasks or [[]]

    def _exchange(self, tasks: list[list[Row]]) -> list[list[Row]]:
        """Rows by the hash of their label; what came from different tasks in any order."""
        parts: list[list[Row]] = [[] for _ in range(self._partitions)]
        for task in self._random.sample(tasks, len(tasks)):
            for row in task:
                parts[spark_hash(row.label) % self._partitions].append(row)
        return parts

    def _level(self, number: int, rows: list[Row]) -> Iterator[Row]:
        groups: dict[int, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.label, []).append(row)
        self._patch.setattr(buckets, "_cache", self._random.choice(self._workers))
        for label, group in groups.items():
            self.handles[number].store = self.states.setdefault((number, label), Group())
            yield from self.levels[number].handleInputRows((label,), iter(group), None)


class _Batch:
    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def to_pylist(self) -> list[dict[str, Any]]:
        return [row.asDict() for row in self._rows]


def _batches(rows: list[Row]) -> Iterator[Any]:
    return iter([_Batch(rows)] if rows else [])


def make_job(flow: Any, root: Path, **settings: Any) -> Job:
    """A job whose sources and sinks lie in folders; `sources` and `sinks` go elsewhere."""
    from cutwater.flow.steps import Sink, Source
    from cutwater.spark import folder, json_lines

    max_bytes = settings.pop("max_bytes_per_epoch", 64)
    bound = settings.pop("sources", {})
    names = [(type(step), step.name) for step in flow.steps]
    sources = {
        n: json_lines(str(root / "in" / n), max_bytes) for kind, n in names if kind is Source
    }
    sinks = {n: folder(str(root / "out" / n)) for kind, n in names if kind is Sink}
    sinks.update(settings.pop("sinks", {}))
    for step in flow.steps:
        if isinstance(step, Source) and step.watermark:
            sinks[late_events_sink(step.name)] = folder(str(root / "late" / step.name))
    for source in sources.values():
        Path(source.path).mkdir(parents=True, exist_ok=True)
    if settings.get("feeds_back"):
        sinks.update(log_sinks(flow, root / "checkpoint"))
    buckets = settings.pop("buckets", 16)
    return Job(
        flow, {**sources, **bound}, sinks, "", 0, buckets, str(root / "checkpoint"), **settings
    )
