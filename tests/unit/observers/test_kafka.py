import uuid

import pytest
from confluent_kafka import Producer

from cutwater.observers.kafka import KafkaObserver

pytestmark = pytest.mark.slow


@pytest.fixture
def topic(broker):
    return broker.topic(partitions=2)


def transaction(broker, topic, *rows, partition=0):
    settings = {"bootstrap.servers": broker.servers, "transactional.id": uuid.uuid4().hex}
    producer = Producer(settings)
    producer.init_transactions()
    producer.begin_transaction()
    for number in rows:
        producer.produce(topic, b'{"n":%d}' % number, b"k%d" % (number % 2), partition)
    producer.flush()
    return producer


def numbers(observer):
    return [row["n"] for row in observer.rows()]


def test_only_what_is_committed_is_seen_unless_asked_for_more(broker, topic):
    observer = KafkaObserver(broker.servers, topic)
    transaction(broker, topic, 1, 2).commit_transaction()
    transaction(broker, topic, 3).abort_transaction()
    transaction(broker, topic, 4, partition=1).commit_transaction()
    observer.wait_until_decided()
    still_open = transaction(broker, topic, 5)
    assert numbers(observer) == [1, 2, 4]
    assert numbers(KafkaObserver(broker.servers, topic, is_committed=False)) == [1, 2, 3, 5, 4]
    still_open.commit_transaction()
    observer.wait_until_decided()
    assert numbers(observer) == [1, 2, 5, 4]
    assert observer.by_key() == {b"k0": [{"n": 2}, {"n": 4}], b"k1": [{"n": 1}, {"n": 5}]}


def test_an_empty_topic_has_no_rows(broker, topic):
    assert KafkaObserver(broker.servers, topic).rows() == []
