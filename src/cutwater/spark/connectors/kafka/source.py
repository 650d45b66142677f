"""A Kafka topic as a source: each message is a record of JSON, its position is its offset.

A chunk is a range of offsets of one partition. It never extends beyond the last stable offset, so
it holds the same messages whenever it is read.

A source that begins after the latest message first logs these offsets, as chunks with an end but no
start, which read nothing. Otherwise a run that ends before its first message would leave no trace,
and the next run would skip what arrived in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from cutwater.errors import ConnectorError, InputError, Problem
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.defaults import filler_of
from cutwater.spark.connectors.base.long_records import MAX_RECORD_BYTES, RUN_BYTES, LongRecord
from cutwater.spark.connectors.base.source import (
    BadRecord,
    Chunk,
    Planner,
    RawBatch,
    RecordReader,
    Replay,
    SourceConnector,
)
from cutwater.spark.connectors.kafka.checks import Topic, topics_of
from cutwater.spark.connectors.kafka.errors import (
    PATIENCE_S,
    failed,
    in_words,
    is_hopeless,
    patiently,
)
from cutwater.spark.connectors.kafka.polling import polled
from cutwater.spark.connectors.kafka.settings import Cluster, client_module, topic_problems

__all__ = ["KAFKA_BATCH_ROWS", "KafkaMessages"]

_T = TypeVar("_T")

KAFKA_BATCH_ROWS = 20_000
_SAMPLE_ROWS = 200
"""Rows whose size is measured to estimate that of a row; a smaller backlog is not sampled."""
_SAMPLE_EVERY = 100
"""Polls that share an estimate: a sample needs a consumer of its own, which takes about 20 ms."""


@dataclass(frozen=True)
class KafkaMessages(SourceConnector):
    """The committed messages of a topic, each a record of JSON.

    Parameters
    ----------
    topic, servers
        The topic and its brokers: ``servers="kafka-1:9092,kafka-2:9092"``.
    begin
        Where a new checkpoint begins: with the ``"earliest"`` retained message, or after the
        ``"latest"``. Partitions that are added later are always read from their beginning.
    max_rows_per_epoch, max_bytes_per_epoch
        The most that one epoch reads from all partitions; bytes are estimated from a sample.
    max_record_bytes
        A message with a larger value is a bad record.
    idle_after
        Seconds without input after which the source no longer holds back the watermark of others,
        and a partition no longer that of the source.
    settings
        Settings of the client (librdkafka), such as ``security.protocol``.
    password_env, password_file
        Where the password (``sasl.password``) is stored: an environment variable or a file.
    """

    topic: str
    servers: str
    begin: Literal["earliest", "latest"] = "earliest"
    max_rows_per_epoch: int = 100_000
    max_bytes_per_epoch: int = 32 << 20
    max_record_bytes: int = MAX_RECORD_BYTES
    idle_after: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    password_env: str | None = None
    password_file: str | None = None

    kind: ClassVar[str] = "Kafka"
    partitions_noun: ClassVar[str] = "partitions"
    unit: ClassVar[str] = "rows"
    min_task_weight: ClassVar[int] = 2_000
    has_partitions: ClassVar[bool] = True

    @property
    def cluster(self) -> Cluster:
        """How the brokers are reached."""
        return Cluster.of(self.servers, self.settings, self.password_env, self.password_file)

    # --- before anything runs --------------------------------------------------------------------

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        yield from self.cluster.problems(f"source '{name}'")
        yield from topic_problems(f"source '{name}'", "topic", self.topic)
        if self.begin not in ("earliest", "latest"):
            yield Problem(
                "unknown-begin",
                f"source '{name}' has begin={self.begin!r}; it must be 'earliest' or 'latest'",
                "use one of the two",
            )
        for setting in ("max_rows_per_epoch", "max_bytes_per_epoch", "max_record_bytes"):
            if getattr(self, setting) < 1:
                yield Problem(
                    "no-progress",
                    f"{setting} of source '{name}' is {getattr(self, setting)}; it must be at "
                    "least 1",
                    f"leave {setting} out, or make it larger",
                )

    def check(self, name: str, step: Source) -> Iterator[Problem]:
        """Waits for brokers that are down."""
        who, cluster = f"source '{name}'", self.cluster
        found = patiently(who, cluster, self.topic, lambda: topics_of(cluster).find(self.topic))
        if found is None:
            yield Problem(
                "unknown-topic",
                f"{who} reads topic '{self.topic}', which {self.servers} does not have",
                "create it, or correct the name",
            )

    def replay(self) -> Replay:
        """Replayable unless the topic is compacted: compaction deletes messages of old epochs."""
        with in_words(self._who, self.cluster, self.topic):
            policy = topics_of(self.cluster).settings(self.topic).get("cleanup.policy", "")
        if "compact" in policy:
            return Replay(
                False,
                f"topic '{self.topic}' has cleanup.policy={policy}: a message that a newer one of "
                "its key replaced may be deleted when an epoch is replayed",
                remedy="as a topic with cleanup.policy=delete",
            )
        return Replay(
            True,
            "the checkpoint says which offsets of which partition each epoch read",
            f"topic '{self.topic}' keeps messages until the epoch that reads them is finished; "
            "expired ones are refused",
        )

    @property
    def _who(self) -> str:
        return f"the source of topic '{self.topic}'"

    # --- planning --------------------------------------------------------------------------------

    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        return _Positions(self)

    def weight(self, chunk: Chunk) -> int:
        return self.measure(chunk)

    def cut(self, chunk: Chunk, amount: int) -> Any:
        return chunk.end if chunk.is_beginning else super().cut(chunk, amount)

    @classmethod
    def merge(cls, before: Chunk, after: Chunk) -> Chunk:
        """Keeps ``began``: where partitions began that have had no message yet."""
        began = before.about.get("began", {}) | after.about.get("began", {})
        start = after.start if before.is_beginning else before.start
        about = {**after.about, "began": began} if began else after.about
        return replace(after, start=start, about=about)

    @classmethod
    def measure(cls, chunk: Chunk) -> int:
        return 0 if chunk.is_beginning else super().measure(chunk)

    @classmethod
    def partition_name(cls, chunk: Chunk) -> str:
        return f"{chunk.about.get('topic', '')} {chunk.number}"

    # --- reading ---------------------------------------------------------------------------------

    def reader(self, tp: Any) -> RecordReader:
        return _Messages(self, tp)

    def location(self, chunk: Chunk, position: int) -> str:
        return f"topic '{self.topic}', partition {chunk.number}, offset {position}"

    def coordinates(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"topic": self.topic, "partition": chunk.number, "offset": position}


class _Positions(Planner):
    """The position of each partition, and how far it can be read."""

    def __init__(self, source: KafkaMessages) -> None:
        self._source = source
        self._identity: str | None = None
        self._next: dict[int, int] = {}
        self._until: dict[int, int] | None = None
        self._ends_before: dict[int, int] = {}
        self._is_fresh = True
        self._row_bytes = 0.0
        self._takes = 0

    def advance(self, chunk: Chunk) -> None:
        self._identity = chunk.about["topic_id"]
        self._ends_before[chunk.number] = max(chunk.end, self._ends_before.get(chunk.number, 0))
        for partition, offset in chunk.about.get("began", {}).items():
            self._next.setdefault(int(partition), offset)
        self._next[chunk.number] = chunk.end

    def freeze(self) -> None:
        self._until = self._ends()

    def has_input(self) -> bool:
        return any(end > self._next[number] for number, end in self._ends().items())

    def poll(self) -> list[Chunk]:
        is_first = self._identity is None
        ends = self._ends()
        about: dict[str, Any] = {"topic": self._source.topic, "topic_id": self._topic.identity}
        if is_first and self._source.begin == "latest":
            return [Chunk(n, None, offset, about) for n, offset in sorted(self._next.items())]
        if self._until is not None:
            ends = {n: min(end, self._until.get(n, 0)) for n, end in ends.items()}
        backlog = {n: end - self._next[n] for n, end in ends.items() if end > self._next[n]}
        if not backlog:
            return []
        chunks = [
            Chunk(number, self._next[number], self._next[number] + rows, about)
            for number, rows in sorted(_fair(backlog, self._limit(backlog)).items())
        ]
        if is_first:  # one chunk is enough to carry the beginnings of all partitions
            began = {str(number): offset for number, offset in self._next.items()}
            chunks[0] = replace(chunks[0], about={**about, "began": began})
        return chunks

    def _limit(self, backlog: Mapping[int, int]) -> int:
        """The most rows that an epoch may read; their size is estimated from a sample.

        At least one row per partition: a partition that is skipped would not count for watermarks.
        """
        if sum(backlog.values()) > _SAMPLE_ROWS and self._takes % _SAMPLE_EVERY == 0:
            number = max(backlog, key=backlog.__getitem__)
            start = self._next[number]
            end = start + min(_SAMPLE_ROWS, backlog[number])
            sample = Chunk(number, start, end, {"topic_id": self._topic.identity})
            sizes = [
                raw.size if isinstance(raw, LongRecord) else len(raw or b"")
                for raw_batch in _messages(self._source, sample)
                for raw in raw_batch.raws
            ]
            self._row_bytes = sum(sizes) / len(sizes) if sizes else 0.0
        self._takes += 1
        by_bytes = self._source.max_bytes_per_epoch / max(self._row_bytes, 1.0)
        return max(len(backlog), min(self._source.max_rows_per_epoch, int(by_bytes)))

    def _ends(self) -> dict[int, int]:
        """How far each partition can be read; gives new partitions a position.

        End offsets never decrease. A broker that reports so has just started, so this retries, and
        raises `InputError` when that lasts too long.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            ends = _patiently(self._source, self._looked_up)
            shrunk = [n for n, end in self._ends_before.items() if ends.get(n, 0) < end]
            if not shrunk:
                self._ends_before = ends
                return ends
            if time.monotonic() > deadline:
                number = shrunk[0]
                before, now = self._ends_before[number], ends.get(number, 0)
                raise InputError(_shrunk(self._source, number, before, now))
            time.sleep(0.1)  # a broker that has just started catches up

    def _looked_up(self) -> dict[int, int]:
        name = self._source.topic
        topics = topics_of(self._source.cluster)
        self._topic = _same_topic(self._source, topics.find(name), self._identity)
        numbers = range(self._topic.partitions)
        ends = topics.ends(name, numbers)
        new = [number for number in numbers if number not in self._next]
        if new or self._is_fresh:
            self._begin(new, topics.starts(name, numbers), ends)
        return ends

    def _begin(self, new: list[int], starts: dict[int, int], ends: dict[int, int]) -> None:
        """Give new partitions a position; raises `InputError` if unread messages have expired."""
        for number, position in self._next.items():
            if starts.get(number, 0) > position:
                raise InputError(_expired(self._source, number, position, starts[number]))
        is_late = self._source.begin == "latest" and self._identity is None and not self._next
        self._next.update({n: ends[n] if is_late else starts[n] for n in new})
        self._is_fresh = False


def _fair(backlog: Mapping[int, int], limit: int) -> dict[int, int]:
    """Max-min fair shares of a limit: what small backlogs do not use is split among the others.

    >>> _fair({0: 5, 1: 100, 2: 100}, 65)
    {0: 5, 1: 30, 2: 30}
    """
    shares: dict[int, int] = {}
    left = limit
    for count, number in enumerate(sorted(backlog, key=lambda n: (backlog[n], n))):
        share = min(backlog[number], -(-left // (len(backlog) - count)))
        if share > 0:
            shares[number] = share
            left -= share
    return shares


def _patiently(source: KafkaMessages, look: Callable[[], _T]) -> _T:
    return patiently(source._who, source.cluster, source.topic, look)


class _Messages(RecordReader):
    def __init__(self, source: KafkaMessages, tp: Any) -> None:
        self._source = source
        self._decode = msgspec.json.Decoder(tp).decode
        self._fill = filler_of(tp)

    def batches(self, chunk: Chunk) -> Iterator[RawBatch]:
        return iter(()) if chunk.is_beginning else _messages(self._source, chunk)

    def decode_one(self, raw: bytes | None) -> Any:
        if raw is None:
            raise BadRecord("it has no value")
        if isinstance(raw, LongRecord):
            raw.refuse()
        value = self._decode(raw)
        if self._fill:
            self._fill(value)
        return value

    def preview(self, raw: bytes | None) -> bytes:
        return b"null" if raw is None else raw

    def json_line(self, raw: bytes, value: Any) -> bytes:
        return msgspec.json.encode(value) if b"\n" in raw else raw


def _messages(source: KafkaMessages, chunk: Chunk) -> Iterator[RawBatch]:
    """The messages of a chunk, in batches.

    Each chunk gets a new consumer: a used one may still deliver what it had prefetched.
    """
    kafka = client_module()
    consumer = _consumer(source, chunk)
    consumer.assign([kafka.TopicPartition(source.topic, chunk.number, chunk.start)])
    raws: list[bytes | None] = []
    positions: list[int] = []
    size, longest = 0, source.max_record_bytes
    reached = chunk.start
    deadline = time.monotonic() + PATIENCE_S
    try:
        while reached < chunk.end:
            for message in polled(consumer, 1.0):
                if message.error() is not None:
                    reached = max(reached, _reached_at(source, chunk, message))
                    continue
                if message.offset() < reached:  # fetched again after a broker restarted
                    continue
                deadline = time.monotonic() + PATIENCE_S
                reached = message.offset() + 1
                if reached > chunk.end:
                    break
                raw = message.value()
                if raw is not None and len(raw) > longest:
                    if raws:
                        yield RawBatch(raws, positions)
                    yield RawBatch([LongRecord.of(raw, len(raw), longest)], [message.offset()])
                    raws, positions, size = [], [], 0
                    continue
                raws.append(raw)
                positions.append(message.offset())
                size += len(raw or b"")
                if size >= RUN_BYTES:
                    yield RawBatch(raws, positions)
                    raws, positions, size = [], [], 0
            if len(raws) >= KAFKA_BATCH_ROWS:
                yield RawBatch(raws, positions)
                raws, positions, size = [], [], 0
            if time.monotonic() > deadline:
                raise ConnectorError(_no_progress(source, chunk, reached))
    finally:
        consumer.close()
    if raws:
        yield RawBatch(raws, positions)


def _consumer(source: KafkaMessages, chunk: Chunk) -> Any:
    """A consumer for a chunk; raises `InputError` if the topic was deleted or recreated."""
    found = _patiently(source, lambda: topics_of(source.cluster).find(source.topic))
    _same_topic(source, found, chunk.about["topic_id"])
    with in_words(source._who, source.cluster, source.topic):
        return client_module().Consumer(
            source.cluster.client(
                group_id="cutwater",
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="error",
                isolation_level="read_committed",
                fetch_wait_max_ms=20,
                queued_min_messages=KAFKA_BATCH_ROWS,
            )
        )


def _reached_at(source: KafkaMessages, chunk: Chunk, message: Any) -> int:
    """The offset reached, if the consumer reports the end of the partition; 0: it does not.

    Raises if the consumer failed. The end must count, since the last offsets of a chunk may belong
    to aborted messages and transaction markers, which are never delivered.
    """
    kafka = client_module()
    error = message.error()
    if error.code() == kafka.KafkaError._PARTITION_EOF:
        return int(message.offset())
    if error.code() in (kafka.KafkaError._AUTO_OFFSET_RESET, kafka.KafkaError.OFFSET_OUT_OF_RANGE):
        topics = topics_of(source.cluster)
        starts = _patiently(source, lambda: topics.starts(source.topic, [chunk.number]))
        raise InputError(_expired(source, chunk.number, chunk.start, starts[chunk.number]))
    if is_hopeless(error):
        raise failed(source._who, source.cluster, source.topic, error)
    return 0


def _same_topic(source: KafkaMessages, found: Topic | None, identity: str | None) -> Topic:
    if found is None:
        raise InputError(
            Problem(
                "unknown-topic",
                f"topic '{source.topic}' does not exist any more at {source.servers}",
                "if it was deleted, start with a new topic and a new checkpoint",
            )
        )
    if identity is not None and found.identity != identity:
        raise InputError(
            Problem(
                "another-topic",
                f"topic '{source.topic}' was deleted and created again since the checkpoint began "
                f"(its id is {found.identity}, it was {identity}); offsets mean other messages now",
                "start with a new checkpoint",
            )
        )
    return found


def _expired(source: KafkaMessages, partition: int, position: int, start: int) -> Problem:
    return Problem(
        "expired-input",
        f"topic '{source.topic}', partition {partition}: offset {position} is to be read next, but "
        f"messages before offset {start} are deleted; {start - position} offsets are lost",
        "keep messages longer (retention.ms, retention.bytes) than the flow may be down; to "
        "continue without the lost ones, start with a new checkpoint",
    )


def _shrunk(source: KafkaMessages, partition: int, before: int, now: int) -> Problem:
    return Problem(
        "messages-lost",
        f"topic '{source.topic}', partition {partition}: it ended at offset {before} and ends at "
        f"{now} now; {source.servers} has lost messages that it had acknowledged",
        "find out why (an unclean leader election?); start with a new checkpoint",
    )


def _no_progress(source: KafkaMessages, chunk: Chunk, reached: int) -> Problem:
    return Problem(
        "kafka-unreachable",
        f"topic '{source.topic}', partition {chunk.number}: {source.servers} sent nothing for "
        f"{PATIENCE_S} seconds at offset {reached}; the chunk ends at {chunk.end}",
        "check that the brokers run; start again, and the same offsets are read",
    )
