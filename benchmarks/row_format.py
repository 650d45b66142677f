"""What a row between stages should hold: one event, or all events of a bucket and source chunk.

Runs one keyed running count over the same events in every row format, side by side, and prints
how long a micro-batch takes. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyspark
from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from cutwater.codec import Codec
from cutwater.ordering import bucket_of, canonical, order_bytes
from cutwater.spark.embedded.session import embedded_session
from cutwater.spark.exchange.bucket_hash import labels
from cutwater.spark.exchange.envelope import DATA, ROW_SCHEMA
from cutwater.spark.microbatch.epochs import epoch_of_task

BUCKETS = 16
PARTITIONS = 2
"""Of the shuffle; the source has as many."""
KEYS = 1_000
ROWS_PER_ARROW_BATCH = 10_000


@dataclass(slots=True)
class Event:
    """A reading; the count puts its number in."""

    sensor: str
    number: int
    value: float
    note: str


CODEC = Codec(Event)

Sent = tuple[int, bytes, bytes, Event]
"""Label, order, canonical key, event: what every format carries."""


def count(state: int, event: Event) -> tuple[int, Event]:
    """The step: called once for every event."""
    return state + 1, Event(event.sensor, state + 1, event.value, event.note)


@cache
def generated(events: int) -> list[list[Sent]]:
    """The events of each source partition, made once in each worker."""
    parts = [list(_part(part, events // PARTITIONS)) for part in range(PARTITIONS)]
    gc.freeze()
    return parts


def _part(part: int, size: int) -> Iterator[Sent]:
    rng = random.Random(part)
    sensors = []
    for number in range(KEYS):
        sensor = f"sensor-{number:04}"
        key = canonical(sensor)
        sensors.append((labels(BUCKETS)[bucket_of(key, BUCKETS)], key, sensor))
    before = order_bytes((0, part))
    for position, (label, key, sensor) in enumerate(rng.choices(sensors, k=size)):
        event = Event(sensor, 0, rng.random(), f"a note of some length {position:08}")
        yield label, before + position.to_bytes(8, "big"), key, event


# --- the formats -----------------------------------------------------------------------------

ADDRESS = [
    StructField("label", IntegerType()),
    StructField("target", IntegerType()),
    StructField("kind", ByteType()),
    StructField("order", BinaryType()),
    StructField("key", BinaryType()),
    StructField("time", BinaryType()),
]


class OneEach:
    """One row for each event, its payload as msgpack."""

    schema = StructType([*ADDRESS, StructField("payload", BinaryType())])

    def payloads(self, events: Iterable[Event]) -> list[Any]:
        return list(map(CODEC.encode, events))

    def events(self, payloads: Iterable[Any]) -> Iterable[Event]:
        return map(CODEC.decode, payloads)

    def payload_array(self, events: Sequence[Event], kind: pa.DataType) -> pa.Array:
        return pa.array(self.payloads(events), kind)

    def columns(self, sent: list[Sent]) -> list[list[Any]]:
        """All columns but the payload."""
        found, order, keys, _ = zip(*sent, strict=True)
        size = len(sent)
        return [list(found), [0] * size, [DATA] * size, list(order), list(keys), [None] * size]

    def to_arrow(self, sent: list[Sent]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.schema)
        for at in range(0, len(sent), ROWS_PER_ARROW_BATCH):
            some = sent[at : at + ROWS_PER_ARROW_BATCH]
            columns = zip(self.columns(some), schema.types[:-1], strict=True)
            arrays = [pa.array(column, kind) for column, kind in columns]
            arrays.append(self.payload_array([event for *_, event in some], schema.types[-1]))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def to_pandas(self, sent: list[Sent]) -> Iterator[pd.DataFrame]:
        columns = [*self.columns(sent), self.payloads(event for *_, event in sent)]
        yield pd.DataFrame(dict(zip(self.schema.names, columns, strict=True)))

    def to_rows(self, sent: list[Sent]) -> Iterator[Row]:
        row = Row(*self.schema.names)
        for label, order, key, event in sent:
            yield row(label, 0, DATA, order, key, None, CODEC.encode(event))

    def from_pandas(self, frames: Iterable[pd.DataFrame]) -> list[tuple[bytes, bytes, Event]]:
        found: list[tuple[bytes, bytes, Event]] = []
        for frame in frames:
            events = self.events(frame["payload"])
            found.extend(zip(frame["order"], frame["key"], events, strict=True))
        return found

    def from_rows(self, rows: Iterable[Row]) -> list[tuple[bytes, bytes, Event]]:
        decode = CODEC.decode
        return [(bytes(row.order), bytes(row.key), decode(bytes(row.payload))) for row in rows]

    def size(self, batch: pa.RecordBatch) -> int:
        return batch.num_rows

    def numbers(self, batch: pa.RecordBatch) -> Iterator[int]:
        """The number of each event in what a sink gets; only to check the answer."""
        return (event.number for event in self.events(batch["payload"].to_pylist()))


class OneEachStruct(OneEach):
    """One row for each event, its payload as a struct column; for pandas."""

    payload = StructType(
        [
            StructField("sensor", StringType()),
            StructField("number", LongType()),
            StructField("value", DoubleType()),
            StructField("note", StringType()),
        ]
    )
    schema = StructType([*ADDRESS, StructField("payload", payload)])

    def payloads(self, events: Iterable[Event]) -> list[Any]:
        return [
            {"sensor": e.sensor, "number": e.number, "value": e.value, "note": e.note}
            for e in events
        ]

    def events(self, payloads: Iterable[Any]) -> Iterable[Event]:
        return (Event(p["sensor"], p["number"], p["value"], p["note"]) for p in payloads)

    def payload_array(self, events: Sequence[Event], kind: pa.DataType) -> pa.Array:
        columns = ([getattr(event, field.name) for event in events] for field in kind)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, kind, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=list(kind))


Entry = tuple[bytes, bytes, bytes | None, bytes]
"""Order, canonical key, time, payload."""

pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder(list[Entry]).decode


def to_columns(rows: list[tuple[int, int, int, bytes]]) -> list[list[Any]]:
    """Rows as columns."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]


class Packed:
    """One row for each bucket and source chunk, with all its events as a list of entries."""

    schema = ROW_SCHEMA

    def rows(self, sent: list[Sent]) -> list[tuple[int, int, int, bytes]]:
        encode = CODEC.encode
        entries: dict[int, list[Entry]] = {}
        for label, order, key, event in sent:
            entries.setdefault(label, []).append((order, key, None, encode(event)))
        return [(label, 0, DATA, pack(some)) for label, some in entries.items()]

    def to_arrow(self, sent: list[Sent]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.schema)
        columns = zip(to_columns(self.rows(sent)), schema.types, strict=True)
        arrays = [pa.array(column, kind) for column, kind in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def to_pandas(self, sent: list[Sent]) -> Iterator[pd.DataFrame]:
        columns = to_columns(self.rows(sent))
        yield pd.DataFrame(dict(zip(self.schema.names, columns, strict=True)))

    def to_rows(self, sent: list[Sent]) -> Iterator[Row]:
        row = Row(*self.schema.names)
        for values in self.rows(sent):
            yield row(*values)

    def opened(self, bodies: Iterable[bytes]) -> list[tuple[bytes, bytes, Event]]:
        decode = CODEC.decode
        entries = chain.from_iterable(unpack(bytes(body)) for body in bodies)
        return [(order, key, decode(payload)) for order, key, _, payload in entries]

    def from_pandas(self, frames: Iterable[pd.DataFrame]) -> list[tuple[bytes, bytes, Event]]:
        return self.opened(chain.from_iterable(frame["body"] for frame in frames))

    def from_rows(self, rows: Iterable[Row]) -> list[tuple[bytes, bytes, Event]]:
        return self.opened(row.body for row in rows)

    def size(self, batch: pa.RecordBatch) -> int:
        return sum(len(unpack(body)) for body in batch["body"].to_pylist())

    def numbers(self, batch: pa.RecordBatch) -> Iterator[int]:
        return (event.number for _, _, event in self.opened(batch["body"].to_pylist()))


FORMATS = {"msgpack": OneEach(), "struct": OneEachStruct(), "packed": Packed()}


# --- the query: source, count, sink ----------------------------------------------------------


class Source(DataSource):
    """Gives the same events in every micro-batch."""

    @classmethod
    def name(cls) -> str:
        """As Spark looks it up."""
        return "row_format_source"

    def schema(self) -> StructType:
        return FORMATS[self.options["format"]].schema

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return Reader(self.options)


class Reader(DataSourceStreamReader):
    """Has as many micro-batches as its bell, a file, has bytes."""

    def __init__(self, options: dict[str, str]) -> None:
        self.format = options["format"]
        self.events = int(options["events"])
        self.bell = Path(options["bell"])

    def initialOffset(self) -> dict[str, int]:
        return {"batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"batch": self.bell.stat().st_size}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        assert end["batch"] == start["batch"] + 1, "micro-batches ran together"
        return [InputPartition(part) for part in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from FORMATS[self.format].to_arrow(generated(self.events)[partition.value])


class Count(StatefulProcessor):
    """Sorts what a bucket got, and counts by key; one state value for each bucket."""

    def __init__(self, format: str, is_pandas: bool, events: int) -> None:
        self.format = format
        self.is_pandas = is_pandas
        self.events = events

    def init(self, handle: Any) -> None:
        kind = StructType([StructField("counts", BinaryType())])
        self.state = handle.getValueState("counts", kind)
        generated(self.events)  # this worker may be the source's next time

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        format = FORMATS[self.format]
        entries = format.from_pandas(rows) if self.is_pandas else format.from_rows(rows)
        entries.sort(key=lambda entry: entry[0])
        counts: dict[bytes, int] = {}
        if self.state.exists():
            counts = msgspec.msgpack.decode(bytes(self.state.get()[0]), type=dict[bytes, int])
        label, sent = int(key[0]), []
        for order, key_bytes, event in entries:
            counts[key_bytes], output = count(counts.get(key_bytes, 0), event)
            sent.append((label, order, key_bytes, output))
        self.state.update((msgspec.msgpack.encode(counts),))
        yield from format.to_pandas(sent) if self.is_pandas else format.to_rows(sent)

    def close(self) -> None:
        pass


class Sink(DataSource):
    """Counts what comes, and fails if something is missing."""

    @classmethod
    def name(cls) -> str:
        """As Spark looks it up."""
        return "row_format_sink"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return Writer(self.options)


@dataclass
class Got(WriterCommitMessage):
    """How many events a task got, and the sum of their numbers if that is checked."""

    events: int
    numbers: int


class Writer(DataSourceStreamArrowWriter):
    """Checks every micro-batch for its size, and the first one also for the right counts."""

    def __init__(self, options: dict[str, str]) -> None:
        self.format = options["format"]
        self.events = int(options["events"])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        format = FORMATS[self.format]
        generated(self.events)  # this worker may be the source's next time
        is_first = epoch_of_task() == 0
        events = numbers = 0
        for batch in iterator:
            events += format.size(batch)
            if is_first:
                numbers += sum(format.numbers(batch))
        return Got(events, numbers)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        got = [message for message in messages if isinstance(message, Got)]
        assert sum(message.events for message in got) == self.events, "events lost or doubled"
        if batchId == 0:
            numbers = sum(message.numbers for message in got)
            assert numbers == expected_numbers(self.events), "the counts are wrong"

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass


def expected_numbers(events: int) -> int:
    """The sum of all numbers that the first micro-batch gives."""
    per_key = Counter(key for part in generated(events) for _, _, key, _ in part)
    return sum(n * (n + 1) // 2 for n in per_key.values())


# --- measuring -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A format in one of Spark's two programming interfaces."""

    interface: str
    format: str
    title: str

    @property
    def name(self) -> str:
        """Both, to read."""
        return f"{self.interface} {self.title}"


ROW_EACH = Variant("Row", "msgpack", "(a) one each, msgpack")
PANDAS_EACH = Variant("pandas", "msgpack", "(a) one each, msgpack")
VARIANTS = [
    ROW_EACH,
    PANDAS_EACH,
    Variant("pandas", "struct", "(b) one each, struct"),
    Variant("Row", "packed", "(c) packed"),
    Variant("pandas", "packed", "(c) packed"),
]


@dataclass(frozen=True)
class Size:
    """How much is done."""

    events: int
    """In each micro-batch."""
    batches: int
    """Of each variant in each repetition."""
    repetitions: int


FULL = [Size(200_000, 1, 5), Size(20, 3, 5)]
QUICK = [Size(20_000, 1, 2), Size(20, 1, 2)]

Times = dict[Variant, list[float]]
"""For each variant, milliseconds per micro-batch in each repetition."""


class Runner:
    """A query of one variant, which runs a micro-batch when it is told to."""

    def __init__(self, spark: SparkSession, variant: Variant, events: int, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.bell = folder / "bell"
        self.batches = 0
        options = {"format": variant.format, "events": events, "bell": str(self.bell)}
        stream = spark.readStream.format(Source.name()).options(**options).load()
        groups = stream.groupBy("label")
        is_pandas = variant.interface == "pandas"
        transform = groups.transformWithStateInPandas if is_pandas else groups.transformWithState
        count = Count(variant.format, is_pandas, events)
        counted = transform(count, FORMATS[variant.format].schema, "append", "None")
        options["checkpointLocation"] = str(folder / "checkpoint")
        self.writer = counted.writeStream.format(Sink.name()).options(**options)
        self.query: StreamingQuery | None = None

    def run(self, batches: int) -> float:
        """Run micro-batches, one after the other; the median of their milliseconds."""
        return statistics.median(self._run_one() for _ in range(batches))

    def _run_one(self) -> float:
        with self.bell.open("ab") as bell:
            bell.write(b".")
        self.query = self.query or self.writer.start()
        self.query.processAllAvailable()
        (took,) = (
            progress.durationMs["triggerExecution"]
            for progress in self.query.recentProgress
            if progress.numInputRows and progress.batchId == self.batches
        )
        self.batches += 1
        return float(took)

    def stop(self) -> None:
        """End the query."""
        if self.query:
            self.query.stop()


def measure(
    spark: SparkSession, size: Size, scratch: Path, seed: int, tell: Callable[[str], None]
) -> Times:
    """A warm-up of every variant, then repetitions of all of them, each in an order of its own."""
    rng = random.Random(seed)
    times: Times = {variant: [] for variant in VARIANTS}
    runners = {
        variant: Runner(spark, variant, size.events, scratch / f"{size.events}-{number}")
        for number, variant in enumerate(VARIANTS)
    }
    for repetition in range(size.repetitions + 1):
        what = f"repetition {repetition} of {size.repetitions}" if repetition else "warm-up"
        for variant in rng.sample(VARIANTS, len(VARIANTS)):
            took = runners[variant].run(size.batches)
            tell(f"{size.events:,} events, {what}: {variant.name} took {took:,.0f} ms")
            if repetition:
                times[variant].append(took)
    for runner in runners.values():
        runner.stop()
    return times


def speedups(times: Times, variant: Variant, base: Variant) -> list[float]:
    """How many times as fast as the base a variant was, repetition by repetition."""
    return [b / v for b, v in zip(times[base], times[variant], strict=True)]


def spread(values: list[float], digits: int) -> str:
    """The median, and the smallest and the largest."""
    low, middle, high = (
        f"{value:,.{digits}f}" for value in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low}..{high})"


def table(size: Size, times: Times) -> str:
    """What was measured for one size, to read."""
    head = ["API", "row format", "ms per batch", "events/s", "x Row (a)", "x pandas (a)"]
    lines = [head]
    for variant, took in times.items():
        speeds = [spread(speedups(times, variant, base), 2) for base in (ROW_EACH, PANDAS_EACH)]
        rate = f"{size.events * 1000 / statistics.median(took):,.0f}"
        lines.append([variant.interface, variant.title, spread(took, 0), rate, *speeds])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [f"{size.events:,} events per batch; median (min..max) of {size.repetitions}:"]
    for line in lines:
        left = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        text.append("  ".join(["", *left, *right]))
    return "\n".join(text)


def as_json(results: list[tuple[Size, Times]], seed: int) -> dict[str, Any]:
    """Everything that was measured."""
    return {
        "benchmark": "row_format",
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "seed": seed,
        "sizes": [
            {
                "events_per_batch": size.events,
                "repetitions": size.repetitions,
                "variants": [
                    {
                        "api": variant.interface,
                        "format": variant.format,
                        "ms_per_batch": took,
                        "times_as_fast_as_row_msgpack": speedups(times, variant, ROW_EACH),
                        "times_as_fast_as_pandas_msgpack": speedups(times, variant, PANDAS_EACH),
                    }
                    for variant, took in times.items()
                ],
            }
            for size, times in results
        ],
    }


def main() -> int:
    """Measure all sizes, print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few events; only to see that it runs")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every measurement")
    parser.add_argument("--seed", type=int, default=0, help="for the order of the variants")
    parser.add_argument("--events", metavar="N", type=int, help="only batches of N events")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    if arguments.events:
        sizes = [size for size in sizes if size.events == arguments.events]
    if not sizes:
        parser.error(f"there is no size of {arguments.events} events")
    start = time.monotonic()

    def tell(sentence: str) -> None:
        print(f"{time.monotonic() - start:5.0f} s  {sentence}", file=sys.stderr, flush=True)

    # Workers import this file instead of getting its classes by value, so that they keep events.
    paths = [str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    results = []
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as folder:
        scratch = Path(folder)
        tell("starting Spark")
        spark = embedded_session(scratch, partitions=PARTITIONS)
        try:
            for source in (Source, Sink):
                spark.dataSource.register(source)
            # The queries that wait should not be busy looking for work.
            spark.conf.set("spark.sql.streaming.pollingDelay", "200ms")
            for size in sizes:
                times = measure(spark, size, scratch, arguments.seed, tell)
                print(table(size, times), end="\n\n", flush=True)
                results.append((size, times))
        finally:
            spark.stop()
    if arguments.json:
        arguments.json.write_text(json.dumps(as_json(results, arguments.seed), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    import row_format

    sys.exit(row_format.main())
