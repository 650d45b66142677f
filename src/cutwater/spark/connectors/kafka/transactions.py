"""Rows and their ledger in one transaction, once, whoever tries it and however often.

A slot has one transactional id for each generation. Whoever begins with an id ends what another
left open under it, and the other can commit no more; only then is the ledger read, so nobody can
add to what it says of this slot. From then on the ledger in memory is the ledger: it need not be
read again for the next epoch.

A run that takes over (`fence`) writes its generation first and then begins with every id that
earlier ones told of. A writer tells of its id before it reads the ledger. So an old writer either
reads the new generation, or told of its id early enough to be ended by it.

All generations are written under one transactional id, and in the same way: begin, read the
ledger, write. So generations only grow: a run that slept meanwhile reads that it is too late, or
can commit no more.
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
    FORMAT,
    Account,
    Ledger,
    Slot,
    owner_key,
    slot_key,
    writer_key,
)
from cutwater.spark.connectors.kafka.settings import Cluster, client_module

__all__ = ["DRIVER", "EVERY_LANE", "Desk", "Message", "fence", "put", "put_out"]

_PATIENCE_S = 120
"""How long an epoch is tried again: a broker is started anew in that time."""
_OTHER_S = 30
"""How long an attempt that was overtaken waits for the other to be done."""
_CALL_S = 30
DRIVER = "driver"
"""The slot of what the driver publishes."""
EVERY_LANE = -1
"""In the place of a lane: the whole epoch."""
_QUEUE = 50_000
_RETRY_MS = 250
_REPEATS_AFTER_S = 0.8 * _RETRY_MS / 1000
"""The client sends a request again after its back-off, which it shortens by a fifth at the most.

An EndTxn that was answered sooner was sent once. One that was sent again may have a twin on its
way, which would end the next transaction of the same producer epoch: this client asks for no new
one with each transaction (KIP-890).
"""

Message = dict[str, Any]
"""What is produced: its value, and its key if it has one."""


@dataclass(frozen=True)
class Desk:
    """Where a generation writes: whose rows go to which topic, and where that is noted."""

    who: str
    cluster: Cluster
    ledger: str
    account: Account
    generation: int
    partitioner: str
    is_in_lockstep: bool = True
    """Is an epoch begun only when all slots have finished the one before?"""

    def transactional_id(self, generation: int, slot: str) -> str:
        """The id under which a slot of a generation writes."""
        own = self.account
        return f"cutwater-{own.query_id}-{own.sink}-{own.topic}-{generation}-{slot}"

    @property
    def owner_id(self) -> str:
        """The id under which every generation takes over."""
        own = self.account
        return f"cutwater-{own.query_id}-{own.sink}-{own.topic}-owner"


def put(desk: Desk, slot: str, epoch: int, lanes: Mapping[int, Sequence[Message]]) -> None:
    """Write the rows of lanes, each lane once for an epoch; try until it is sure that they are.

    Whatever goes wrong, the producer is given up and a new one begins: that settles what became
    of the old one's transaction, and the ledger tells.
    """
    kafka = client_module()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        is_new = (os.getpid(), desk, slot) not in _writers
        began = time.monotonic()
        try:
            writer = _writer(desk, slot)
            began = time.monotonic()
            writer.put(epoch, lanes)
            return
        except kafka.KafkaException as error:
            cause = error.args[0]
            _writers.pop((os.getpid(), desk, slot), None)
        now = time.monotonic()
        is_overdue = now - began > desk.cluster.transaction_timeout_ms / 1000 and not is_down(cause)
        if is_hopeless(cause) or now > deadline:
            say = (desk.who, desk.cluster, desk.account.topic)
            raise ConnectorError(overdue(*say, epoch)) if is_overdue else failed(*say, cause)
        if is_overdue or not is_fenced(cause):
            time.sleep(0.5)
        elif is_new and _was_done_by_another(desk, slot, epoch, lanes):
            return


def fence(desk: Desk) -> None:
    """Take over from all earlier generations: none of them can commit anything any more."""
    account = desk.account
    with in_words(desk.who, desk.cluster, desk.ledger):
        _until_not_overtaken(lambda: _enter(desk))
        writers = _all_told(desk).writers(account)
        _end_all(desk, [each for each in writers if each[0] < desk.generation])


def put_out(desk: Desk, state: Literal["leaving", "gone"]) -> None:
    """Take an account from all its generations, for good: none can take it or commit any more.

    One that is leaving is still in the way of others; of one that is gone only that is known.
    """
    _until_not_overtaken(lambda: _enter_state(desk, state))
    found = _read_all(desk)
    _end_all(desk, found.writers(desk.account))
    if state == "gone":
        _write_notes(desk, {slot_key(desk.account, s): None for s in found.slots(desk.account)})


def _enter_state(desk: Desk, state: str) -> None:
    """Write what becomes of an account, in a generation that none of its runs has."""
    told = LastError()
    with told.explaining():
        producer = _producer(desk, desk.owner_id, told)
        newest = _read_all(desk).generation(desk.account)
        _commit_owner(desk, producer, {"generation": newest + 1, "state": state})


def _until_not_overtaken(enter: Callable[[], None]) -> None:
    """Write to who owns an account; one that was overtaken looks again who is newer."""
    kafka = client_module()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return enter()
        except kafka.KafkaException as error:
            if not is_fenced(error.args[0]) or time.monotonic() > deadline:
                raise


def _enter(desk: Desk) -> None:
    """Write this generation, unless a newer one is there or comes before it is committed."""
    told = LastError()
    with told.explaining():
        producer = _producer(desk, desk.owner_id, told)
        _all_told(desk)
        topic = topics_of(desk.cluster).find(desk.account.topic)
        said = {"generation": desk.generation, "topic_id": topic.identity if topic else ""}
        _commit_owner(desk, producer, said)


def _commit_owner(desk: Desk, producer: Any, said: Mapping[str, Any]) -> None:
    owner = msgspec.json.encode({"format": FORMAT, **said})
    producer.begin_transaction()
    producer.produce(desk.ledger, owner, owner_key(desk.account), 0)
    producer.commit_transaction(_CALL_S)


def _all_told(desk: Desk) -> Ledger:
    """The ledger, with what is not committed; refused if a newer generation is in it."""
    found = _read_all(desk)
    _refuse_if_newer(desk, found)
    return found


def _read_all(desk: Desk) -> Ledger:
    return Ledger(desk.cluster, desk.ledger, desk.who, is_committed=False).read()


def _refuse_if_newer(desk: Desk, ledger: Ledger) -> None:
    newest = ledger.generation(desk.account)
    if newest > desk.generation or ledger.is_out(desk.account):
        raise _taken_over(desk, newest)


def _end_all(desk: Desk, writers: Sequence[tuple[int, str]]) -> None:
    """End what writers have open; the ledger need not tell of them any more."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: _end(desk, *each), writers))
    _write_notes(desk, {writer_key(desk.account, *each): None for each in writers})


def _end(desk: Desk, generation: int, slot: str) -> None:
    """End what is open under an id; who began with it before can commit no more."""
    _producer(desk, desk.transactional_id(generation, slot), LastError())


def _write_notes(desk: Desk, notes: Mapping[bytes, bytes | None]) -> None:
    """Write to the ledger, in no transaction; a note that comes twice says no more."""
    kafka = client_module()
    told = LastError()
    settings = desk.cluster.client(
        acks="all",
        message_timeout_ms=_CALL_S * 1000,
        error_cb=told,
        on_delivery=told.delivered,
    )
    producer = kafka.Producer(settings)
    for key, value in notes.items():
        producer.produce(desk.ledger, value, key, 0)
    producer.flush()
    if told.failed:
        raise kafka.KafkaException(told.or_else(told.failed))


def _producer(desk: Desk, transactional_id: str, told: LastError) -> Any:
    producer = client_module().Producer(
        desk.cluster.client(
            transactional_id=transactional_id,
            transaction_timeout_ms=desk.cluster.transaction_timeout_ms,
            retry_backoff_ms=_RETRY_MS,
            retry_backoff_max_ms=4 * _RETRY_MS,
            partitioner=desk.partitioner,
            queue_buffering_max_messages=0,
            queue_buffering_max_kbytes=2147483647,
            delivery_report_only_error=True,
            on_delivery=told.delivered,
            error_cb=told,
        )
    )
    producer.list_topics(desk.ledger, _CALL_S)  # unconnected, it would look again in half a second
    producer.init_transactions(_CALL_S)
    return producer


def _commit(producer: Any) -> bool:
    """Commit a transaction; could its end have been sent twice? Then the producer is used up."""
    producer.flush()
    began = time.monotonic()
    producer.commit_transaction(_CALL_S)
    return time.monotonic() - began > _REPEATS_AFTER_S


class _Writer:
    """The producer of a slot that began last, and what the ledger says."""

    def __init__(self, desk: Desk, slot: str) -> None:
        self._desk = desk
        self._slot = slot
        self._told = LastError()
        with self._told.explaining():
            self._begin()

    def _begin(self) -> None:
        desk, slot = self._desk, self._slot
        own_id = desk.transactional_id(desk.generation, slot)
        self._producer = _producer(desk, own_id, self._told)
        self.is_used_up = False
        ledger = _ledger(desk)
        if (desk.generation, slot) not in ledger.writers(desk.account):
            self._producer.begin_transaction()
            self._note(writer_key(desk.account, desk.generation, slot), b"{}")
            if _commit(self._producer):
                self._producer = _producer(desk, own_id, self._told)
        ledger.read()
        if ledger.generation(desk.account) != desk.generation:
            raise _taken_over(desk, ledger.generation(desk.account))
        self._slots = ledger.slots(desk.account)

    def put(self, epoch: int, lanes: Mapping[int, Sequence[Message]]) -> None:
        """Write the lanes that are not written yet, and that they are, or nothing."""
        done = _done(self._slots, self._slot, epoch, lanes, self._desk)
        missing = {label: messages for label, messages in lanes.items() if label not in done}
        if not missing:
            return
        own = self._slots.get(self._slot)
        slot = Slot(
            self._desk.generation,
            epoch,
            sorted({*missing, *(own.lanes if own and own.epoch == epoch else ())}),
            (own.rows if own else 0) + sum(map(len, missing.values())),
        )
        with self._told.explaining():
            self._producer.begin_transaction()
            for messages in missing.values():
                self._produce(messages)
            self._producer.flush()  # an open transaction hides the ledger from others: not for long
            self._note(slot_key(self._desk.account, self._slot), msgspec.json.encode(slot))
            self.is_used_up = _commit(self._producer)
        self._slots[self._slot] = slot

    def _produce(self, messages: Sequence[Message]) -> None:
        topic = self._desk.account.topic
        for start in range(0, len(messages), _QUEUE):
            batch = list(messages[start : start + _QUEUE])
            while len(self._producer) > _QUEUE:
                self._producer.poll(0.01)
            if self._producer.produce_batch(topic, batch) < len(batch):
                refused = next(m["_error"] for m in batch if "_error" in m)
                raise client_module().KafkaException(refused)

    def _note(self, key: bytes, value: bytes) -> None:
        self._producer.produce(self._desk.ledger, value, key, 0)


_writers: dict[tuple[int, Desk, str], _Writer] = {}
"""Kept for the next epoch, by process: a producer does not survive a fork."""
_ledgers: dict[tuple[int, Any, str], Ledger] = {}


def _writer(desk: Desk, slot: str) -> _Writer:
    key = os.getpid(), desk, slot
    if key not in _writers or _writers[key].is_used_up:
        for old in [k for k in _writers if k[1].account == desk.account and k[1] != desk]:
            del _writers[old]
        _writers[key] = _Writer(desk, slot)
    return _writers[key]


def _ledger(desk: Desk) -> Ledger:
    key = os.getpid(), desk.cluster, desk.ledger
    if key not in _ledgers:
        _ledgers[key] = Ledger(desk.cluster, desk.ledger, desk.who)
    return _ledgers[key]


def _done(
    slots: Mapping[str, Slot], slot: str, epoch: int, lanes: Mapping[int, Any], desk: Desk
) -> set[int]:
    """The lanes of a slot that have their rows of an epoch.

    A slot goes from epoch to epoch. Another one that is further says something of this one only if
    they go together.
    """
    heard = slots if desk.is_in_lockstep else {s: found for s, found in slots.items() if s == slot}
    if any(found.epoch > epoch for found in heard.values()):
        return set(lanes)
    there = {label for found in slots.values() if found.epoch == epoch for label in found.lanes}
    if EVERY_LANE in there:
        return set(lanes)
    if EVERY_LANE in lanes and there:
        raise RefusedError(_released_early(desk, epoch))
    return there & set(lanes)


def _was_done_by_another(desk: Desk, slot: str, epoch: int, lanes: Mapping[int, Any]) -> bool:
    """Wait for the attempt that overtook this one; True when it has written all lanes."""
    ledger = _ledger(desk)
    deadline = time.monotonic() + _OTHER_S
    while time.monotonic() < deadline:
        _refuse_if_newer(desk, ledger.read(to_end=False))
        if len(_done(ledger.slots(desk.account), slot, epoch, lanes, desk)) == len(lanes):
            return True
        time.sleep(0.2)
    return False


def _taken_over(desk: Desk, newest: int) -> FencedError:
    return FencedError.because(
        f"{desk.who} wrote nothing to topic '{desk.account.topic}': generation {newest} has taken "
        f"over from generation {desk.generation}",
    )


def _released_early(desk: Desk, epoch: int) -> Problem:
    return Problem(
        "released-early",
        f"{desk.who}: some rows of epoch {epoch} are in topic '{desk.account.topic}' already, by "
        "release='early'; the whole epoch would double them",
        "run with release='early' until that epoch is finished, then change it",
    )
