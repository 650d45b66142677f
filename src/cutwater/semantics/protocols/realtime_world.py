"""The world of the real-time protocol: durable state, processes, and the bounds of exploration.

A row of a tick names the records of the tick, in order, the code that made it, and the whole state
before it: rows of two plans, of two flows, or on a wrong state differ. Every bucket gets every
record, and has one partition of the sink.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

__all__ = [
    "Bucket",
    "BucketSnapshots",
    "Entry",
    "PartitionPlan",
    "Reader",
    "RealTimeCase",
    "RealTimeRun",
    "RealTimeWorld",
    "Record",
    "SinkPartition",
    "State",
    "TickRow",
    "fenced_before",
    "next_tick",
    "put",
    "records_between",
    "through",
    "with_bucket",
    "with_reader",
    "with_run",
    "without_run",
]

Record = tuple[int, int]
"""Source partition and position."""
State = tuple[tuple[Record, str], ...]
"""Everything a bucket has processed: each record, and the code that did it."""


class Entry(msgspec.Struct, frozen=True, order=True):
    """Which records of a source partition belong to a tick; no entry: none do."""

    tick: int
    start: int
    end: int


class PartitionPlan(msgspec.Struct, frozen=True):
    """The plan of a source partition."""

    generation: int = 0
    """Earlier generations are fenced."""
    entries: tuple[Entry, ...] = ()
    """Sorted by tick; those up to a snapshot that counts may have been truncated."""


class BucketSnapshots(msgspec.Struct, frozen=True):
    """What a bucket has stored of its state."""

    generation: int = 0
    """Earlier generations are fenced."""
    deltas: tuple[tuple[int, State], ...] = ()
    """Each tick, with what was added to the state since the previous delta."""


class TickRow(msgspec.Struct, frozen=True):
    """The output of a tick in a sink partition."""

    before: State
    """The state before the tick."""
    records: tuple[Record, ...]
    """The records of the tick, or a part of them if it was released in part."""
    code: str


class SinkPartition(msgspec.Struct, frozen=True):
    """The sink partition of a bucket, with its ledger."""

    generation: int = 0
    """Earlier generations are fenced."""
    t_last: int = 0
    """The newest tick that was released."""
    digest: TickRow | None = None
    """What was released of that tick; None if it was empty."""
    shown: tuple[TickRow, ...] = ()
    """What readers see, in order."""


class Reader(msgspec.Struct, frozen=True):
    """The reader of a source partition."""

    tick: int
    """The newest tick it has decided on."""
    position: int
    """The first record that is in no tick yet."""
    unwritten: Entry | None = None
    """An entry that is decided but not yet durable; None: there is none."""
    barriers: tuple[int, ...] = ()
    """The barriers it has sent; each closes all ticks up to it."""
    rows: tuple[Entry, ...] = ()
    """What it has sent, or will send with the next barrier."""
    unsent: tuple[Entry, ...] = ()
    """Planned before its run opened, and still to be replayed."""
    has_ended: bool = False
    """Has it sent its last barrier? Then it sends nothing more in this batch."""


class Bucket(msgspec.Struct, frozen=True):
    """The operator of a bucket."""

    worked: int
    """The newest tick it has processed."""
    state: State
    kept: int
    """How much of the state the stored deltas cover."""
    pending: tuple[tuple[int, TickRow | None], ...] = ()
    """Tick and rows that are still to be released."""


class RealTimeRun(msgspec.Struct, frozen=True):
    """One start: readers, buckets and coordinator."""

    generation: int
    """0 until it has claimed one."""
    code: str
    begun: int = 0
    """How many steps of `order_of_a_start` are done."""
    newest: int = 0
    """K: the newest tick that anything durable names."""
    released: int = 0
    """R: the newest planned tick of which a sink has something, or that the snapshot has."""
    base: int = 0
    """The tick of the snapshot that it restored."""
    is_zombie: bool = False
    is_ending: bool = False
    """Has Spark ended the batch? Each reader notices after any of its steps, or not at all."""
    readers: tuple[Reader, ...] = ()
    buckets: tuple[Bucket, ...] = ()


class RealTimeWorld(msgspec.Struct, frozen=True, cache_hash=True):
    """All durable state, and all processes."""

    arrived: tuple[int, ...]
    """For each source partition how many records there are."""
    plans: tuple[PartitionPlan, ...]
    snapshots: tuple[BucketSnapshots, ...]
    sinks: tuple[SinkPartition, ...]
    """One partition for each bucket."""
    base: int
    """The newest tick whose snapshot was found to count; the plan begins behind it."""
    positions: tuple[int, ...]
    """For each source partition the first record behind `base`."""
    generation: int
    opened: int
    """The newest K at which a generation has opened: new ticks begin behind it."""
    code: str
    """Fingerprint of the flow whose ticks may have to be replayed."""
    is_stopped: bool
    """Did a digest mismatch? Then no run may start until the user intervenes."""
    runs: tuple[RealTimeRun, ...]
    """Every process that may still act; the last one may be no zombie."""
    crashes: int
    zombies: int
    idles: int
    """How many more times an idle reader may run ahead."""
    batches: int
    """How many more times Spark may end a batch."""
    changes: int
    """How many more starts may be by other code."""


class RealTimeCase(msgspec.Struct, frozen=True):
    """The bounds of an exploration."""

    records: tuple[int, ...] = (1, 1)
    """Records that arrive in each source partition."""
    buckets: int = 1
    crashes: int = 1
    zombies: int = 0
    idles: int = 0
    batches: int = 0
    changes: int = 0
    is_pure: bool = True
    """False: what the code makes of a record depends on the run."""
    observer: Literal["product of prefixes", "equal prefixes"] = "product of prefixes"
    """Rule 9, or what it forbids."""
    is_start_hurried: bool = False
    """Does nothing else happen during a start? Enough to find a run, not to show there is none."""


_T = TypeVar("_T")
_Fenced = TypeVar("_Fenced", PartitionPlan, BucketSnapshots, SinkPartition)


def fenced_before(written: tuple[_Fenced, ...], generation: int) -> tuple[_Fenced, ...]:
    """What is written in several places, with a generation before which all are fenced."""
    return tuple(replace(known, generation=max(known.generation, generation)) for known in written)


def through(plan: PartitionPlan, tick: int) -> PartitionPlan:
    """The plan up to a tick."""
    return replace(plan, entries=tuple(entry for entry in plan.entries if entry.tick <= tick))


def put(values: tuple[_T, ...], at: int, value: _T) -> tuple[_T, ...]:
    """The values with another one at an index."""
    return (*values[:at], value, *values[at + 1 :])


def with_reader(run: RealTimeRun, number: int, reader: Reader) -> RealTimeRun:
    """The run with another state of one of its readers."""
    return replace(run, readers=put(run.readers, number, reader))


def with_bucket(run: RealTimeRun, number: int, bucket: Bucket) -> RealTimeRun:
    """The run with another state of one of its buckets."""
    return replace(run, buckets=put(run.buckets, number, bucket))


def with_run(w: RealTimeWorld, at: int, run: RealTimeRun) -> RealTimeWorld:
    """The world with another state of one of its runs."""
    return replace(w, runs=put(w.runs, at, run))


def without_run(w: RealTimeWorld, at: int) -> RealTimeWorld:
    """The world after a run has ended."""
    return replace(w, runs=(*w.runs[:at], *w.runs[at + 1 :]))


def next_tick(run: RealTimeRun, worked: int) -> int | None:
    """The next tick with records, or the newest one that some reader has closed."""
    filled = [entry.tick for reader in run.readers for entry in _sent(run, reader)]
    closed = [min(max(reader.barriers, default=0) for reader in run.readers)]
    behind = [tick for tick in (*filled, *closed) if tick > worked]
    return min(behind, default=None)


def _sent(run: RealTimeRun, reader: Reader) -> Iterable[Entry]:
    """The rows that a reader has sent."""
    last = max(reader.barriers, default=0)
    return (entry for entry in reader.rows if entry.tick <= last)


def records_between(run: RealTimeRun, worked: int, tick: int) -> tuple[Record, ...]:
    """The records of the ticks behind `worked`, up to a tick, in order."""
    entries = [
        (entry.tick, number, entry)
        for number, reader in enumerate(run.readers)
        for entry in _sent(run, reader)
        if worked < entry.tick <= tick
    ]
    return tuple(
        (number, position)
        for _, number, entry in sorted(entries)
        for position in range(entry.start, entry.end)
    )
