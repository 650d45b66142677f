"""Commits rows and their ledger entry in one transaction: once, for any number of attempts.

A slot has one transactional id per generation. A producer that initialises with an id aborts what
another left open under it and fences that one. Only then is the ledger read, so no other producer
can change the entry of this slot, and the copy in memory stays valid: it need not be read again
for the next epoch.

A run that takes over (`fence`) first writes its generation, then initialises a producer with every
id that earlier runs announced. A writer announces its id before it reads the ledger. So an old
writer either reads the new generation, or announced its id early enough to be fenced.

All generations are written under one transactional id, in the same steps: initialise, read the
ledger, write. So generations only grow: a zombie reads that it is too late, or cannot commit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from cutwater.errors import ConnectorError, FencedError, Problem, RefusedError
from cutwater.spark.connectors.kafka.checks import topics_of
from cutwater.spark.connectors.kafka.errors import (
    LastError,
    failed,
    in_words,
    is_down,
    is_fenced,
    is_hopeless,
    overdue,
)
from cutwater.spark.connectors.kafka.ledger import (
    KAFKA_LEDGER_FORMAT,
    Account,
    KafkaLedger,
    Slot,
    owner_key,
    slot_key,
    writer_key,
)
from cutwater.spark.connectors.kafka.settings import Cluster, client_module

__all__ = ["DRIVER", "WHOLE_EPOCH", "KafkaRecord", "WriteScope", "commit_rows", "fence", "revoke"]

_PATIENCE_S = 120
"""Seconds for which an epoch is retried: enough to restart a broker."""
_OTHER_S = 30
"""Seconds for which a fenced attempt waits for the attempt that fenced it."""
_CALL_S = 30
"""Timeout of a single call to the brokers, in seconds."""
DRIVER = "driver"
"""The slot of epochs that the driver publishes."""
WHOLE_EPOCH = -1
"""Stands for all buckets of an epoch, in place of a label."""
_QUEUE = 50_000
"""Messages that are queued in the client at a time. Its own limits are off: beyond them
`produce_batch` would refuse messages."""
_RETRY_MS = 250
_REPEATS_AFTER_S = 0.8 * _RETRY_MS / 1000
"""The client retries a request after its back-off, which jitter shortens by at most a fifth.

An EndTxn that was answered sooner was sent once. One that was retried may have a duplicate in
flight, which would end the next transaction of the same producer epoch: this client does not bump
the epoch with each transaction (KIP-890).
"""

KafkaRecord = dict[str, Any]
"""A record to produce: its value, and its key if it has one."""


@dataclass(frozen=True)
class WriteScope:
    """Where a generation writes: the topic, the ledger, and the transactional ids it uses."""

    who: str
    cluster: Cluster
    ledger: str
    account: Account
    generation: int
    partitioner: str
    is_bulk_synchronous: bool = True
    """Does an epoch begin only when all slots have finished the previous one?"""

    def transactional_id(self, generation: int, slot: str) -> str:
        """The transactional id of a slot in a generation."""
        own = self.account
        return f"cutwater-{own.query_id}-{own.sink}-{own.topic}-{generation}-{slot}"

    @property
    def owner_id(self) -> str:
        """The transactional id under which every generation claims the account."""
        own = self.account
        return f"cutwater-{own.query_id}-{own.sink}-{own.topic}-owner"


def commit_rows(
    scope: WriteScope, slot: str, epoch: int, buckets: Mapping[int, Sequence[KafkaRecord]]
) -> None:
    """Write the rows of buckets, each bucket once per epoch; retry until the outcome is known.

    After any failure a new producer replaces the old one. Its start aborts or completes the old
    transaction, so the ledger then tells whether that was committed.
    """
    # By hand, not by tenacity: what follows a failure depends on it. A fenced producer must first
    # see whether another attempt has written the same buckets; only other failures wait.
    kafka = client_module()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        is_new = (os.getpid(), scope, slot) not in _writers
        began = time.monotonic()
        try:
            writer = _writer(scope, slot)
            began = time.monotonic()
            writer.commit_rows(epoch, buckets)
            return
        except kafka.KafkaException as error:
            cause = error.args[0]
            _writers.pop((os.getpid(), scope, slot), None)
        now = time.monotonic()
        is_overdue = now - began > scope.cluster.transaction_timeout_ms / 1000 and not is_down(
            cause
        )
        if is_hopeless(cause) or now > deadline:
            say = (scope.who, scope.cluster, scope.account.topic)
            raise ConnectorError(overdue(*say, epoch)) if is_overdue else failed(*say, cause)
        if is_overdue or not is_fenced(cause):
            time.sleep(0.5)
        elif is_new and _was_done_by_another(scope, slot, epoch, buckets):
            return


def fence(scope: WriteScope) -> None:
    """Claim the account and fence all earlier generations: none of them can commit any more."""
    account = scope.account
    with in_words(scope.who, scope.cluster, scope.ledger):
        _until_not_overtaken(lambda: _enter(scope))
        writers = _uncommitted_ledger(scope).writers(account)
        _end_all(scope, [each for each in writers if each[0] < scope.generation])


def revoke(scope: WriteScope, state: Literal["leaving", "gone"]) -> None:
    """Fence all generations of an account for good: none can claim it or commit any more.

    An account that is leaving still blocks other checkpoints. One that is gone does not, and its
    slots are deleted from the ledger.
    """
    _until_not_overtaken(lambda: _enter_state(scope, state))
    found = _read_all(scope)
    _end_all(scope, found.writers(scope.account))
    if state == "gone":
        _write_notes(scope, {slot_key(scope.account, s): None for s in found.slots(scope.account)})


def _enter_state(scope: WriteScope, state: str) -> None:
    """Write the state of an account, with a generation above those of all its runs."""
    last_error = LastError()
    with last_error.explaining():
        producer = _producer(scope, scope.owner_id, last_error)
        newest = _read_all(scope).generation(scope.account)
        _commit_owner(scope, producer, {"generation": newest + 1, "state": state})


def _until_not_overtaken(enter: Callable[[], None]) -> None:
    """Retry writing the owner of an account while other producers fence this one."""
    kafka = client_module()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return enter()
        except kafka.KafkaException as error:
            if not is_fenced(error.args[0]) or time.monotonic() > deadline:
                raise


def _enter(scope: WriteScope) -> None:
    """Write this generation; raises if a newer one is in the ledger or fences this producer."""
    last_error = LastError()
    with last_error.explaining():
        producer = _producer(scope, scope.owner_id, last_error)
        _uncommitted_ledger(scope)
        topic = topics_of(scope.cluster).find(scope.account.topic)
        record = {"generation": scope.generation, "topic_id": topic.identity if topic else ""}
        _commit_owner(scope, producer, record)


def _commit_owner(scope: WriteScope, producer: Any, record: Mapping[str, Any]) -> None:
    owner = msgspec.json.encode({"format": KAFKA_LEDGER_FORMAT, **record})
    producer.begin_transaction()
    producer.produce(scope.ledger, owner, owner_key(scope.account), 0)
    producer.commit_transaction(_CALL_S)


def _uncommitted_ledger(scope: WriteScope) -> KafkaLedger:
    """The ledger with uncommitted entries; raises `FencedError` if it has a newer generation."""
    found = _read_all(scope)
    _refuse_if_newer(scope, found)
    return found


def _read_all(scope: WriteScope) -> KafkaLedger:
    return KafkaLedger(scope.cluster, scope.ledger, scope.who, is_committed=False).read()


def _refuse_if_newer(scope: WriteScope, ledger: KafkaLedger) -> None:
    newest = ledger.generation(scope.account)
    if newest > scope.generation or ledger.is_out(scope.account):
        raise _taken_over(scope, newest)


def _end_all(scope: WriteScope, writers: Sequence[tuple[int, str]]) -> None:
    """Abort the open transactions of writers and fence them, then delete their announcements."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: _end(scope, *each), writers))
    _write_notes(scope, {writer_key(scope.account, *each): None for each in writers})


def _end(scope: WriteScope, generation: int, slot: str) -> None:
    """Abort the open transaction of an id; earlier producers with this id are fenced."""
    _producer(scope, scope.transactional_id(generation, slot), LastError())


def _write_notes(scope: WriteScope, notes: Mapping[bytes, bytes | None]) -> None:
    """Write to the ledger without a transaction; a duplicate is harmless."""
    kafka = client_module()
    last_error = LastError()
    settings = scope.cluster.client(
        acks="all",
        message_timeout_ms=_CALL_S * 1000,
        error_cb=last_error,
        on_delivery=last_error.delivered,
    )
    producer = kafka.Producer(settings)
    for key, value in notes.items():
        producer.produce(scope.ledger, value, key, 0)
    producer.flush()
    if last_error.failed:
        raise kafka.KafkaException(last_error.or_else(last_error.failed))


def _producer(scope: WriteScope, transactional_id: str, last_error: LastError) -> Any:
    producer = client_module().Producer(
        scope.cluster.client(
            transactional_id=transactional_id,
            transaction_timeout_ms=scope.cluster.transaction_timeout_ms,
            retry_backoff_ms=_RETRY_MS,
            retry_backoff_max_ms=4 * _RETRY_MS,
            partitioner=scope.partitioner,
            queue_buffering_max_messages=0,
            queue_buffering_max_kbytes=2147483647,
            delivery_report_only_error=True,
            on_delivery=last_error.delivered,
            error_cb=last_error,
        )
    )
    producer.list_topics(scope.ledger, _CALL_S)  # else init polls for a broker every half second
    producer.init_transactions(_CALL_S)
    return producer


def _commit(producer: Any) -> bool:
    """Commit a transaction; True if EndTxn may have been sent twice: replace the producer then."""
    producer.flush()
    began = time.monotonic()
    producer.commit_transaction(_CALL_S)
    return time.monotonic() - began > _REPEATS_AFTER_S


class _Writer:
    """The newest producer of a slot, with the ledger's slots in memory."""

    def __init__(self, scope: WriteScope, slot: str) -> None:
        self._scope = scope
        self._slot = slot
        self._last_error = LastError()
        with self._last_error.explaining():
            self._begin()

    def _begin(self) -> None:
        scope, slot = self._scope, self._slot
        own_id = scope.transactional_id(scope.generation, slot)
        self._producer = _producer(scope, own_id, self._last_error)
        self.is_used_up = False
        ledger = _ledger(scope)
        if (scope.generation, slot) not in ledger.writers(scope.account):
            self._producer.begin_transaction()
            self._note(writer_key(scope.account, scope.generation, slot), b"{}")
            if _commit(self._producer):
                self._producer = _producer(scope, own_id, self._last_error)
        ledger.read()
        if ledger.generation(scope.account) != scope.generation:
            raise _taken_over(scope, ledger.generation(scope.account))
        self._slots = ledger.slots(scope.account)

    def commit_rows(self, epoch: int, buckets: Mapping[int, Sequence[KafkaRecord]]) -> None:
        """Write the missing buckets and their ledger entry, atomically."""
        done = _done(self._slots, self._slot, epoch, buckets, self._scope)
        missing = {label: messages for label, messages in buckets.items() if label not in done}
        if not missing:
            return
        own = self._slots.get(self._slot)
        slot = Slot(
            self._scope.generation,
            epoch,
            sorted({*missing, *(own.buckets if own and own.epoch == epoch else ())}),
            (own.rows if own else 0) + sum(map(len, missing.values())),
        )
        with self._last_error.explaining():
            self._producer.begin_transaction()
            for messages in missing.values():
                self._produce(messages)
            self._producer.flush()  # the ledger entry comes last: until commit it hides later ones
            self._note(slot_key(self._scope.account, self._slot), msgspec.json.encode(slot))
            self.is_used_up = _commit(self._producer)
        self._slots[self._slot] = slot

    def _produce(self, messages: Sequence[KafkaRecord]) -> None:
        topic = self._scope.account.topic
        for start in range(0, len(messages), _QUEUE):
            batch = list(messages[start : start + _QUEUE])
            while len(self._producer) > _QUEUE:
                self._producer.poll(0.01)
            if self._producer.produce_batch(topic, batch) < len(batch):
                refused = next(m["_error"] for m in batch if "_error" in m)
                raise client_module().KafkaException(refused)

    def _note(self, key: bytes, value: bytes) -> None:
        self._producer.produce(self._scope.ledger, value, key, 0)


_writers: dict[tuple[int, WriteScope, str], _Writer] = {}
"""Cached across epochs, per process: a producer does not survive a fork."""
_ledgers: dict[tuple[int, Any, str], KafkaLedger] = {}


def _writer(scope: WriteScope, slot: str) -> _Writer:
    key = os.getpid(), scope, slot
    if key not in _writers or _writers[key].is_used_up:
        for old in [k for k in _writers if k[1].account == scope.account and k[1] != scope]:
            del _writers[old]
        _writers[key] = _Writer(scope, slot)
    return _writers[key]


def _ledger(scope: WriteScope) -> KafkaLedger:
    key = os.getpid(), scope.cluster, scope.ledger
    if key not in _ledgers:
        _ledgers[key] = KafkaLedger(scope.cluster, scope.ledger, scope.who)
    return _ledgers[key]


def _done(
    slots: Mapping[str, Slot], slot: str, epoch: int, buckets: Mapping[int, Any], scope: WriteScope
) -> set[int]:
    """The buckets whose rows of an epoch are written.

    A slot writes epochs in order. That another slot is ahead says something about this one only if
    epochs are bulk-synchronous.
    """
    heard = (
        slots
        if scope.is_bulk_synchronous
        else {s: found for s, found in slots.items() if s == slot}
    )
    if any(found.epoch > epoch for found in heard.values()):
        return set(buckets)
    there = {label for found in slots.values() if found.epoch == epoch for label in found.buckets}
    if WHOLE_EPOCH in there:
        return set(buckets)
    if WHOLE_EPOCH in buckets and there:
        raise RefusedError(_released_early(scope, epoch))
    return there & set(buckets)


def _was_done_by_another(
    scope: WriteScope, slot: str, epoch: int, buckets: Mapping[int, Any]
) -> bool:
    """Wait for the attempt that fenced this one; True once all buckets are written.

    False after a timeout; raises `FencedError` if a newer generation has claimed the account.
    """
    ledger = _ledger(scope)
    deadline = time.monotonic() + _OTHER_S
    while time.monotonic() < deadline:
        _refuse_if_newer(scope, ledger.read(to_end=False))
        if len(_done(ledger.slots(scope.account), slot, epoch, buckets, scope)) == len(buckets):
            return True
        time.sleep(0.2)
    return False


def _taken_over(scope: WriteScope, newest: int) -> FencedError:
    return FencedError.because(
        f"{scope.who} wrote nothing to topic '{scope.account.topic}': generation {newest} has "
        f"taken over from generation {scope.generation}",
    )


def _released_early(scope: WriteScope, epoch: int) -> Problem:
    return Problem(
        "released-early",
        f"{scope.who}: some rows of epoch {epoch} are in topic '{scope.account.topic}' already, "
        "released early; publishing the whole epoch would duplicate them",
        "run with release='early' until that epoch is finished, then change the setting",
    )
