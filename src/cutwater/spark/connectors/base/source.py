"""What a kind of source is: a feed says what is unread, how it is read, and if it can be replayed.

A feed is the settings of a source, and travels to the workers: it holds no connection and no
secret. What lives longer is made by it: a `Planner` in the process that plans epochs, and a
`RecordReader` in each task.
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
    "Feed",
    "Planner",
    "RecordReader",
    "Replay",
    "Run",
    "times_of",
]


class BadRecord(Exception):
    """What lies at some position is no record; the text says why."""


BAD = (BadRecord, msgspec.MsgspecError, UnicodeError, RecursionError)
"""What reading a bad record may raise."""


@dataclass(frozen=True)
class Replay:
    """Can a source be read again, so that an epoch that is repeated has the same records?"""

    is_replayable: bool
    because: str
    """What makes it so, in words that follow "because"."""
    provided: str = ""
    """What the user must see to, in words that follow "provided"; empty: nothing."""
    is_reordered: bool = False
    """If it is not replayable: has a repeated epoch the same records, only in another order?"""
    remedy: str = ""
    """What would make it replayable, in words that follow its name; empty: nothing is known."""


@dataclass(frozen=True)
class Chunk:
    """A run of records that lie together, as the log keeps it: from one position to another."""

    number: int
    """The first part of the order of its records: a file's place among all, or a partition."""
    start: Any
    end: Any
    """Positions, as JSON has them; the end is not in it."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else its feed needs to find it again, as JSON has it; no key is a field of this."""
    newest_before: Any = None
    """The newest time of the source before this epoch, if it has a clock."""
    newest_after: Any = None
    """The newest time of the source once this epoch is read."""
    first: int = 0
    """The number of its first record, if the records of the source are numbered."""
    planned: float | None = None
    """When its epoch was planned, in seconds of the wall clock."""

    @property
    def is_decision(self) -> bool:
        """Does it read nothing, and only say that the source followed others?"""
        return bool(self.start == self.end)

    def to_json(self) -> dict[str, Any]:
        """The chunk as the log keeps it."""
        kept = asdict(self)
        return {**kept.pop("about"), **kept}

    def to_brief_json(self) -> dict[str, Any]:
        """The same, without what is as it is if nothing is said."""
        kept = self.to_json()
        return {name: kept[name] for name in kept if kept[name] != _DEFAULTS.get(name, _SAID)}

    @staticmethod
    def of_json(kept: Mapping[str, Any]) -> Chunk:
        """The chunk that the log kept."""
        own = {name: kept[name] for name in _OWN if name in kept}
        return Chunk(**own, about={name: kept[name] for name in kept if name not in _OWN})


_OWN = {each.name for each in fields(Chunk) if each.name != "about"}
_DEFAULTS = {"newest_before": None, "newest_after": None, "first": 0, "planned": None}
_SAID = object()


@dataclass(frozen=True)
class Run:
    """Some records of a chunk, as they lie there: about as many as are worked on together."""

    raws: Sequence[Any]
    positions: Sequence[Any]
    """Where each of them lies; they ascend."""

    @property
    def size(self) -> int:
        """The bytes of its records, as far as they are bytes or text."""
        known: int | None = getattr(self.raws, "nbytes", None)
        if known is not None:
            return known
        return sum(len(raw) for raw in self.raws if isinstance(raw, bytes | str))


def times_of(values: Sequence[Any], field: str) -> list[Any]:
    """The times of records, by the field that has them."""
    if isinstance(values, Records):
        times: list[Any] = values.columns[field].tolist()
        return times
    return [getattr(value, field) for value in values]


class Planner(ABC):
    """What of a source is read and what is next; lives in the process that plans epochs."""

    @abstractmethod
    def note(self, chunk: Chunk) -> None:
        """Take note that a chunk is in the log: all that are there, in order, and each new one."""

    @abstractmethod
    def freeze(self) -> None:
        """From now on take only what is there now: the run is to catch up and end."""

    @abstractmethod
    def take(self) -> list[Chunk]:
        """The chunks of the next epoch, as much as an epoch may read; they come by `note` after.

        Within one number they ascend; a chunk is never empty.
        """

    @abstractmethod
    def has_input(self) -> bool:
        """Is there something that was not noted yet, whether it is to be taken now or not?"""


class RecordReader(ABC):
    """Reads and decodes records of one type; made once for a task."""

    numbered: Sequence[str] = ()
    """Fields whose values are better numbered, where records are decoded as columns."""

    @abstractmethod
    def runs(self, chunk: Chunk) -> Iterator[Run]:
        """All records of a chunk, in order, some at a time; what is decoded then is of it."""

    def turn_to(self, chunk: Chunk) -> None:  # noqa: B027
        """What is decoded from now on is of this chunk."""

    @abstractmethod
    def decode_one(self, raw: Any) -> Any:
        """The record; raises one of `BAD` if it is none."""

    def decode(self, run: Run) -> Sequence[Any]:
        """All records of a run, a list or `Records`; raises one of `BAD` if any is none."""
        return list(map(self.decode_one, run.raws))

    def times(self, run: Run, field: str) -> list[Any]:
        """That field of all records of a run; raises one of `BAD` if any is none."""
        return times_of(self.decode(run), field)

    @abstractmethod
    def text(self, raw: Any) -> bytes:
        """A bad record as people are shown it; need not be UTF-8."""

    def line(self, raw: Any, value: Any) -> bytes:
        """A good record as a line of JSON, without its end."""
        return msgspec.json.encode(value)

    def count(self, chunk: Chunk) -> int:
        """How many records a chunk has, bad ones too."""
        return sum(len(run.raws) for run in self.runs(chunk))


class Binding(ABC):
    """What a source of a flow can be bound to."""

    kind: ClassVar[str]
    """In words, and for ever: a checkpoint remembers of which kind each source is."""
    idle_after: float | None
    """Seconds without new input after which the source holds others back no longer."""

    @abstractmethod
    def replay(self) -> Replay:
        """Can it be read again?"""


class Feed(Binding):
    """A source that we read ourselves; a subclass is a frozen dataclass of its settings."""

    pieces: ClassVar[str]
    """What chunks are parts of, in the plural: files, partitions."""
    unit: ClassVar[str]
    """What `tally` counts: bytes, rows."""
    smallest_share: ClassVar[int]
    """A task reads at least this amount: less is not worth one."""
    has_partitions: ClassVar[bool] = False
    """Is the number of a chunk that of a partition, which has a watermark of its own?"""

    # --- before anything runs --------------------------------------------------------------------

    def absolute(self) -> Feed:
        """The same feed for processes that may run in other folders."""
        return self

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        """Why the source `name` cannot be read with these settings; connects to nothing."""
        return iter(())

    def check(self, name: str, step: Source) -> Iterator[Problem]:
        """Why it cannot be read as things are now; may look and connect, and changes nothing."""
        return iter(())

    def why_empty(self) -> str | None:
        """In words, why nothing can be read now; None if there is something, or nobody knows."""
        return None

    # --- planning --------------------------------------------------------------------------------

    @abstractmethod
    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        """A planner of what holds records of a type; `now` is the wall clock."""

    def amount(self, chunk: Chunk) -> int:
        """How much of the work of an epoch a chunk is, in any measure."""
        return int(chunk.end - chunk.start)

    def cut(self, chunk: Chunk, amount: int) -> Any:
        """Where the first part of a chunk ends, of at least this amount if there is so much.

        A part begins and ends between two records. A feed that cannot cut gives the whole.
        """
        return min(chunk.start + amount, chunk.end)

    @classmethod
    def merge(cls, before: Chunk, after: Chunk) -> Chunk:
        """One chunk for two of the same number that follow one another, as far as a planner and
        `tally` need them: nobody reads it.
        """
        return replace(after, start=before.start)

    @classmethod
    def tally(cls, chunk: Chunk) -> int:
        """How much a chunk is, in the feed's unit, for people; told without looking at it."""
        return int(chunk.end - chunk.start)

    @classmethod
    def piece(cls, chunk: Chunk) -> str:
        """What a chunk is part of, for people."""
        return str(chunk.number)

    # --- reading ---------------------------------------------------------------------------------

    @abstractmethod
    def reader(self, tp: Any) -> RecordReader:
        """A reader of records of a type."""

    def orders(self, positions: Sequence[Any]) -> list[bytes]:
        """Bytes that sort as positions do, and none of which begins another."""
        return [position.to_bytes(8, "big") for position in positions]

    def position(self, chunk: Chunk, order: bytes) -> Any:
        """The position of a record whose order these bytes begin with."""
        return int.from_bytes(order[:8], "big")

    @abstractmethod
    def place(self, chunk: Chunk, position: Any) -> str:
        """Where a record lies, at the beginning of a sentence."""

    @abstractmethod
    def spot(self, chunk: Chunk, position: Any) -> dict[str, Any]:
        """Where a record lies, as JSON has it; told without looking at anything."""

    def address(self, chunk: Chunk, position: Any) -> dict[str, Any]:
        """Where a record lies, as people look for it."""
        return self.spot(chunk, position)
