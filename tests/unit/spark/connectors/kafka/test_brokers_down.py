"""Brokers that are down at the start: waited for, and then a sentence with exit code 1."""

import socket
from dataclasses import dataclass

import pytest
from support.connectors.cutting_proxy import CuttingProxy

from cutwater import Flow
from cutwater.endings import AGAIN, exit_code
from cutwater.errors import ConnectorError
from cutwater.spark.connectors.kafka import checks, errors
from cutwater.spark.connectors.kafka.sink import KafkaTopic
from cutwater.spark.connectors.kafka.source import KafkaMessages
from cutwater.spark.connectors.postgres import connections


@dataclass
class Order:
    number: int


FLOW = Flow("orders")
FLOW.source("orders", Order).sink("out")
STEP = FLOW.steps[0]


@pytest.fixture
def port():
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def source_problems(servers, topic):
    return list(KafkaMessages(topic=topic, servers=servers).check("orders", STEP))


def sink_problems(servers, topic):
    return KafkaTopic(topic, servers, ledger=f"ledger-{topic}").check("out", None, 0)


@pytest.fixture(autouse=True)
def one_second_per_call(monkeypatch):
    monkeypatch.setattr(checks, "_CALL_S", 1)
    monkeypatch.setattr(checks, "_topics", {})


@pytest.mark.slow
@pytest.mark.parametrize("problems_of", [source_problems, sink_problems])
def test_brokers_that_come_up_are_waited_for(broker, port, monkeypatch, problems_of):
    """The address answers from the second attempt on."""
    topic, opened = broker.topic(), []

    def open_it(_seconds):
        if not opened:
            opened.append(CuttingProxy(int(broker.servers.rpartition(":")[2]), at=port))

    monkeypatch.setattr(errors.time, "sleep", open_it)
    assert problems_of(f"127.0.0.1:{port}", topic) == []
    assert opened, "the first attempt failed"
    opened[0].close()


@pytest.mark.parametrize("problems_of", [source_problems, sink_problems])
def test_brokers_that_stay_down_are_a_sentence_and_exit_code_1(port, monkeypatch, problems_of):
    pauses = []
    monkeypatch.setattr(errors, "PATIENCE_S", 2)
    monkeypatch.setattr(errors.time, "sleep", pauses.append)
    with pytest.raises(ConnectorError, match="kafka-unreachable") as error:
        problems_of(f"127.0.0.1:{port}", "orders")
    assert exit_code(error.value) == AGAIN
    assert pauses, "it was tried again"


def test_kafka_is_waited_for_as_long_as_postgres():
    assert errors.PATIENCE_S == connections.GIVE_UP_S
