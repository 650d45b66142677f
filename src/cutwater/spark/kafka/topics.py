"""Looking at topics, and making them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cutwater.spark.kafka.cluster import Cluster, client_module
from cutwater.spark.kafka.failures import LastError

__all__ = ["Topic", "make_topic", "settings_of", "topic_of"]

CALL_S = 30


@dataclass(frozen=True)
class Topic:
    """A topic that is there."""

    name: str
    identity: str
    """What the cluster gave it when it was made; one of the same name made later has another."""
    partitions: int


def topic_of(cluster: Cluster, name: str) -> Topic | None:
    """A topic; None if it is not there."""
    kafka = client_module()
    told = LastError()
    admin = _admin(cluster, told)
    with told.explaining():
        try:
            asked = admin.describe_topics(kafka.TopicCollection([name]), request_timeout=CALL_S)
            found = asked[name].result()
        except kafka.KafkaException as error:
            admin.poll(0)
            if error.args[0].code() == kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise
    return Topic(name, str(found.topic_id), len(found.partitions))


def settings_of(cluster: Cluster, name: str) -> Mapping[str, str]:
    """The settings of a topic."""
    from confluent_kafka.admin import ConfigResource

    wanted = ConfigResource(ConfigResource.Type.TOPIC, name)
    told = LastError()
    admin = _admin(cluster, told)
    with told.explaining():
        found = admin.describe_configs([wanted], request_timeout=CALL_S)[wanted].result()
    return {key: str(entry.value) for key, entry in found.items()}


def make_topic(cluster: Cluster, name: str, partitions: int, settings: Mapping[str, str]) -> None:
    """Make a topic, with as many copies as the cluster has by default; one that is there stays."""
    kafka = client_module()
    from confluent_kafka.admin import NewTopic

    told = LastError()
    admin = _admin(cluster, told)
    new = NewTopic(name, partitions, -1, config=dict(settings))
    with told.explaining():
        try:
            admin.create_topics([new], operation_timeout=CALL_S)[name].result()
        except kafka.KafkaException as error:
            if error.args[0].code() != kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _admin(cluster: Cluster, told: LastError) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient(cluster.client(error_cb=told))
