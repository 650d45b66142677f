"""From Kafka through a flow on Spark to Kafka: what a reader sees is what the flow means."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer
from support.spark.embedded_spark import shared_session

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.observers.kafka import KafkaObserver

pytestmark = [pytest.mark.spark, pytest.mark.slow]

USERS = 7


@dataclass(frozen=True)
class Order:
    user: str
    amount: int


@cw.task(initial=0)
def running_total(state: int, order: Order) -> tuple[int, list[Order]]:
    return state + order.amount, [Order(order.user, state + order.amount)]


def totals() -> cw.Flow:
    flow = cw.Flow("totals")
    flow.sink("totals", flow.source("orders", Order).key_by("user").apply(running_total))
    return flow


def send(servers: str, topic: str, amounts: range) -> None:
    """Orders of some users, those of each user in one partition."""
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2"})
    for amount in amounts:
        order = {"user": f"u{amount % USERS}", "amount": amount}
        producer.produce(topic, json.dumps(order), order["user"])
    producer.flush()


def expected(amounts: range) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = defaultdict(list)
    for amount in amounts:
        so_far = found[b"u%d" % (amount % USERS)]
        so_far.append((so_far[-1] if so_far else 0) + amount)
    return found


def seen(servers: str, topic: str) -> dict[bytes | None, list[int]]:
    observer = KafkaObserver(servers, topic)
    observer.wait_until_decided()
    return {key: [row["amount"] for row in rows] for key, rows in observer.by_key().items()}


def differences(found: dict[bytes | None, list[int]], wanted: dict[bytes, list[int]]) -> list[str]:
    """What of each key is missing, more than it should be, or in another order."""
    differences = []
    for key in sorted({*found, *wanted}, key=str):
        here, there = Counter(found.get(key, [])), Counter(wanted.get(key, []))
        if found.get(key) != wanted.get(key):
            differences.append(
                f"{key!r}: missing {list(there - here)}, too many {list(here - there)}"
            )
    return differences


@pytest.fixture(params=["early", "commit"])
def way(broker, tmp_path, request):
    """Everything that `run` is given but what is particular to a test."""
    source = cutwater_spark.kafka_messages(
        topic=broker.topic(partitions=2), servers=broker.servers, max_rows_per_epoch=150
    )
    sink = cutwater_spark.kafka_topic(
        topic=broker.topic(partitions=3),
        servers=broker.servers,
        key="user",
        release=request.param,
        ledger=broker.topic(cleanup_policy="compact"),
    )
    return {
        "sources": {"orders": source},
        "sinks": {"totals": sink},
        "checkpoint": tmp_path / "checkpoint",
    }


def test_from_kafka_to_kafka_and_on_from_a_checkpoint(broker, way):
    source, sink = way["sources"]["orders"], way["sinks"]["totals"]
    send(broker.servers, source.topic, range(400))
    cutwater_spark.run(totals(), shared_session(), **way)
    assert differences(seen(broker.servers, sink.topic), expected(range(400))) == []
    send(broker.servers, source.topic, range(400, 500))
    cutwater_spark.run(totals(), shared_session(), **way)
    assert differences(seen(broker.servers, sink.topic), expected(range(500))) == []


def test_a_broker_that_is_killed_under_load_loses_and_doubles_nothing(broker, way):
    source, sink = way["sources"]["orders"], way["sinks"]["totals"]
    send(broker.servers, source.topic, range(900))
    restarts = iter([broker.restart, broker.restart])
    cutwater_spark.run(
        totals(),
        shared_session(),
        on_progress=lambda _progress: next(restarts, lambda: None)(),
        **way,
    )
    assert next(restarts, None) is None
    assert differences(seen(broker.servers, sink.topic), expected(range(900))) == []


@dataclass(frozen=True)
class Reading:
    at: int
    amount: int


def windows() -> cw.Flow:
    flow = cw.Flow("windows")
    readings = flow.source("readings", Reading, time="at", watermark=cw.bounded_delay(0))
    sums = readings.window(cw.tumbling(10)).aggregate(total=cw.agg.sum("amount"))
    flow.sink("sums", sums)
    return flow


def test_a_partition_that_lags_holds_its_source_back(broker, tmp_path):
    topic = broker.topic(partitions=2)
    producer = Producer({"bootstrap.servers": broker.servers})

    def write(partition: int, *times: int) -> None:
        for at in times:
            producer.produce(topic, json.dumps({"at": at, "amount": 1}), partition=partition)
        producer.flush()

    def totals_shown() -> list[int]:
        cutwater_spark.run(
            windows(),
            shared_session(),
            sources={
                "readings": cutwater_spark.kafka_messages(topic=topic, servers=broker.servers)
            },
            sinks={"sums": tmp_path / "out"},
            checkpoint=tmp_path / "checkpoint",
        )
        texts = [path.read_text() for path in tmp_path.glob("out/epoch=*/*.jsonl")]
        return sorted(json.loads(line)["total"] for text in texts for line in text.splitlines())

    write(0, 1, 2, 35)
    write(1, 3)
    assert totals_shown() == []  # partition 0 is at 35, and partition 1 may still bring more
    write(0, 45)
    write(1, 4, 5, 21)
    assert totals_shown() == [5]
    assert not list(tmp_path.glob("checkpoint/late-events/*/epoch=*"))


def test_a_deleted_checkpoint_does_not_double_the_output(broker, way, tmp_path):
    source, sink = way["sources"]["orders"], way["sinks"]["totals"]
    send(broker.servers, source.topic, range(50))
    cutwater_spark.run(totals(), shared_session(), **way)
    with pytest.raises(RunError, match="another-checkpoint"):
        cutwater_spark.run(
            totals(), shared_session(), **{**way, "checkpoint": tmp_path / "another"}
        )
    assert differences(seen(broker.servers, sink.topic), expected(range(50))) == []
