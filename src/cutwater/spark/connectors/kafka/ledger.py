"""The ledger of topics: their owners and progress, in a compacted topic of one partition.

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
from typing import Any, Literal

import msgspec

from cutwater.errors import ConnectorError, Problem, RefusedError
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
_FIELDS: dict[str, tuple[type, ...]] = {"owner": (), "writer": (int, str), "slot": (str,)}
"""The fields of a record's key after its account and its kind."""


class Slot(msgspec.Struct, frozen=True):
    """The progress of one slot."""

    generation: int
    epoch: int
    buckets: list[int]
    """Labels of the buckets whose rows of this epoch are written; earlier epochs are complete."""
    rows: int
    """The rows that it wrote in all epochs."""


class _Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of an owner's record; other fields are left to those who know them."""

    generation: int
    format: int = KAFKA_LEDGER_FORMAT
    topic_id: str | None = None
    state: Literal["leaving", "gone"] | None = None


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
    _strange: dict[bytes | None, str] = field(default_factory=dict)
    """Why records are not ledger entries, by key; a later record with the key replaces it."""

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

        An open transaction hides everything after it from read_committed readers. With `to_end`
        this waits until it is decided, or raises `ConnectorError`; without, hidden entries are left
        for the next call.
        """
        end = topics_of(self.cluster).ends(self.name, [0], is_committed=False)[0]
        if end < self.reached:  # a broker that has just started; the caller retries
            kafka = client_module()
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError.LEADER_NOT_AVAILABLE))
        if end > self.reached:
            self._read(end, to_end)
        self._refuse_strange()
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

    def _note(self, key: bytes | None, value: bytes | None) -> None:
        """Apply a record, which replaces the one with the same key."""
        self._strange.pop(key, None)
        try:
            name = _name_of(key)
            self._records.pop(name, None)
            if value is not None:
                _check_value(name[3], value)
                self._records[name] = value
        except (ValueError, RecursionError) as error:
            if value is not None:
                self._strange[key] = str(error)

    def _refuse_strange(self) -> None:
        """Raise `RefusedError` if something other than a flow has written a record."""
        for key, why in self._strange.items():
            raise RefusedError(_damaged(self.who, self.name, key, why))


def _name_of(key: bytes | None) -> tuple[Any, ...]:
    """The fields of a record's key; raises `ValueError` if it is none of the three kinds."""
    found = _decode(key, type=list) if key is not None else []
    account, kind, rest = found[:3], found[3:4], found[4:]
    wanted = _FIELDS.get(kind[0]) if kind and isinstance(kind[0], str) else None
    if wanted is None or not all(isinstance(part, str) for part in account):
        raise ValueError("its key names no owner, writer or slot of a topic")
    if len(rest) != len(wanted) or not all(map(_is, rest, wanted)):
        raise ValueError(f"its key has other fields than that of a record of a {kind[0]}")
    return tuple(found)


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _check_value(kind: str, value: bytes) -> None:
    """Raise `ValueError` if a value is not of its kind; that of a writer says nothing."""
    if kind == "owner":
        _decode(value)  # also the fields that have no type here
        _decode(value, type=_Owner)
    elif kind == "slot":
        _decode(value, type=Slot)


def _damaged(who: str, ledger: str, key: bytes | None, why: str) -> Problem:
    return Problem(
        "damaged-ledger",
        f"{who}: the ledger '{ledger}' has a record that was not written by a flow, with the key "
        f"{key!a:.100}: {why}",
        "let nothing else write to this topic, and write a tombstone with that key (a record "
        "without a value); if a record of a flow was overwritten, start with a new topic and a new "
        "checkpoint",
    )


def _held_up(who: str, ledger: str, reached: int, end: int) -> Problem:
    return Problem(
        "ledger-held-up",
        f"{who}: a transaction in the ledger '{ledger}' stays open and hides the records "
        f"after it: offset {reached} of {end} was reached after {_PATIENCE_S} s",
        "run again: the broker aborts the transaction after the transaction.timeout.ms of the flow "
        "that opened it, or that flow does when it starts again",
    )
