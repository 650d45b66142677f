"""Looking at topics, and making them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cutwater.spark.kafka.cluster import Cluster, client_module
from cutwater.spark.kafka.failures import LastError

__all__ = ["Topic", "Topics"]

CALL_S = 30


@dataclass(frozen=True)
class Topic:
    """A topic that is there."""

    name: str
    identity: str
    """What the cluster gave it when it was made; one of the same name made later has another."""
    partitions: int


class Topics:
    """The topics of a cluster, by one connection; raises what the client raises."""

    def __init__(self, cluster: Cluster) -> None:
        from confluent_kafka import admin

        self._admin: Any = admin
        self._told = LastError()
        self._client: Any = admin.AdminClient(cluster.client(error_cb=self._told))

    def find(self, name: str) -> Topic | None:
        """A topic; None if it is not there."""
        kafka = client_module()
        with self._asking():
            try:
                wanted = kafka.TopicCollection([name])
                asked = self._client.describe_topics(wanted, request_timeout=CALL_S)
                found = asked[name].result()
            except kafka.KafkaException as error:
                if error.args[0].code() == kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return None
                raise
        return Topic(name, str(found.topic_id), len(found.partitions))

    def settings(self, name: str) -> Mapping[str, str]:
        """The settings of a topic."""
        resource = self._admin.ConfigResource
        wanted = resource(resource.Type.TOPIC, name)
        with self._asking():
            asked = self._client.describe_configs([wanted], request_timeout=CALL_S)
            return {key: str(entry.value) for key, entry in asked[wanted].result().items()}

    def make(self, name: str, partitions: int, settings: Mapping[str, str]) -> None:
        """Make a topic, with as many copies as the cluster has by default; one may be there."""
        kafka = client_module()
        new = self._admin.NewTopic(name, partitions, -1, config=dict(settings))
        with self._asking():
            try:
                self._client.create_topics([new], operation_timeout=CALL_S)[name].result()
            except kafka.KafkaException as error:
                if error.args[0].code() != kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def starts(self, name: str, partitions: Iterable[int]) -> dict[int, int]:
        """The offset of the first message that is kept of each partition."""
        return self._offsets(name, partitions, self._admin.OffsetSpec.earliest())

    def ends(
        self, name: str, partitions: Iterable[int], *, is_committed: bool = True
    ) -> dict[int, int]:
        """The offset up to which it is decided what is committed; or the next that is given."""
        level = client_module().IsolationLevel
        wanted = level.READ_COMMITTED if is_committed else level.READ_UNCOMMITTED
        latest = self._admin.OffsetSpec.latest()
        return self._offsets(name, partitions, latest, isolation_level=wanted)

    def _offsets(
        self, name: str, partitions: Iterable[int], what: Any, **options: Any
    ) -> dict[int, int]:
        place = client_module().TopicPartition
        wanted = {place(name, number): what for number in partitions}
        with self._asking():
            asked = self._client.list_offsets(wanted, request_timeout=CALL_S, **options)
            return {found.partition: int(told.result().offset) for found, told in asked.items()}

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Let errors say what the client was told in the background."""
        with self._told.explaining():
            try:
                yield
            except client_module().KafkaException:
                self._client.poll(0)
                raise
