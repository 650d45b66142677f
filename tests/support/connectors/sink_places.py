"""A sink of each kind, and what a reader sees of it: for laws that all of them keep."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from support.connectors.sink_rows import bucket, codes

from cutwater.observers.delta import DeltaObserver
from cutwater.observers.folder import FolderObserver
from cutwater.observers.kafka import KafkaObserver
from cutwater.observers.postgres import PostgresObserver
from cutwater.spark.connectors.base.sink import BucketRows, Claim, SinkConnector
from cutwater.spark.connectors.delta.sink import Delta
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.connectors.kafka.sink import KafkaTopic
from cutwater.spark.connectors.postgres import postgres_table


@dataclass(frozen=True)
class Mean:
    name: str
    value: int


@dataclass
class Place:
    """A sink, and what a reader sees of it."""

    sink: SinkConnector
    rows: Callable[[], list[dict]]
    checkpoints: str

    def claim(self, query_id, generation=1):
        folder = f"{self.checkpoints}/{query_id}"
        return Claim("f", "means", query_id, generation, folder)

    def acquire(self, claim):
        self.sink.prepare("means", Mean)
        self.sink.claim(claim)
        return claim

    def take_over(self, claim, *, keep):
        """As a run does it."""
        self.sink.take_over(claim, keep=keep)
        self.sink.claim(claim)

    def show(self, claim, epoch, *values):
        self.sink.publish(claim, epoch, [self.write(claim, epoch, *values)])

    def write(self, claim, epoch, *values):
        made = bucket(Mean, [Mean("a", value) for value in values], first=epoch * 100)
        if self.sink.accepts == "lines":
            lines = [json.dumps({"name": "a", "value": value}).encode() + b"\n" for value in values]
            made = BucketRows(made.label, made.orders, lines)
        return self.sink.write(claim, epoch, Mean, [made])

    def seen(self):
        return sorted(row["value"] for row in self.rows())

    def problems(self, query_id, next_epoch=0):
        return codes(self.sink.check("means", query_id, next_epoch))


def folder_place(path, format):
    root = str(path / "out")
    return Folder(root, format), FolderObserver(root).rows


def delta_place(path):
    root = str(path / "out")
    return Delta(root, compact_every=0), lambda: DeltaObserver(root).rows()


def postgres_place(server, release):
    table = f"over_{uuid.uuid4().hex}"
    sink = postgres_table(table=table, dsn=server.dsn, release=release, create=True)
    return sink, PostgresObserver(server.dsn, table).rows


def kafka_place(broker, release, **config):
    topic = broker.topic(partitions=2, **config)
    sink = KafkaTopic(
        topic=topic, servers=broker.servers, key="name", release=release, ledger=f"l-{topic}"
    )
    observer = KafkaObserver(broker.servers, topic)

    def rows():
        observer.wait_until_decided()
        return observer.rows()

    return sink, rows


KINDS = {
    "jsonl": lambda request, path: folder_place(path, "jsonl"),
    "parquet": lambda request, path: folder_place(path, "parquet"),
    "delta": lambda request, path: delta_place(path),
    "postgres-early": lambda request, _: postgres_place(
        request.getfixturevalue("postgres"), "early"
    ),
    "postgres-commit": lambda request, _: postgres_place(
        request.getfixturevalue("postgres"), "commit"
    ),
    "kafka-early": lambda request, _: kafka_place(request.getfixturevalue("broker"), "early"),
    "kafka-commit": lambda request, _: kafka_place(request.getfixturevalue("broker"), "commit"),
}


def kinds(*names):
    slow = {name: pytest.mark.slow for name in names if "kafka" in name}
    return [pytest.param(name, marks=slow.get(name, ())) for name in names]
