"""The ledger of topics: who owns each, and how far it is; a compacted topic of one partition.

==================================  ==============================================================
key                                 value
==================================  ==============================================================
[topic, sink, query id, "owner"]    format, newest generation, id of the topic; written by `claim`,
                                    in a transaction of its own; "leaving" while another
                                    checkpoint takes over, "gone" after that
[…, "writer", generation, slot]     empty: this transactional id may have been used
[…, "slot", slot]                   generation, epoch and its buckets, rows in total; written in
                                    the transaction of the rows
==================================  ==============================================================

A slot is a sequence of transactions with one writer: a partition of Spark, or the driver. All
attempts of a task share a slot, so the newest attempt fences the others.
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

__all__ = [
    "KAFKA_LEDGER_FORMAT",
    "Account",
    "KafkaLedger",
    "Slot",
    "owner_key",
    "slot_key",
    "writer_key",
]

KAFKA_LEDGER_FORMAT = 1
_PATIENCE_S = 120
"""Seconds to wait for the end of the ledger if an open transaction of another flow hides it."""

_encode = msgspec.json.encode
_decode = msgspec.json.decode


class Slot(msgspec.Struct, frozen=True):
    """The progress of one slot."""

    generation: int
    epoch: int
    buckets: list[int]
    """Labels of the buckets whose rows of this epoch are written; earlier epochs are complete."""
    rows: int
    """The rows that it wrote in all epochs."""


@dataclass(frozen=True)
class Account:
    """The owner of rows: one sink of one checkpoint, in one topic."""

    topic: str
    sink: str
    query_id: str


def owner_key(account: Account) -> bytes:
    """The key of the entry that names the owner."""
    return _encode([account.topic, account.sink, account.query_id, "owner"])


def writer_key(account: Account, generation: int, slot: str) -> bytes:
    """The key of the entry that announces a transactional id."""
    return _encode([account.topic, account.sink, account.query_id, "writer", generation, slot])


def slot_key(account: Account, slot: str) -> bytes:
    """The key of a slot's progress."""
    return _encode([account.topic, account.sink, account.query_id, "slot", slot])


@dataclass
class KafkaLedger:
    """The ledger as far as it was read; `read` continues from there."""

    cluster: Cluster
    name: str
    who: str
    is_committed: bool = True
    """Read committed entries only? Owners and writers also count while uncommitted."""
    reached: int = 0
    _records: dict[tuple[Any, ...], bytes] = field(default_factory=dict)

    # --- contents --------------------------------------------------------------------------------

    def owners(self, topic: str) -> dict[Account, dict[str, Any]]:
        """The owner entry, with the newest generation, of every account that claimed a topic."""
        return {
            Account(*key[:3]): _decode(value)
            for key, value in self._records.items()
            if key[0] == topic and key[3] == "owner"
        }

    def generation(self, account: Account) -> int:
        """The newest generation that claimed an account; 0 if none has."""
        owner = self.owners(account.topic).get(account)
        return int(owner["generation"]) if owner else 0

    def is_out(self, account: Account) -> bool:
        """Has another checkpoint taken the topic over from an account, or begun to?"""
        return "state" in self.owners(account.topic).get(account, {})

    def writers(self, account: Account) -> list[tuple[int, str]]:
        """Generation and slot of each writer that may still have a transaction open."""
        return [(key[4], key[5]) for key in self._records if self._is_of(key, account, "writer")]

    def slots(self, account: Account) -> dict[str, Slot]:
        """The progress of each slot."""
        return {
            key[4]: _decode(value, type=Slot)
            for key, value in self._records.items()
            if self._is_of(key, account, "slot")
        }

    def newest_epoch(self, account: Account) -> int:
        """The newest epoch that any slot has written; -1 if none has."""
        return max((slot.epoch for slot in self.slots(account).values()), default=-1)

    @staticmethod
    def _is_of(key: tuple[Any, ...], account: Account, kind: str) -> bool:
        return key[:4] == (account.topic, account.sink, account.query_id, kind)

    # --- reading ---------------------------------------------------------------------------------

    def read(self, *, to_end: bool = True) -> KafkaLedger:
        """Read on to the end of the ledger, and return it.

        An open transaction hides everything behind it from read_committed readers. With `to_end`
        this waits until it is decided, or raises `ConnectorError`; without, hidden entries are left
        for the next call.
        """
        end = topics_of(self.cluster).ends(self.name, [0], is_committed=False)[0]
        if end < self.reached:  # a broker that has just started; the caller retries
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
            self._records.pop(name, None)
        else:
            self._records[name] = value


def _held_up(who: str, ledger: str, reached: int, end: int) -> Problem:
    return Problem(
        "ledger-held-up",
        f"{who}: a transaction in the ledger '{ledger}' stays open, and hides what comes after "
        f"it: in {_PATIENCE_S} s offset {reached} was reached, and {end} is the end",
        "run again: the broker ends the transaction after the transaction.timeout.ms of the flow "
        "that has it open, or that flow does when it starts again",
    )
