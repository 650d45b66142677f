"""Plain PySpark: two `transformWithState` in a row, and an idempotent `foreachBatch`.

    python pyspark_job.py SETTINGS

A batch begins as soon as the one before is over. It writes its rows and its number in one
transaction of PostgreSQL, so that it may be done again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE))

from documents import EXAMPLES, document, words  # noqa: E402

POSTING = "word string, document string, positions string, was_there boolean"
CHANGE = "word string, number long, document string, positions string, documents long"
NOTE = "INSERT INTO {table}_ledger VALUES (%s) ON CONFLICT DO NOTHING"
INSERT = (
    "INSERT INTO {table} (word, number, document, positions, documents)"
    " SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::jsonb[], %s::bigint[])"
)


class Documents(DataSource):
    """Document n, each when it is due."""

    @classmethod
    def name(cls) -> str:
        return "documents"

    def schema(self) -> str:
        return "name string, text string"

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
        return DueDocuments(Path(self.options["told"]), float(self.options["rate"]))


class DueDocuments(SimpleDataSourceStreamReader):
    """Its offset is the number of the next document; the first is due at the first look."""

    def __init__(self, told: Path, rate: float) -> None:
        self._told, self._rate = told, rate

    def initialOffset(self) -> dict[str, int]:
        return {"next": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[str, str]], dict[str, int]]:
        if not self._told.exists():
            hidden = self._told.with_suffix(".tmp")
            hidden.write_text(str(time.time()))
            hidden.rename(self._told)
        began = float(self._told.read_text())
        due = 1 + int(max(time.time() - began, 0) * self._rate)
        end = {"next": max(due, start["next"])}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[tuple[str, str]]:
        made = map(document, range(start["next"], end["next"]))
        return iter([(each.name, each.text) for each in made])


class Postings(StatefulProcessor):
    """What differs from the last version of a document."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("words", "words string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        before = json.loads(self._state.get()[0]) if self._state.exists() else {}
        for row in rows:
            now = {word: list(positions) for word, positions in words(row.text).items()}
            for word in sorted({*before, *now}):
                if before.get(word) != now.get(word):
                    positions = json.dumps(now.get(word, []))
                    yield Row(
                        word=word, document=row.name, positions=positions, was_there=word in before
                    )
            before = now
        self._state.update((json.dumps(before),))


class Changes(StatefulProcessor):
    """The next changes of a word."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("word", "changes long, documents long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        number, documents = self._state.get() if self._state.exists() else (0, 0)
        for row in rows:
            number += 1
            documents += (row.positions != "[]") - row.was_there
            yield Row(
                word=row.word,
                number=number,
                document=row.document,
                positions=row.positions,
                documents=documents,
            )
        self._state.update((number, documents))


def build(spark: SparkSession, settings: dict[str, Any]) -> DataFrame:
    """The query, up to its sink."""
    spark.dataSource.register(Documents)
    source = spark.readStream.format("documents").option("told", settings["began"])
    documents = source.option("rate", str(settings["rate"])).load()
    postings = documents.groupBy("name").transformWithState(
        Postings(), outputStructType=POSTING, outputMode="append", timeMode="None"
    )
    return postings.groupBy("word").transformWithState(
        Changes(), outputStructType=CHANGE, outputMode="append", timeMode="None"
    )


class Writer:
    """Writes each batch once."""

    def __init__(self, dsn: str, table: str) -> None:
        self._connection = psycopg.connect(dsn)
        self._note, self._insert = NOTE.format(table=table), INSERT.format(table=table)

    def __call__(self, rows: DataFrame, number: int) -> None:
        columns = [list(column) for column in zip(*rows.collect(), strict=True)]
        with self._connection.transaction():
            noted = self._connection.execute(self._note, [str(number)])
            if columns and noted.rowcount:
                self._connection.execute(self._insert, columns)


def session() -> SparkSession:
    """A session that is tuned for small batches."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.pollingDelay": "1",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    """Run until the process is ended."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    paths = [str(HERE), str(EXAMPLES), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session()
    spark.sparkContext.setLogLevel("ERROR")
    rows = build(spark, settings)
    writer = rows.writeStream.outputMode("append").foreachBatch(
        Writer(settings["dsn"], settings["table"])
    )
    writer.option(
        "checkpointLocation", f"{settings['folder']}/checkpoint"
    ).start().awaitTermination()


if __name__ == "__main__":
    import pyspark_job  # so that workers find its classes by name

    pyspark_job.main()
