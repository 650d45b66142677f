"""The observer of a Kafka topic."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

__all__ = ["KafkaObserver", "ObservedMessage"]

_PATIENCE_S = 60


@dataclass(frozen=True)
class ObservedMessage:
    """One message."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class KafkaObserver:
    """Reads a topic from its beginning to its current end.

    Parameters
    ----------
    servers, topic
        What to read.
    is_committed
        True: only committed messages, up to the first open transaction. False: all messages,
        including those that were or will be aborted.
    settings
        More settings of the client.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        is_committed: bool = True,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._topic = topic
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": "cutwater-observer",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
            "log_level": 2,
            **(settings or {}),
            "isolation.level": "read_committed" if is_committed else "read_uncommitted",
        }

    def rows(self) -> list[dict[str, Any]]:
        """The rows, partition by partition, each in order."""
        return [json.loads(seen.value) for seen in self.messages() if seen.value is not None]

    def by_key(self) -> dict[bytes | None, list[dict[str, Any]]]:
        """The rows of each key, in order."""
        found: dict[bytes | None, list[dict[str, Any]]] = {}
        for seen in self.messages():
            if seen.value is not None:
                found.setdefault(seen.key, []).append(json.loads(seen.value))
        return found

    def messages(self) -> list[ObservedMessage]:
        """All messages, partition by partition, each in order."""
        consumer = Consumer(self._settings)
        try:
            return sorted(self._messages(consumer), key=lambda seen: (seen.partition, seen.offset))
        finally:
            consumer.close()

    def wait_until_decided(self) -> None:
        """Wait until no transaction is open that began before this call.

        A commit is final when the producer gets the response; readers see it a moment later.
        """
        deadline = time.monotonic() + _PATIENCE_S
        given = self._ends(is_committed=False)
        while any(end < given[number] for number, end in self._ends(is_committed=True).items()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"a transaction in {self._topic} is still open")
            time.sleep(0.02)

    def _ends(self, is_committed: bool) -> dict[int, int]:
        level = "read_committed" if is_committed else "read_uncommitted"
        consumer = Consumer({**self._settings, "isolation.level": level})
        try:
            numbers = consumer.list_topics(self._topic, _PATIENCE_S).topics[self._topic].partitions
            partitions = [TopicPartition(self._topic, number) for number in numbers]
            found = {
                p.partition: consumer.get_watermark_offsets(p, _PATIENCE_S) for p in partitions
            }
            return {number: offsets[1] for number, offsets in found.items() if offsets}
        finally:
            consumer.close()

    def _messages(self, consumer: Consumer) -> list[ObservedMessage]:
        topic = consumer.list_topics(self._topic, _PATIENCE_S).topics[self._topic]
        if topic.error is not None:
            raise KafkaException(topic.error)
        left = set(topic.partitions)
        consumer.assign([TopicPartition(self._topic, number, OFFSET_BEGINNING) for number in left])
        found: list[ObservedMessage] = []
        deadline = time.monotonic() + _PATIENCE_S
        while left:
            first = consumer.poll(0.2)
            for message in [first, *consumer.consume(10_000, 0)] if first else []:
                partition, offset, error = message.partition(), message.offset(), message.error()
                assert partition is not None
                assert offset is not None
                if error is None:
                    found.append(ObservedMessage(partition, offset, message.key(), message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(partition)
                elif not error.retriable():
                    raise KafkaException(error)
            if time.monotonic() > deadline:
                raise TimeoutError(f"partitions {sorted(left)} of {self._topic} never ended")
        return found
