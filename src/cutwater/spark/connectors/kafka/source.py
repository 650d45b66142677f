"""A topic of Kafka as a source: each message a record of JSON, its position its offset.

A chunk is a run of offsets of one partition, up to the last one of which it is decided whether it
was committed; so it holds the same messages whenever it is read.

A source that begins after the latest message first logs where that is: chunks that have an end and
no start, and read nothing. Else a run that ends before it has read a message would leave no trace,
and the next one would pass over what came meanwhile.
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
from cutwater.spark.connectors.base.source import (
    BadRecord,
    Chunk,
    Feed,
    Planner,
    RecordReader,
    Replay,
    Run,
)
from cutwater.spark.connectors.kafka.checks import Topic, topics_of
from cutwater.spark.connectors.kafka.errors import failed, in_words, is_hopeless
from cutwater.spark.connectors.kafka.polling import polled
from cutwater.spark.connectors.kafka.settings import Cluster, client_module

__all__ = ["RUN_ROWS", "KafkaMessages"]

T = TypeVar("T")

_PATIENCE_S = 120
"""How long a broker that does not answer is waited for."""
RUN_ROWS = 20_000
_SAMPLE_ROWS = 200
_SAMPLE_EVERY = 100


@dataclass(frozen=True)
class KafkaMessages(Feed):
    """The messages of a topic, each a record of JSON; read as far as they are committed.

    Parameters
    ----------
    topic, servers
        What is read: ``servers="kafka-1:9092,kafka-2:9092"``.
    begin
        Where a new checkpoint begins: with the ``"earliest"`` message that is there, or after the
        ``"latest"``. Partitions that are added later are always read from their beginning.
    max_rows_per_epoch, max_bytes_per_epoch
        How much one epoch reads at the most, of all partitions; bytes by the size of a sample.
    idle_after
        Seconds without new input after which the source holds others back no longer, and a
        partition the source.
    settings
        Settings of the client (librdkafka), such as ``security.protocol``.
    password_env, password_file
        Where the password (``sasl.password``) is kept: an environment variable or a file.
    """

    topic: str
    servers: str
    begin: Literal["earliest", "latest"] = "earliest"
    max_rows_per_epoch: int = 100_000
    max_bytes_per_epoch: int = 32 << 20
    idle_after: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    password_env: str | None = None
    password_file: str | None = None

    kind: ClassVar[str] = "Kafka"
    pieces: ClassVar[str] = "partitions"
    unit: ClassVar[str] = "rows"
    smallest_share: ClassVar[int] = 2_000
    has_partitions: ClassVar[bool] = True

    @property
    def cluster(self) -> Cluster:
        """How the brokers are reached."""
        return Cluster.of(self.servers, self.settings, self.password_env, self.password_file)

    # --- before anything runs --------------------------------------------------------------------

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        yield from self.cluster.problems(f"source '{name}'")
        if self.begin not in ("earliest", "latest"):
            yield Problem(
                "unknown-begin",
                f"source '{name}' has begin={self.begin!r}; it begins with the 'earliest' message "
                "or after the 'latest'",
                "use one of the two",
            )
        for setting in ("max_rows_per_epoch", "max_bytes_per_epoch"):
            if getattr(self, setting) < 1:
                yield Problem(
                    "no-progress",
                    f"{setting} of source '{name}' is {getattr(self, setting)}; an epoch reads at "
                    "least one",
                    f"leave {setting} out, or make it larger",
                )

    def check(self, name: str, step: Source) -> Iterator[Problem]:
        with in_words(f"source '{name}'", self.cluster, self.topic):
            if topics_of(self.cluster).find(self.topic) is None:
                yield Problem(
                    "unknown-topic",
                    f"source '{name}' reads topic '{self.topic}', which {self.servers} does not "
                    "have",
                    "create it, or correct the name",
                )

    def replay(self) -> Replay:
        """A topic that is compacted loses messages that an epoch may have to read again."""
        with in_words(self._who, self.cluster, self.topic):
            policy = topics_of(self.cluster).settings(self.topic).get("cleanup.policy", "")
        if "compact" in policy:
            return Replay(
                False,
                f"topic '{self.topic}' has cleanup.policy={policy}: a message that a newer one of "
                "its key replaced may be gone when an epoch is read again",
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

    def amount(self, chunk: Chunk) -> int:
        return self.tally(chunk)

    def cut(self, chunk: Chunk, amount: int) -> Any:
        return chunk.end if _is_beginning(chunk) else super().cut(chunk, amount)

    @classmethod
    def merge(cls, before: Chunk, after: Chunk) -> Chunk:
        """The first chunk of all says where partitions began that have had no message yet."""
        began = before.about.get("began", {}) | after.about.get("began", {})
        start = after.start if _is_beginning(before) else before.start
        about = {**after.about, "began": began} if began else after.about
        return replace(after, start=start, about=about)

    @classmethod
    def tally(cls, chunk: Chunk) -> int:
        return 0 if _is_beginning(chunk) else super().tally(chunk)

    @classmethod
    def piece(cls, chunk: Chunk) -> str:
        return f"{chunk.about.get('topic', '')} {chunk.number}"

    # --- reading ---------------------------------------------------------------------------------

    def reader(self, tp: Any) -> RecordReader:
        return _Messages(self, tp)

    def place(self, chunk: Chunk, position: int) -> str:
        return f"topic '{self.topic}', partition {chunk.number}, offset {position}"

    def spot(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"topic": self.topic, "partition": chunk.number, "offset": position}


def _is_beginning(chunk: Chunk) -> bool:
    """Does it read nothing, and only say where its partition began?"""
    return chunk.start is None


class _Positions(Planner):
    """Where each partition is, and how far it can be read."""

    def __init__(self, feed: KafkaMessages) -> None:
        self._feed = feed
        self._identity: str | None = None
        self._next: dict[int, int] = {}
        self._until: dict[int, int] | None = None
        self._ends_before: dict[int, int] = {}
        self._is_fresh = True
        self._row_bytes = 0.0
        self._takes = 0

    def note(self, chunk: Chunk) -> None:
        self._identity = chunk.about["topic_id"]
        self._ends_before[chunk.number] = max(chunk.end, self._ends_before.get(chunk.number, 0))
        for partition, offset in chunk.about.get("began", {}).items():
            self._next.setdefault(int(partition), offset)
        self._next[chunk.number] = chunk.end

    def freeze(self) -> None:
        self._until = self._ends()

    def has_input(self) -> bool:
        return any(end > self._next[number] for number, end in self._ends().items())

    def take(self) -> list[Chunk]:
        is_first = self._identity is None
        ends = self._ends()
        about: dict[str, Any] = {"topic": self._feed.topic, "topic_id": self._topic.identity}
        if is_first and self._feed.begin == "latest":
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
        if is_first:  # once is enough, however many partitions there are
            began = {str(number): offset for number, offset in self._next.items()}
            chunks[0] = replace(chunks[0], about={**about, "began": began})
        return chunks

    def _limit(self, backlog: Mapping[int, int]) -> int:
        """How many rows an epoch may read; how large they are is guessed by some of them.

        At least one of each partition: one that is passed over would not count for watermarks.
        """
        if sum(backlog.values()) > _SAMPLE_ROWS and self._takes % _SAMPLE_EVERY == 0:
            number = max(backlog, key=backlog.__getitem__)
            start = self._next[number]
            end = start + min(_SAMPLE_ROWS, backlog[number])
            sample = Chunk(number, start, end, {"topic_id": self._topic.identity})
            sizes = [len(raw or b"") for run in _messages(self._feed, sample) for raw in run.raws]
            self._row_bytes = sum(sizes) / len(sizes) if sizes else 0.0
        self._takes += 1
        by_bytes = self._feed.max_bytes_per_epoch / max(self._row_bytes, 1.0)
        return max(len(backlog), min(self._feed.max_rows_per_epoch, int(by_bytes)))

    def _ends(self) -> dict[int, int]:
        """How far each partition can be read; those that are new have a position from now on.

        No topic becomes smaller. A broker that says so has just started, and is asked again.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            ends = _patiently(self._feed, self._looked_up)
            shrunk = [n for n, end in self._ends_before.items() if ends.get(n, 0) < end]
            if not shrunk:
                self._ends_before = ends
                return ends
            if time.monotonic() > deadline:
                number = shrunk[0]
                before, now = self._ends_before[number], ends.get(number, 0)
                raise InputError(_shrunk(self._feed, number, before, now))
            time.sleep(0.1)

    def _looked_up(self) -> dict[int, int]:
        name = self._feed.topic
        topics = topics_of(self._feed.cluster)
        self._topic = _same_topic(self._feed, topics.find(name), self._identity)
        numbers = range(self._topic.partitions)
        ends = topics.ends(name, numbers)
        new = [number for number in numbers if number not in self._next]
        if new or self._is_fresh:
            self._begin(new, topics.starts(name, numbers), ends)
        return ends

    def _begin(self, new: list[int], starts: dict[int, int], ends: dict[int, int]) -> None:
        """Give new partitions a position, if all others have theirs still to read."""
        for number, position in self._next.items():
            if starts.get(number, 0) > position:
                raise InputError(_expired(self._feed, number, position, starts[number]))
        is_late = self._feed.begin == "latest" and self._identity is None and not self._next
        self._next.update({n: ends[n] if is_late else starts[n] for n in new})
        self._is_fresh = False


def _fair(backlog: Mapping[int, int], limit: int) -> dict[int, int]:
    """Shares of a limit: the same for all who have so much, and what others leave is shared.

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


def _patiently(feed: KafkaMessages, look: Callable[[], T]) -> T:
    """Ask until a broker answers; one that is started anew is waited for."""
    kafka = client_module()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return look()
        except kafka.KafkaException as error:
            if is_hopeless(error.args[0]) or time.monotonic() > deadline:
                raise failed(feed._who, feed.cluster, feed.topic, error.args[0]) from None
            time.sleep(0.5)


class _Messages(RecordReader):
    def __init__(self, feed: KafkaMessages, tp: Any) -> None:
        self._feed = feed
        self._decode = msgspec.json.Decoder(tp).decode
        self._fill = filler_of(tp)

    def runs(self, chunk: Chunk) -> Iterator[Run]:
        return iter(()) if _is_beginning(chunk) else _messages(self._feed, chunk)

    def decode_one(self, raw: bytes | None) -> Any:
        if raw is None:
            raise BadRecord("it has no value")
        value = self._decode(raw)
        if self._fill:
            self._fill(value)
        return value

    def text(self, raw: bytes | None) -> bytes:
        return b"null" if raw is None else raw

    def line(self, raw: bytes, value: Any) -> bytes:
        return msgspec.json.encode(value) if b"\n" in raw else raw


def _messages(feed: KafkaMessages, chunk: Chunk) -> Iterator[Run]:
    """The messages of a chunk, some at a time.

    The consumer is a new one: one that read before may still bring what it had fetched for that.
    """
    kafka = client_module()
    consumer = _consumer(feed, chunk)
    consumer.assign([kafka.TopicPartition(feed.topic, chunk.number, chunk.start)])
    raws: list[bytes | None] = []
    positions: list[int] = []
    reached = chunk.start
    deadline = time.monotonic() + _PATIENCE_S
    try:
        while reached < chunk.end:
            for message in polled(consumer, 1.0):
                if message.error() is not None:
                    reached = max(reached, _reached_at(feed, chunk, message))
                    continue
                if message.offset() < reached:  # fetched again after a broker went away
                    continue
                deadline = time.monotonic() + _PATIENCE_S
                reached = message.offset() + 1
                if reached > chunk.end:
                    break
                raws.append(message.value())
                positions.append(message.offset())
            if len(raws) >= RUN_ROWS:
                yield Run(raws, positions)
                raws, positions = [], []
            if time.monotonic() > deadline:
                raise ConnectorError(_no_progress(feed, chunk, reached))
    finally:
        consumer.close()
    if raws:
        yield Run(raws, positions)


def _consumer(feed: KafkaMessages, chunk: Chunk) -> Any:
    """A consumer of the topic that the chunk is of."""
    found = _patiently(feed, lambda: topics_of(feed.cluster).find(feed.topic))
    _same_topic(feed, found, chunk.about["topic_id"])
    with in_words(feed._who, feed.cluster, feed.topic):
        return client_module().Consumer(
            feed.cluster.client(
                group_id="cutwater",
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="error",
                isolation_level="read_committed",
                fetch_wait_max_ms=20,
                queued_min_messages=RUN_ROWS,
            )
        )


def _reached_at(feed: KafkaMessages, chunk: Chunk, message: Any) -> int:
    """How far a partition is read when its consumer says that it ended; raises if it failed.

    The last offsets of a chunk may be of messages that were aborted, and of markers.
    """
    kafka = client_module()
    error = message.error()
    if error.code() == kafka.KafkaError._PARTITION_EOF:
        return int(message.offset())
    if error.code() in (kafka.KafkaError._AUTO_OFFSET_RESET, kafka.KafkaError.OFFSET_OUT_OF_RANGE):
        topics = topics_of(feed.cluster)
        starts = _patiently(feed, lambda: topics.starts(feed.topic, [chunk.number]))
        raise InputError(_expired(feed, chunk.number, chunk.start, starts[chunk.number]))
    if is_hopeless(error):
        raise failed(feed._who, feed.cluster, feed.topic, error)
    return 0


def _same_topic(feed: KafkaMessages, found: Topic | None, identity: str | None) -> Topic:
    if found is None:
        raise InputError(
            Problem(
                "unknown-topic",
                f"topic '{feed.topic}' is not there any more at {feed.servers}",
                "if it was deleted, start with a new topic and a new checkpoint",
            )
        )
    if identity is not None and found.identity != identity:
        raise InputError(
            Problem(
                "another-topic",
                f"topic '{feed.topic}' was deleted and made again since the checkpoint began "
                f"(its id is {found.identity}, it was {identity}); offsets mean other messages now",
                "start with a new checkpoint",
            )
        )
    return found


def _expired(feed: KafkaMessages, partition: int, position: int, start: int) -> Problem:
    return Problem(
        "expired-input",
        f"topic '{feed.topic}', partition {partition}: offset {position} is to be read next, but "
        f"messages before offset {start} are deleted; {start - position} offsets are lost",
        "keep messages longer (retention.ms, retention.bytes) than the flow may be down; to go on "
        "without the lost ones, start with a new checkpoint",
    )


def _shrunk(feed: KafkaMessages, partition: int, before: int, now: int) -> Problem:
    return Problem(
        "messages-lost",
        f"topic '{feed.topic}', partition {partition}: it ended at offset {before} and ends at "
        f"{now} now; {feed.servers} has lost messages that it had acknowledged",
        "see why (an unclean election of a leader?); start with a new checkpoint",
    )


def _no_progress(feed: KafkaMessages, chunk: Chunk, reached: int) -> Problem:
    return Problem(
        "kafka-unreachable",
        f"topic '{feed.topic}', partition {chunk.number}: nothing came from {feed.servers} for "
        f"{_PATIENCE_S} seconds at offset {reached}; {chunk.end} is the end",
        "see that the brokers run; start again, and the same offsets are read",
    )
