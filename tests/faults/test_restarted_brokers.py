"""A broker that has just started knows less than it did: nobody takes that for the truth."""

from dataclasses import dataclass
from types import SimpleNamespace

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from cutwater.errors import InputError
from cutwater.spark.connectors.kafka import ledger as ledgers
from cutwater.spark.connectors.kafka import sink as sinks
from cutwater.spark.connectors.kafka import source as kafka_messages
from cutwater.spark.connectors.kafka.checks import Topics
from cutwater.spark.connectors.kafka.ledger import Account, KafkaLedger, slot_key
from cutwater.spark.connectors.kafka.settings import Cluster
from cutwater.spark.connectors.kafka.sink import KafkaTopic
from cutwater.spark.connectors.kafka.source import KafkaMessages

NOWHERE = Cluster.of("127.0.0.1:1", {}, None, None)


@dataclass
class Answering:
    """A client whose brokers say one thing after the other about the ends of partitions."""

    answers: list

    def list_offsets(self, wanted, **_options):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        futures = {
            number: SimpleNamespace(result=lambda o=o: SimpleNamespace(offset=o))
            for number, o in answer.items()
        }
        return {place: futures[place.partition] for place in wanted if place.partition in futures}

    def poll(self, _seconds):
        return 0


@pytest.fixture
def topics(monkeypatch):
    """The topics of a cluster that gives these answers."""

    def make(*answers):
        client = Answering(list(answers))
        monkeypatch.setattr(Topics, "_connect", lambda _self: client)
        return Topics(NOWHERE), client

    return make


def test_an_answer_without_some_partitions_is_asked_for_again(topics):
    found, client = topics({0: 5}, {}, {0: 5, 1: 7})
    assert found.ends("topic", [0, 1]) == {0: 5, 1: 7}
    assert client.answers == []


def test_an_end_that_is_not_known_is_asked_for_again(topics):
    found, _ = topics({0: -1, 1: 7}, {0: 5, 1: 7})
    assert found.ends("topic", [0, 1]) == {0: 5, 1: 7}


def test_any_other_failure_is_for_the_caller(topics):
    found, client = topics(
        KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)), {0: 5}
    )
    with pytest.raises(KafkaException):
        found.ends("topic", [0])
    assert len(client.answers) == 1


def looking_up(monkeypatch, *answers):
    """Positions of a topic whose ends are these, one after the other; the last one for ever."""
    left = list(answers)
    positions = KafkaMessages(topic="topic", servers="127.0.0.1:1").planner(dict, lambda: 0.0)
    positions._ends_before = {0: 10}
    monkeypatch.setattr(positions, "_looked_up", lambda: left.pop(0) if len(left) > 1 else left[0])
    return positions


def test_a_topic_that_seems_smaller_is_looked_at_again(monkeypatch):
    positions = looking_up(monkeypatch, {0: 4}, {}, {0: 12})
    assert positions._ends() == {0: 12}


def test_a_topic_that_stays_smaller_has_lost_messages(monkeypatch):
    monkeypatch.setattr(kafka_messages, "PATIENCE_S", 0)
    with pytest.raises(InputError, match="messages-lost"):
        looking_up(monkeypatch, {0: 4})._ends()


def message(offset, key=None, value=None):
    """A record of a ledger; without a key, word that the partition ends here."""
    end = None if key else KafkaError(KafkaError._PARTITION_EOF)
    return SimpleNamespace(
        error=lambda: end, offset=lambda: offset, key=lambda: key, value=lambda: value
    )


def test_a_ledger_is_read_to_the_end_that_is_really_there(monkeypatch):
    """The last entry says that the output is ahead of its checkpoint."""
    account = Account("topic", "out", "query")
    slot = b'{"generation":1,"epoch":4,"buckets":[1],"rows":1}'
    told = [message(3), message(3, slot_key(account, "0"), slot), message(5)]
    topics = SimpleNamespace(ends=lambda *_, **_how: {0: 5}, find=lambda _name: "there")
    consumer = SimpleNamespace(assign=lambda _places: None, close=lambda: None)
    monkeypatch.setattr(sinks, "topics_of", lambda _cluster: topics)
    monkeypatch.setattr(ledgers, "topics_of", lambda _cluster: topics)
    monkeypatch.setattr(confluent_kafka, "Consumer", lambda _settings: consumer)
    monkeypatch.setattr(ledgers, "polled", lambda _consumer, _seconds: [told.pop(0)])
    sink = KafkaTopic(topic="topic", servers="127.0.0.1:1")
    assert sink._look("out", is_committed=False).newest_epoch(account) == 4


def test_a_ledger_that_seems_shorter_than_what_was_read_of_it_is_not_believed(monkeypatch):
    ends = SimpleNamespace(ends=lambda _name, _partitions, is_committed: {0: 3})
    monkeypatch.setattr(ledgers, "topics_of", lambda _cluster: ends)
    with pytest.raises(KafkaException) as failure:
        KafkaLedger(NOWHERE, "ledger", "sink 'out'", reached=5).read()
    assert failure.value.args[0].code() == KafkaError.LEADER_NOT_AVAILABLE
    assert KafkaLedger(NOWHERE, "ledger", "sink 'out'", reached=3).read().reached == 3
