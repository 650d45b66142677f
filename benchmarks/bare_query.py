"""A bare Spark query with the stages of a flow that has one keyed task, and nothing else.

A Python stream reader, an exchange, `transformWithState` and a Python Arrow stream writer, with
the rows that Cutwater has: ``(label, target, kind, body)``, a body holding many lines. Nothing is
decoded but the key, nothing is synced to disk or checked. What is kept in state is a number of rows
for each bucket, or nothing.

Workers import this module by its name.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
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
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType

from cutwater.ordering import bucket_of, canonical
from cutwater.spark.exchange.bucket_hash import labels
from cutwater.spark.exchange.envelope import DATA, ROW_SCHEMA
from cutwater.spark.job.spec import BUCKETS

__all__ = ["start_bare_query"]

ARROW_SCHEMA = to_arrow_schema(ROW_SCHEMA)
COUNT_SCHEMA = StructType([StructField("count", LongType())])


class BareSource(DataSource):
    """A folder of JSON lines, whose files are named in the order in which they appear."""

    @classmethod
    def name(cls) -> str:
        return "bare_source"

    def schema(self) -> StructType:
        return ROW_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return BareReader(self.options["folder"])


class BareReader(DataSourceStreamReader):
    """Its offset is the number of files."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def initialOffset(self) -> dict[str, int]:
        return {"files": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"files": len(self._names())}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(self._names()[start["files"] : end["files"]])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        bodies: dict[int, list[bytes]] = defaultdict(list)
        for name in partition.value:
            for line in (Path(self._folder) / name).read_bytes().splitlines(keepends=True):
                bucket = bucket_of(canonical(json.loads(line)["key"]), BUCKETS)
                bodies[labels(BUCKETS)[bucket]].append(line)
        size = len(bodies)
        columns = [list(bodies), [0] * size, [DATA] * size, [b"".join(b) for b in bodies.values()]]
        arrays = [pa.array(c, kind) for c, kind in zip(columns, ARROW_SCHEMA.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)

    def _names(self) -> list[str]:
        with os.scandir(self._folder) as entries:
            return sorted(entry.name for entry in entries if entry.name[0] != ".")


class Passing(StatefulProcessor):
    """Rows pass as they are; nothing is kept."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        yield from rows

    def close(self) -> None:
        pass


class Counting(Passing):
    """Rows pass as they are, and are counted in a state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("count", COUNT_SCHEMA)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        found = self._state.get()
        passed = list(rows)
        self._state.update(((found[0] if found else 0) + len(passed),))
        yield from passed


class BareSink(DataSource):
    """A folder in which every epoch is a directory that appears at once."""

    @classmethod
    def name(cls) -> str:
        return "bare_sink"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return BareWriter(Path(self.options["folder"]))


@dataclass
class Wrote(WriterCommitMessage):
    """The file of one task."""

    path: Path


class BareWriter(DataSourceStreamArrowWriter):
    """Writes beside, and publishes by a rename."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        staging = self._folder / "_staging"
        staging.mkdir(parents=True, exist_ok=True)
        path = staging / f"{uuid.uuid4()}.jsonl"
        with path.open("wb") as file:
            for batch in iterator:
                file.writelines(batch["body"].to_pylist())
        return Wrote(path)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        epoch = self._folder / "_staging" / f"epoch={batchId}"
        epoch.mkdir()
        for message in messages:
            if isinstance(message, Wrote):
                message.path.rename(epoch / message.path.name)
        epoch.rename(self._folder / epoch.name)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass


def start_bare_query(
    spark: SparkSession, source: Path, sink: Path, checkpoint: Path, *, keeps_state: bool
) -> StreamingQuery:
    """From a folder to a folder, as often as there is something new."""
    for kind in (BareSource, BareSink):
        spark.dataSource.register(kind)
    lines = spark.readStream.format(BareSource.name()).option("folder", str(source)).load()
    passed = lines.groupBy("label").transformWithState(
        Counting() if keeps_state else Passing(), ROW_SCHEMA, "append", "None"
    )
    writer = passed.writeStream.format(BareSink.name()).outputMode("append")
    writer = writer.option("folder", str(sink)).option("checkpointLocation", str(checkpoint))
    return writer.trigger(processingTime="0 seconds").start()
