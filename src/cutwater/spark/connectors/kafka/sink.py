"""A Kafka topic as a sink: rows and ledger are committed in one transaction.

::

    topic                    one message per row: a line of JSON without its newline
    cutwater-ledger          the progress of each slot, committed with the rows (`kafka.ledger`)
    checkpoint/staging/sink  with release="commit": what tasks staged and the driver has yet to send

Readers of committed messages (``isolation.level=read_committed``) see every row once.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
from pyspark import TaskContext

from cutwater.annotations import fields_of, typename
from cutwater.errors import Problem, RefusedError, many
from cutwater.spark.connectors.base.merging import in_order
from cutwater.spark.connectors.base.refusals import (
    ANOTHER_CHECKPOINT,
    OUTPUT_AHEAD,
    TAKE_OVER,
    damaged_staging,
)
from cutwater.spark.connectors.base.sink import (
    EXACTLY_ONCE,
    BucketRows,
    Claim,
    Guarantee,
    Receipt,
    Release,
    SinkConnector,
    fenced,
)
from cutwater.spark.connectors.kafka.checks import topics_of
from cutwater.spark.connectors.kafka.errors import in_words, patiently
from cutwater.spark.connectors.kafka.ledger import Account, KafkaLedger
from cutwater.spark.connectors.kafka.settings import Cluster, topic_problems
from cutwater.spark.connectors.kafka.transactions import (
    DRIVER,
    WHOLE_EPOCH,
    KafkaRecord,
    WriteScope,
    commit_rows,
    fence,
    revoke,
)
from cutwater.spark.storage.durable import create_file, sync_file

__all__ = ["LEDGER_SETTINGS", "KafkaTopic", "StagedMessages", "keys_of"]

LEDGER_SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.bytes": str(8 << 20),
    "segment.ms": str(60 * 60 * 1000),
}


@dataclass(frozen=True)
class StagedMessages(Receipt):
    """The file that a task attempt staged for the driver to send."""

    path: str
    last_order: str


@dataclass(frozen=True)
class KafkaTopic(SinkConnector):
    """A Kafka topic; each row is a message of JSON.

    Parameters
    ----------
    topic, servers
        Where the rows go: ``servers="kafka-1:9092,kafka-2:9092"``.
    key
        The field that is the key of a message: rows with the same key are in one partition, in
        order. Text is encoded as UTF-8, anything else as JSON. None: no keys, and any partition.
    release
        ``"commit"``: an epoch becomes visible when all of it is done. ``"early"``: the rows of each
        task become visible when the task is done.
    settings
        Settings of the client (librdkafka) such as ``security.protocol`` or ``compression.type``.
    password_env, password_file
        Where the password (``sasl.password``) is stored: an environment variable or a file.
    create, partitions
        Whether to create the topic if it does not exist, and with how many partitions.
    ledger
        The topic that stores the progress of sinks; flows may share it.
    """

    topic: str
    servers: str
    key: str | None = None
    release: Release = "commit"
    settings: Mapping[str, Any] = field(default_factory=dict)
    password_env: str | None = None
    password_file: str | None = None
    create: bool = False
    partitions: int = 1
    ledger: str = "cutwater-ledger"
    accepts: Literal["lines"] = field(default="lines", init=False)

    @property
    def cluster(self) -> Cluster:
        """How the brokers are reached."""
        return Cluster.of(self.servers, self.settings, self.password_env, self.password_file)

    @property
    def location(self) -> str:
        """The topic and the cluster."""
        return f"topic '{self.topic}' of {self.servers}"

    @property
    def ledger_location(self) -> str:
        """The topic of the ledger."""
        return f"topic '{self.ledger}' of {self.servers}"

    @property
    def releases(self) -> tuple[Release, ...]:
        return "commit", "early"

    def guarantee(self) -> Guarantee:
        """Exactly-once, for readers with read_committed."""
        return Guarantee(
            EXACTLY_ONCE,
            "commits rows and ledger in one transaction",
            f"readers of topic '{self.topic}' use isolation.level=read_committed",
        )

    # --- before it starts ------------------------------------------------------------------------

    def problems(self, name: str, record: Any) -> Iterator[Problem]:
        """What is wrong with the settings."""
        who = f"sink '{name}'"
        yield from self.cluster.problems(who)
        yield from topic_problems(who, "topic", self.topic)
        yield from topic_problems(who, "ledger", self.ledger)
        if self.release not in ("commit", "early"):
            yield Problem(
                "unknown-release",
                f"{who} has release={self.release!r}; it must be 'commit' or 'early'",
                "use one of the two",
            )
        fields = fields_of(record)
        if self.key is not None and fields is not None and self.key not in fields:
            yield Problem(
                "unknown-field",
                f"{who} has key={self.key!r}, which is not a field of {typename(record)}",
                f"it has: {', '.join(fields)}" if fields else "leave key out",
            )
        if self.partitions < 1:
            yield Problem(
                "no-partitions",
                f"{who} has partitions={self.partitions}; a topic has at least one",
                "leave partitions out, or make it larger",
            )
        if self.ledger == self.topic:
            yield Problem(
                "ledger-among-rows",
                f"{who} has '{self.topic}' as its topic and as its ledger; readers of the rows "
                "would see the ledger",
                "leave ledger out, or name another topic",
            )

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        """Why a checkpoint must not write to the topic; waits for brokers that are down."""
        topics = topics_of(self.cluster)
        patiently(f"sink '{name}'", self.cluster, self.topic, lambda: topics.find(self.topic))
        with self._speaking(name):
            return list(self._hindrances(name, query_id, next_epoch))

    def _hindrances(self, name: str, query_id: str | None, next_epoch: int) -> Iterator[Problem]:
        topics = topics_of(self.cluster)
        if topics.find(self.topic) is None and not self.create:
            yield Problem(
                "unknown-topic",
                f"sink '{name}' goes to topic '{self.topic}', which {self.servers} does not have",
                "create it, or let the run create it: create=True, partitions=N",
            )
        if topics.find(self.ledger) is None:
            return
        policy = topics.settings(self.ledger).get("cleanup.policy", "compact")
        if policy != "compact":
            yield Problem(
                "ledger-forgets",
                f"sink '{name}': the ledger '{self.ledger}' has cleanup.policy={policy}; it must "
                "keep the newest record of every key forever",
                "set cleanup.policy=compact for it",
            )
        uncommitted = self._look(name, is_committed=False)
        for account, owner in uncommitted.owners(self.topic).items():
            if account.query_id == query_id and account.sink != name:
                yield _other_sink(name, self.topic, account.sink)
            elif _is_in_the_way(account, owner, name, query_id):
                yield _other_checkpoint(name, self.topic, self.ledger, owner["generation"])
        if query_id is not None:
            newest = self._newest_epoch(name, query_id, next_epoch, uncommitted)
            if newest >= next_epoch:
                yield _ahead(name, self.topic, newest, next_epoch)

    def _newest_epoch(self, name: str, query_id: str, next_epoch: int, ledger: KafkaLedger) -> int:
        """The newest epoch that readers see or will see; exact if it is ahead of the checkpoint.

        `ledger` includes uncommitted entries. An open transaction of another flow may hide
        committed ones, so this waits for it, but only if `ledger` is ahead.
        """
        account = Account(self.topic, name, query_id)
        if ledger.newest_epoch(account) < next_epoch:
            return ledger.newest_epoch(account)
        return self._look(name, to_end=True).newest_epoch(account)

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        """By the slots of the ledger; -1 if the topic was deleted or recreated since.

        Uncommitted entries count: they may be hidden only by a transaction of another flow.
        """
        account = Account(self.topic, name, query_id)
        with self._speaking(name):
            ledger = self._look(name, is_committed=False)
            owner = ledger.owners(self.topic).get(account)
            if owner is None or "state" in owner:
                return None
            found = topics_of(self.cluster).find(self.topic)
        is_same = found is not None and owner.get("topic_id", found.identity) == found.identity
        return ledger.newest_epoch(account) if is_same else -1

    def generation(self, name: str) -> int:
        """The newest generation that claimed the topic; 0 if none has."""
        with self._speaking(name):
            owners = self._look(name, is_committed=False).owners(self.topic)
        found = (
            owner["generation"]
            for account, owner in owners.items()
            if account.sink == name and owner.get("state") != "gone"
        )
        return max(found, default=0)

    def claim(self, claim: Claim) -> None:
        """Fence all earlier generations, create missing topics, and delete what was staged."""
        with self._speaking(claim.sink):
            topics = topics_of(self.cluster)
            if topics.find(self.ledger) is None:
                topics.make(self.ledger, 1, LEDGER_SETTINGS)
            if self.create and topics.find(self.topic) is None:
                topics.make(self.topic, self.partitions, {})
        fence(self._scope(claim))
        shutil.rmtree(claim.staging, ignore_errors=True)
        if self.release == "commit":
            claim.staging.mkdir(parents=True, mode=0o700)

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        """Fence the other checkpoints for good, and delete all messages if not `keep`.

        Raises `RefusedError` if messages are to be deleted and the topic is compacted.
        """
        with self._speaking(claim.sink):
            topics = topics_of(self.cluster)
            is_emptied = not keep and topics.find(self.topic) is not None
            policy = topics.settings(self.topic).get("cleanup.policy") if is_emptied else None
            if policy and "delete" not in policy:
                raise RefusedError(_never_deleted(claim.sink, self.topic, policy))
            fence(self._scope(claim))
            owners = self._look(claim.sink, is_committed=False).owners(self.topic)
            others = [
                replace(self._scope(claim), account=account)
                for account, owner in owners.items()
                if _is_in_the_way(account, owner, claim.sink, claim.query_id)
            ]
            for scope in others:
                revoke(scope, "leaving")
            if others and is_emptied:
                topics.empty(self.topic)
            for scope in others:
                revoke(scope, "gone")

    # --- while it runs ---------------------------------------------------------------------------

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Receipt:
        """In a task: commit its rows if they are released early, else stage them."""
        if self.release == "early":
            found = {bucket.label: self._messages(bucket.values) for bucket in buckets}
            commit_rows(self._scope(claim), _slot_of_task(buckets), epoch, found)
            return Receipt(claim.sink)
        path = claim.staging / f"{epoch}-{uuid.uuid4().hex}.jsonl"
        with create_file(path) as file:
            file.writelines(in_order(buckets))
            sync_file(file)
        return StagedMessages(
            claim.sink, str(path), max(bucket.last_order for bucket in buckets).hex()
        )

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        """In the driver: send what tasks staged, the whole epoch in one transaction."""
        staged = [receipt for receipt in receipts if isinstance(receipt, StagedMessages)]
        if not staged:
            return
        staged.sort(key=lambda part: part.last_order)
        paths = [Path(part.path) for part in staged]
        try:
            messages = [m for path in paths for m in self._staged(claim.sink, path)]
        except FileNotFoundError:
            newest = self.generation(claim.sink)
            if newest == claim.generation:
                raise
            raise fenced(epoch, self.location, claim, newest) from None  # the newer run deleted it
        commit_rows(self._scope(claim), DRIVER, epoch, {WHOLE_EPOCH: messages})
        for path in paths:
            path.unlink(missing_ok=True)

    def released(self, claim: Claim, epoch: int) -> str | None:
        """By the ledger, read to its end: rows and slots are committed together."""
        account = Account(self.topic, claim.sink, claim.query_id)
        with self._speaking(claim.sink):
            slots = self._look(claim.sink, to_end=True).slots(account)
        buckets = {
            label for slot in slots.values() if slot.epoch >= epoch for label in slot.buckets
        }
        if not buckets:
            return None
        is_whole = WHOLE_EPOCH in buckets
        return "all of it" if is_whole else f"the rows of {many(len(buckets), 'bucket')}"

    def row_count(self, claim: Claim) -> int:
        """The number of rows of this checkpoint that readers see."""
        account = Account(self.topic, claim.sink, claim.query_id)
        with self._speaking(claim.sink):
            ledger = self._look(claim.sink, to_end=True)
            return sum(slot.rows for slot in ledger.slots(account).values())

    def _staged(self, sink: str, path: Path) -> list[KafkaRecord]:
        try:
            return self._messages(_lines(path))
        except (ValueError, RecursionError) as error:
            raise damaged_staging(sink, path, error) from None

    def _messages(self, lines: Iterable[bytes]) -> list[KafkaRecord]:
        values = [line[:-1] for line in lines]
        if self.key is None:
            return [{"value": value} for value in values]
        return [
            {"value": value, "key": key}
            for value, key in zip(values, keys_of(values, self.key), strict=True)
        ]

    def _scope(self, claim: Claim) -> WriteScope:
        return WriteScope(
            f"sink '{claim.sink}'",
            self.cluster,
            self.ledger,
            Account(self.topic, claim.sink, claim.query_id),
            claim.generation,
            "murmur2_random" if self.key is None else "murmur2",
            claim.is_bulk_synchronous,
        )

    def _look(self, name: str, is_committed: bool = True, to_end: bool = False) -> KafkaLedger:
        """The ledger as it is now; `to_end` waits for what an open transaction hides.

        From uncommitted entries nothing is hidden, so they are always read to the end.
        """
        ledger = KafkaLedger(self.cluster, self.ledger, f"sink '{name}'", is_committed)
        is_there = topics_of(self.cluster).find(self.ledger) is not None
        return ledger.read(to_end=to_end or not is_committed) if is_there else ledger

    def _speaking(self, name: str) -> Any:
        return in_words(f"sink '{name}'", self.cluster, self.topic)


def keys_of(values: Sequence[bytes], name: str) -> list[bytes | None]:
    """The keys of messages: a field as UTF-8 if it is text, else as JSON; null is no key."""
    fields = [("key", msgspec.Raw, msgspec.Raw(b"null"))]
    keyed: Any = msgspec.defstruct("Keyed", fields, rename={"key": name})
    decode = msgspec.json.Decoder(keyed).decode
    return [_key(bytes(decode(value).key)) for value in values]


def _key(raw: bytes) -> bytes | None:
    if raw == b"null":
        return None
    return msgspec.json.decode(raw, type=str).encode() if raw[:1] == b'"' else raw


def _slot_of_task(buckets: Sequence[BucketRows]) -> str:
    """The slot of a task: shared by all its attempts, and unique among tasks."""
    context = TaskContext.get()
    return (
        f"{context.partitionId()}"
        if context
        else f"bucket-{min(bucket.label for bucket in buckets)}"
    )


def _is_in_the_way(
    account: Account, owner: Mapping[str, Any], sink: str, query_id: str | None
) -> bool:
    """Does it block this sink: another checkpoint's account that was not taken over for good?"""
    is_anothers = account.sink == sink and account.query_id != query_id
    return is_anothers and owner.get("state") != "gone"


def _lines(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        lines = file.readlines()
    if lines and not lines[-1].endswith(b"\n"):
        raise ValueError("its last line is cut")
    return lines


def _other_sink(sink: str, topic: str, owner: str) -> Problem:
    return Problem(
        "another-sink",
        f"sink '{sink}' goes to topic '{topic}', which belongs to sink '{owner}' of the same "
        "checkpoint",
        f"bind '{sink}' to the topic it had before, or to another",
    )


def _other_checkpoint(sink: str, topic: str, ledger: str, generation: int) -> Problem:
    return Problem(
        ANOTHER_CHECKPOINT,
        f"sink '{sink}' goes to topic '{topic}', which belongs to another checkpoint (generation "
        f"{generation} in the ledger '{ledger}'); this checkpoint counts epochs from the start, "
        "so its rows would be duplicated",
        "run with the checkpoint that wrote it; or, if that was deleted, use a new topic, or "
        f"{TAKE_OVER}",
    )


def _never_deleted(sink: str, topic: str, policy: str) -> Problem:
    return Problem(
        "compacted-topic",
        f"sink '{sink}': fresh deletes all messages of topic '{topic}', which has "
        f"cleanup.policy={policy}, so none can be deleted",
        "take it over with --adopt, or use a new topic",
    )


def _ahead(sink: str, topic: str, newest: int, next_epoch: int) -> Problem:
    return Problem(
        OUTPUT_AHEAD,
        f"sink '{sink}': topic '{topic}' has epoch {newest}, but the checkpoint knows only the "
        f"epochs before {next_epoch}; the checkpoint is older than its output",
        "restore the newest checkpoint, or use a new topic and a new checkpoint",
    )
