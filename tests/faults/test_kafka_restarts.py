"""A broker that is killed and started again while a sink writes and a source reads."""

import threading
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from cutwater.observers.kafka import KafkaObserver
from cutwater.spark.checkpoint.offset_log import ChunkLog
from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.connectors.kafka import transactions
from cutwater.spark.connectors.kafka.sink import KafkaTopic
from cutwater.spark.connectors.kafka.source import KafkaMessages

pytestmark = pytest.mark.slow

EPOCHS = 30
ROWS = 200


@pytest.fixture(autouse=True)
def nothing_connected():
    yield
    transactions._writers.clear()
    transactions._ledgers.clear()


def buckets(epoch):
    """Two buckets with rows that count on."""
    numbers = range(epoch * ROWS, (epoch + 1) * ROWS)
    orders = [number.to_bytes(8, "big") for number in numbers]
    return [
        BucketRows(
            label, orders, [b'{"bucket":"%d","n":%d}\n' % (label, number) for number in numbers]
        )
        for label in (1, 2)
    ]


@pytest.mark.parametrize(
    ("release", "way"),
    [("early", "kill"), ("commit", "kill"), ("commit", "stop"), ("early", "pause")],
)
def test_a_sink_goes_on_where_the_broker_was(broker, tmp_path, release, way):
    topic = broker.topic(partitions=2)
    sink = KafkaTopic(
        topic=topic, servers=broker.servers, key="bucket", release=release, ledger=f"l-{topic}"
    )
    claim = Claim("flow", "out", uuid.uuid4().hex, 1, str(tmp_path))
    sink.claim(claim)
    has_begun = threading.Event()
    failures = []

    def write():
        try:
            for epoch in range(EPOCHS):
                receipt = sink.write(claim, epoch, None, buckets(epoch))
                sink.publish(claim, epoch, [receipt])
                has_begun.set()
        except Exception as error:
            failures.append(error)
            has_begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    has_begun.wait(120)
    if way == "pause":
        broker.pause()
        writer.join(3)  # not for a result: so long it hangs, in the middle of something
        broker.resume()
    else:
        getattr(broker, way)()
        broker.start()
    writer.join()
    assert failures == []
    observer = KafkaObserver(broker.servers, topic)
    observer.wait_until_decided()
    found = {key: [row["n"] for row in rows] for key, rows in observer.by_key().items()}
    assert found == {label: list(range(EPOCHS * ROWS)) for label in (b"1", b"2")}
    assert sink.row_count(claim) == 2 * EPOCHS * ROWS


def test_a_source_goes_on_where_the_broker_was(broker, tmp_path):
    source = KafkaMessages(topic=broker.topic(), servers=broker.servers, max_rows_per_epoch=1000)
    producer = Producer({"bootstrap.servers": broker.servers})
    for number in range(5000):
        producer.produce(source.topic, b"%d" % number)
    producer.flush()
    log = ChunkLog(source, int, tmp_path / "log")
    reader = source.reader(int)
    found = []
    for epoch in range(1, 6):
        assert log.extend() == epoch
        if epoch == 2:
            broker.restart()
        for chunk in log.read(epoch):
            for part in (
                replace(chunk, end=chunk.start + 400),
                replace(chunk, start=chunk.start + 400),
            ):
                found += [number for run in reader.batches(part) for number in reader.decode(run)]
    assert found == list(range(5000))
