"""Inspects and creates topics."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cutwater.spark.connectors.kafka.errors import LastError
from cutwater.spark.connectors.kafka.settings import Cluster, client_module

__all__ = ["Topic", "Topics", "topics_of"]

_CALL_S = 30
"""Timeout of a single call to the brokers, in seconds."""


@dataclass(frozen=True)
class Topic:
    """A topic that exists."""

    name: str
    identity: str
    """The id that the cluster assigns; a topic that is deleted and recreated has another."""
    partitions: int


_topics: dict[tuple[int, Cluster], Topics] = {}
"""Cached per process: connecting takes longer than a request."""


def topics_of(cluster: Cluster) -> Topics:
    """The topics of a cluster, with a connection that is cached per process."""
    key = os.getpid(), cluster
    if key not in _topics:
        _topics[key] = Topics(cluster)
    return _topics[key]


class Topics:
    """The topics of a cluster, over one connection; raises what the client raises."""

    def __init__(self, cluster: Cluster) -> None:
        from confluent_kafka import admin

        self._admin: Any = admin
        self._cluster = cluster
        self._last_error = LastError()
        self._client = self._connect()

    def _connect(self) -> Any:
        return self._admin.AdminClient(self._cluster.client(error_cb=self._last_error))

    def find(self, name: str) -> Topic | None:
        """A topic; None if it does not exist."""
        kafka = client_module()
        with self._asking():
            try:
                wanted = kafka.TopicCollection([name])
                asked = self._client.describe_topics(wanted, request_timeout=_CALL_S)
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
            asked = self._client.describe_configs([wanted], request_timeout=_CALL_S)
            return {key: str(entry.value) for key, entry in asked[wanted].result().items()}

    def make(self, name: str, partitions: int, settings: Mapping[str, str]) -> None:
        """Create a topic with the cluster's default replication factor, unless it exists."""
        kafka = client_module()
        new = self._admin.NewTopic(name, partitions, -1, config=dict(settings))
        with self._asking():
            try:
                self._client.create_topics([new], operation_timeout=_CALL_S)[name].result()
            except kafka.KafkaException as error:
                if error.args[0].code() != kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        self._client = self._connect()  # the old one caches that the topic does not exist

    def empty(self, name: str) -> None:
        """Delete all messages that a topic has now."""
        kafka = client_module()
        found = self.find(name)
        wanted = [
            kafka.TopicPartition(name, number, kafka.OFFSET_END)
            for number in range(found.partitions if found else 0)
        ]
        with self._asking():
            asked = self._client.delete_records(wanted, request_timeout=_CALL_S)
            for future in asked.values():
                future.result()

    def starts(self, name: str, partitions: Iterable[int]) -> dict[int, int]:
        """The offset of the oldest retained message of each partition."""
        return self._offsets(name, partitions, self._admin.OffsetSpec.earliest())

    def ends(
        self, name: str, partitions: Iterable[int], *, is_committed: bool = True
    ) -> dict[int, int]:
        """The last stable offset of each partition, or its log end if not `is_committed`."""
        level = client_module().IsolationLevel
        wanted = level.READ_COMMITTED if is_committed else level.READ_UNCOMMITTED
        latest = self._admin.OffsetSpec.latest()
        return self._offsets(name, partitions, latest, isolation_level=wanted)

    def _offsets(
        self, name: str, partitions: Iterable[int], what: Any, **options: Any
    ) -> dict[int, int]:
        kafka = client_module()
        wanted = {kafka.TopicPartition(name, number): what for number in partitions}
        deadline = time.monotonic() + _CALL_S
        with self._asking():
            while True:
                try:
                    asked = self._client.list_offsets(wanted, request_timeout=_CALL_S, **options)
                    found = {each.partition: f.result().offset for each, f in asked.items()}
                    if len(found) == len(wanted) and all(end >= 0 for end in found.values()):
                        return found
                    raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._NOENT))
                except kafka.KafkaException as error:
                    is_leaderless = error.args[0].code() == kafka.KafkaError._NOENT
                    if not is_leaderless or time.monotonic() > deadline:
                        raise
                    self._client = self._connect()
                    time.sleep(0.1)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Raise errors with the cause that the client reported in the background.

        A client that failed is replaced: the leaders that it has cached may be stale for long.
        """
        with self._last_error.explaining():
            try:
                yield
            except client_module().KafkaException:
                self._client.poll(0)
                self._client = self._connect()
                raise
