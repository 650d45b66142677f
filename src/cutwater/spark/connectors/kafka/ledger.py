"""The ledger of topics: who writes to each, and how far; a compacted topic of one partition.

==================================  ==============================================================
key                                 value
==================================  ==============================================================
[topic, sink, query id, "owner"]    format, newest generation; written by `take`, in a
                                    transaction of its own; "leaving" while another checkpoint
                                    takes over, "gone" after it
[…, "writer", generation, slot]     nothing more: this transactional id may have been used
[…, "slot", slot]                   generation, epoch and its lanes, rows ever; written in the
                                    transaction of the rows
==================================  ==============================================================

A slot is what writes one transaction after the other: a partition of Spark, or the driver. All
attempts of a task have the same slot, so that the newest fences the others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cutwater.errors import ConnectorError, Problem
from cutwater.spark.connectors.kafka.checks import topics_of
from cutwater.spark.connectors.kafka.polling import polled
from cutwater.spark.connectors.kafka.settings import Cluster, client_module

__all__ = ["FORMAT", "Account", "Ledger", "Slot", "owner_key", "slot_key", "writer_key"]

FORMAT = 1
_PATIENCE_S = 120
"""How long the end of the ledger is waited for: longer than any transaction may stay open."""

_encode = msgspec.json.encode
_decode = msgspec.json.decode


class Slot(msgspec.Struct, frozen=True):
    """How far one slot is."""

    generation: int
    epoch: int
    lanes: list[int]
    """The labels that have their rows of this epoch; all have those of the epochs before."""
    rows: int
    """How many rows it wrote, ever."""


@dataclass(frozen=True)
class Account:
    """Whose rows: one sink of one checkpoint, in one topic."""

    topic: str
    sink: str
    query_id: str


def owner_key(account: Account) -> bytes:
    """The key of who writes."""
    return _encode([account.topic, account.sink, account.query_id, "owner"])


def writer_key(account: Account, generation: int, slot: str) -> bytes:
    """The key that tells of a transactional id."""
    return _encode([account.topic, account.sink, account.query_id, "writer", generation, slot])


def slot_key(account: Account, slot: str) -> bytes:
    """The key of how far a slot is."""
    return _encode([account.topic, account.sink, account.query_id, "slot", slot])


@dataclass
class Ledger:
    """What the ledger says, as far as it was read; `read` goes on from there."""

    cluster: Cluster
    name: str
    who: str
    is_committed: bool = True
    """Is only what was committed read? Owners and writers are told by the rest too."""
    reached: int = 0
    _said: dict[tuple[Any, ...], bytes] = field(default_factory=dict)

    # --- what it says ----------------------------------------------------------------------------

    def owners(self, topic: str) -> dict[Account, dict[str, Any]]:
        """Who ever took a topic, and their newest generations."""
        return {
            Account(*key[:3]): _decode(value)
            for key, value in self._said.items()
            if key[0] == topic and key[3] == "owner"
        }

    def generation(self, account: Account) -> int:
        """The newest generation that took an account; 0 if none did."""
        owner = self.owners(account.topic).get(account)
        return int(owner["generation"]) if owner else 0

    def is_out(self, account: Account) -> bool:
        """Has another checkpoint taken over from an account, or begun to?"""
        return "state" in self.owners(account.topic).get(account, {})

    def writers(self, account: Account) -> list[tuple[int, str]]:
        """Generation and slot of each writer that may still have a transaction open."""
        return [(key[4], key[5]) for key in self._said if self._is_of(key, account, "writer")]

    def slots(self, account: Account) -> dict[str, Slot]:
        """How far each slot is."""
        return {
            key[4]: _decode(value, type=Slot)
            for key, value in self._said.items()
            if self._is_of(key, account, "slot")
        }

    @staticmethod
    def _is_of(key: tuple[Any, ...], account: Account, kind: str) -> bool:
        return key[:4] == (account.topic, account.sink, account.query_id, kind)

    # --- reading it ------------------------------------------------------------------------------

    def read(self, *, to_end: bool = True) -> Ledger:
        """Go on to the end.

        What was committed behind a transaction that is still open is hidden from readers. `to_end`
        waits for that, since what is hidden decides; else what is hidden is left for the next
        time.
        """
        end = topics_of(self.cluster).ends(self.name, [0], is_committed=False)[0]
        if end < self.reached:  # a broker that has just started; whoever asked asks again
            kafka = client_module()
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError.LEADER_NOT_AVAILABLE))
        if end > self.reached:
            self._read(end, to_end)
        return self

    def _read(self, end: int, to_end: bool) -> None:
        kafka = client_module()
        consumer = kafka.Consumer(
            self.cluster.client(
                group_id="cutwater",
                enable_auto_commit=False,
                enable_partition_eof=True,
                isolation_level="read_committed" if self.is_committed else "read_uncommitted",
                fetch_wait_max_ms=10,
            )
        )
        deadline = time.monotonic() + _PATIENCE_S
        try:
            consumer.assign([kafka.TopicPartition(self.name, 0, self.reached)])
            while self.reached < end:
                if time.monotonic() > deadline:
                    raise ConnectorError(_held_up(self.who, self.name, self.reached, end))
                for message in polled(consumer, 1.0):
                    error = message.error()
                    if error is None:
                        self._note(message.key(), message.value())
                        self.reached = message.offset() + 1
                    elif error.code() == kafka.KafkaError._PARTITION_EOF:
                        self.reached = max(self.reached, message.offset())
                        if not to_end:
                            return
                    elif not error.retriable():
                        raise kafka.KafkaException(error)
        finally:
            consumer.close()

    def _note(self, key: bytes, value: bytes | None) -> None:
        name = tuple(_decode(key))
        if value is None:
            self._said.pop(name, None)
        else:
            self._said[name] = value


def _held_up(who: str, ledger: str, reached: int, end: int) -> Problem:
    return Problem(
        "ledger-held-up",
        f"{who}: a transaction in the ledger '{ledger}' stays open, and hides what comes after "
        f"it: offset {reached} was reached and {end} is the end",
        "see which flow that shares the ledger hangs; the broker ends its transaction after "
        "transaction.timeout.ms",
    )
