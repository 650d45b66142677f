"""The contract of a source connector: what is unread, how it is read, whether it can be replayed.

A source connector is a frozen dataclass of settings and is serialised to the workers, so it holds
no connection and no secret. The objects that hold them are made from it: a `Planner` in the process
that plans epochs, and a `RecordReader` in each task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import msgspec

from cutwater.errors import Problem
from cutwater.flow.steps import Source
from cutwater.spark.exchange.columns import Records

__all__ = [
    "BAD",
    "BadRecord",
    "Binding",
    "Chunk",
    "Planner",
    "RawBatch",
    "RecordReader",
    "Replay",
    "SourceConnector",
    "times_of",
]


class BadRecord(Exception):
    """The bytes at a position cannot be decoded as a record; the text says why."""


BAD = (BadRecord, msgspec.MsgspecError, UnicodeError, RecursionError)
"""What decoding a bad record may raise."""


@dataclass(frozen=True)
class Replay:
    """Can a source be replayed, so that a repeated epoch has the same records?"""

    is_replayable: bool
    because: str
    """The reason, as a phrase that follows "because"."""
    provided: str = ""
    """What the user must ensure, as a phrase that follows "provided"; empty: nothing."""
    is_reordered: bool = False
    """If it cannot be replayed: does a repeated epoch have the same records in another order?"""
    remedy: str = ""
    """What makes it replayable, as a phrase that follows its name; empty: no remedy is known."""


@dataclass(frozen=True)
class Chunk:
    """Adjacent records of a source, from one position to another; the unit of the offset log."""

    number: int
    """The number of a file or partition; records are ordered by it first."""
    start: Any
    end: Any
    """Positions, as JSON values; the end is exclusive."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else the connector needs for a replay, as JSON; no key may be a field of `Chunk`."""
    newest_before: Any = None
    """The newest event time of the source before this epoch, if it has a watermark."""
    newest_after: Any = None
    """The newest event time of the source after this epoch."""
    first: int = 0
    """The number of its first record, if the records of the source are numbered."""
    planned: float | None = None
    """When its epoch was planned, in seconds of the wall clock."""

    @property
    def is_decision(self) -> bool:
        """Is it empty, and only records that an idle source followed the watermark of others?"""
        return bool(self.start == self.end)

    @property
    def is_beginning(self) -> bool:
        """Is it empty, and only records where a source begins?"""
        return self.start is None

    def to_json(self) -> dict[str, Any]:
        """The chunk as an entry of the offset log."""
        kept = asdict(self)
        return {**kept.pop("about"), **kept}

    def to_brief_json(self) -> dict[str, Any]:
        """The same, without fields that have their default."""
        kept = self.to_json()
        return {name: kept[name] for name in kept if kept[name] != _DEFAULTS.get(name, _SAID)}

    @staticmethod
    def of_json(kept: Mapping[str, Any]) -> Chunk:
        """The chunk of an entry of the offset log."""
        own = {name: kept[name] for name in _OWN if name in kept}
        return Chunk(**own, about={name: kept[name] for name in kept if name not in _OWN})


_OWN = {each.name for each in fields(Chunk) if each.name != "about"}
_DEFAULTS = {"newest_before": None, "newest_after": None, "first": 0, "planned": None}
_SAID = object()


@dataclass(frozen=True)
class RawBatch:
    """Raw records of a chunk, as they were read; they are decoded together."""

    raws: Sequence[Any]
    positions: Sequence[Any]
    """The position of each record; ascending."""

    @property
    def size(self) -> int:
        """The size of its records in bytes; text counts its characters, other values nothing."""
        known: int | None = getattr(self.raws, "nbytes", None)
        if known is not None:
            return known
        return sum(len(raw) for raw in self.raws if isinstance(raw, bytes | str))


def times_of(values: Sequence[Any], field: str) -> list[Any]:
    """The event times of records, from the field that holds them."""
    if isinstance(values, Records):
        times: list[Any] = values.columns[field].tolist()
        return times
    return [getattr(value, field) for value in values]


class Planner(ABC):
    """Plans the epochs of a source: what was read and what comes next. Runs in the driver."""

    @abstractmethod
    def advance(self, chunk: Chunk) -> None:
        """Move past a chunk of the offset log: all of them at the start, then each new one."""

    @abstractmethod
    def freeze(self) -> None:
        """From now on, poll only input that is available now: the run catches up and ends."""

    @abstractmethod
    def poll(self) -> list[Chunk]:
        """The chunks of the next epoch, at most what one epoch may read; none if there is no input.

        They are not empty, and ascend within one number. `advance` follows for each of them once it
        is durable in the offset log; a chunk that never reached the log is polled again.
        """

    @abstractmethod
    def has_input(self) -> bool:
        """Is there input beyond the offset log, even if `poll` would not return it now?"""


class RecordReader(ABC):
    """Reads and decodes records of one type; one per task."""

    numbered: Sequence[str] = ()
    """Fields that are dictionary-encoded if records are decoded as columns."""

    @abstractmethod
    def batches(self, chunk: Chunk) -> Iterator[RawBatch]:
        """All records of a chunk, in order; calls of `decode` that follow belong to this chunk."""

    def enter(self, chunk: Chunk) -> None:  # noqa: B027
        """Prepare to decode records of this chunk."""

    @abstractmethod
    def decode_one(self, raw: Any) -> Any:
        """Decode one record; raises one of `BAD` if it is bad."""

    def decode(self, raw_batch: RawBatch) -> Sequence[Any]:
        """Decode a batch to a list or `Records`; raises one of `BAD` if any record is bad."""
        return list(map(self.decode_one, raw_batch.raws))

    def times(self, raw_batch: RawBatch, field: str) -> list[Any]:
        """One field of all records of a batch; raises one of `BAD` if any record is bad."""
        return times_of(self.decode(raw_batch), field)

    @abstractmethod
    def preview(self, raw: Any) -> bytes:
        """A bad record for people, in side outputs and messages; need not be UTF-8."""

    def json_line(self, raw: Any, value: Any) -> bytes:
        """A good record as a line of JSON, without the newline."""
        return msgspec.json.encode(value)

    def count(self, chunk: Chunk) -> int:
        """The number of records of a chunk, bad ones included."""
        return sum(len(raw_batch.raws) for raw_batch in self.batches(chunk))


class Binding(ABC):
    """What a source of a flow can be bound to."""

    kind: ClassVar[str]
    """A name that never changes: checkpoints store the kind of each source."""
    idle_after: float | None
    """Seconds without input after which the source no longer holds back the watermark of others."""

    @abstractmethod
    def replay(self) -> Replay:
        """Can it be replayed, and why?"""


class SourceConnector(Binding):
    """A source that Cutwater reads itself; a subclass is a frozen dataclass of its settings."""

    partitions_noun: ClassVar[str]
    """What chunks are parts of, in the plural, for messages: files, partitions."""
    unit: ClassVar[str]
    """What `measure` counts: bytes, rows."""
    min_task_weight: ClassVar[int]
    """The least weight for which another task pays off."""
    has_partitions: ClassVar[bool] = False
    """Are chunk numbers partitions, each with a watermark of its own?"""

    # --- before anything runs --------------------------------------------------------------------

    def absolute(self) -> SourceConnector:
        """The same connector with absolute paths, for processes in other working directories."""
        return self

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        """Why the source `name` cannot be read with these settings; makes no connection."""
        return iter(())

    def check(self, name: str, step: Source) -> Iterator[Problem]:
        """Why it cannot be read at present; may connect, but changes nothing."""
        return iter(())

    def why_empty(self) -> str | None:
        """Why there is nothing to read at present; None if there is something or it is unknown."""
        return None

    # --- planning --------------------------------------------------------------------------------

    @abstractmethod
    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        """A planner for records of a type; `now` is the wall clock."""

    def weight(self, chunk: Chunk) -> int:
        """The cost of reading a chunk, in any unit; it balances an epoch's chunks over tasks."""
        return int(chunk.end - chunk.start)

    def cut(self, chunk: Chunk, weight: int) -> Any:
        """Where to split a chunk so that its first part has at least this weight, if it can.

        Parts begin and end between two records. A source that cannot split returns the chunk's end.
        """
        return min(chunk.start + weight, chunk.end)

    @classmethod
    def merge(cls, before: Chunk, after: Chunk) -> Chunk:
        """One chunk in place of two adjacent ones, when the offset log is compacted.

        Only `advance` and `measure` are given such a chunk, never a reader.
        """
        return replace(after, start=before.start)

    @classmethod
    def measure(cls, chunk: Chunk) -> int:
        """The size of a chunk in `unit`, for people; known without reading it."""
        return int(chunk.end - chunk.start)

    @classmethod
    def partition_name(cls, chunk: Chunk) -> str:
        """The file or partition of a chunk, for people."""
        return str(chunk.number)

    # --- reading ---------------------------------------------------------------------------------

    @abstractmethod
    def reader(self, tp: Any) -> RecordReader:
        """A reader of records of a type."""

    def sort_keys(self, positions: Sequence[Any]) -> list[bytes]:
        """Bytes that sort as the positions do; none is a prefix of another."""
        return [position.to_bytes(8, "big") for position in positions]

    def position_of(self, chunk: Chunk, order: bytes) -> Any:
        """The position of a record, given bytes that begin with its sort key."""
        return int.from_bytes(order[:8], "big")

    @abstractmethod
    def location(self, chunk: Chunk, position: Any) -> str:
        """Where a record is, as the beginning of a sentence."""

    @abstractmethod
    def coordinates(self, chunk: Chunk, position: Any) -> dict[str, Any]:
        """Where a record is, as JSON; known without reading it."""

    def readable_coordinates(self, chunk: Chunk, position: Any) -> dict[str, Any]:
        """Where a record is, for people: the number of a line instead of a byte offset."""
        return self.coordinates(chunk, position)
