"""The clock of a source: its newest time, epoch by epoch, and what is complete.

An event is late if its time was complete at the start of its epoch. The newest time is written
to the log of its source with the chunks of an epoch, so a replay judges as the first run did.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from cutwater.errors import Problem
from cutwater.flow.inference import StreamType
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.source import BAD, Chunk, RecordReader, Run, times_of
from cutwater.spark.exchange.batch import much_at_once

__all__ = [
    "Clock",
    "Numbering",
    "PartitionClock",
    "PartitionTimes",
    "SourceClock",
    "are_comparable",
    "is_time",
    "misplaced",
    "newest_of",
    "not_a_time",
]

_FOLLOWED = "mark of the others"
"""Beside the newest time: what an idle source took over; no record has a field of this name."""
_PARTITIONS = "newest of partitions"
"""Beside the newest time: that of each partition, and when it had input last."""


class Clock:
    """The clock of a source with a watermark rule: the newest time of its records.

    Once the source was idle it is also the mark that it followed, until its own rule passes that.
    """

    def __init__(self, source: Source, stream: StreamType) -> None:
        self._rule = source.watermark
        self._field = source.time or ""
        self._time_type = stream.time

    def after(self, before: Any, reader: RecordReader, chunk: Chunk) -> Any:
        """What is kept of the newest time once a chunk is read too."""
        with much_at_once():
            return self.newest(before, self._times(reader, chunk))

    def _times(self, reader: RecordReader, chunk: Chunk) -> Iterator[Any]:
        """The times of a chunk; those that are certainly not its newest may be missing."""
        runs = (_times_in(reader, run, self._field) for run in reader.runs(chunk))
        return (time for times in runs for time in _leading(times))

    def settled(self, before: Any, after: Any, now: float) -> Any:
        """What is kept once all chunks of an epoch are read, which is planned now."""
        return after

    def brief(self, kept: Any) -> Any:
        """What is kept, as far as it tells what is complete."""
        return kept

    def newest_in(self, kept: Any) -> Any | None:
        """The newest time itself in what is kept of it."""
        return self._time(newest_of(kept))

    def newest(self, before: Any, times: Iterable[Any]) -> Any:
        """The newest time once records of these times are read, in a form that JSON keeps."""
        newest, mark = self._load(before)
        newest = self._newest(newest, times, like=mark)
        own = self._by_rule(newest)
        is_passed = mark is None or (own is not None and mark <= own)
        return msgspec.to_builtins(newest) if is_passed else _with_mark(newest, mark)

    def _newest(self, before: Any, times: Iterable[Any], like: Any = None) -> Any:
        """The newest of times; those that do not compare with it, or with `like`, are bad."""
        newest = before
        for time in filter(is_time, times):
            other = like if newest is None else newest
            if other is None or are_comparable(other, time):
                newest = time if newest is None or newest <= time else newest
        return newest

    def reference(self, kept: Any) -> Any | None:
        """A time of the source with which all its times compare; None if there is none yet."""
        newest, mark = self._load(kept)
        return mark if newest is None else newest

    def completed(self, newest: Any) -> Any | None:
        """What is complete when this was the newest time; None if nothing is."""
        loaded, mark = self._load(newest)
        return _later(self._by_rule(loaded), mark)

    def following(self, newest: Any, mark: Any) -> Any | None:
        """The newest time with the mark of others; None if that completes nothing more."""
        own = self._in_own_kind(mark)
        before = self.completed(newest)
        if own is None or (before is not None and own <= before):
            return None
        return self._marked(newest, own)

    def _marked(self, newest: Any, mark: Any) -> Any:
        return _with_mark(self._load(newest)[0], mark)

    def _in_own_kind(self, mark: Any) -> Any | None:
        """The mark as a time of this source, or one a little before it; None if there is none."""
        if self._time_type is int and isinstance(mark, (float, Decimal)):
            return math.floor(mark) if math.isfinite(mark) else None
        try:
            own = msgspec.convert(msgspec.to_builtins(mark), self._time_type)
            return own if own <= mark else None
        except (msgspec.ValidationError, TypeError):
            return None

    def _by_rule(self, newest: Any) -> Any | None:
        return None if self._rule is None or newest is None else self._rule.watermark(newest)

    def are_late(self, values: Sequence[Any], completed: Any | None) -> list[bool]:
        """For each record: was its time complete?"""
        if completed is None:
            return [False] * len(values)
        return [bool(time <= completed) for time in times_of(values, self._field)]

    def first(self, newest: Any) -> int:
        """The number of the next record; of no use here."""
        return 0

    def _load(self, kept: Any) -> tuple[Any, Any]:
        """The newest time, and the mark of the others if there is one."""
        is_marked = isinstance(kept, dict) and _FOLLOWED in kept
        times = (kept["newest"], kept[_FOLLOWED]) if is_marked else (kept, None)
        newest, mark = map(self._time, times)
        return newest, mark

    def _time(self, kept: Any) -> Any:
        return None if kept is None else msgspec.convert(kept, self._time_type)


@dataclass(frozen=True)
class PartitionTimes:
    """How far a partition is."""

    newest: Any
    completed: Any | None
    seen: float
    """When it had input last, in seconds of the wall clock."""


class PartitionClock(Clock):
    """The clock of a source whose partitions go each at its own pace.

    Complete is what all of them are past. A partition counts from its first record on. One that
    had none for `patience` seconds while others had is let go, until it has one again; with None
    it is waited for. What was complete stays so: the records of one that comes back may be late.

    Kept is the newest time of all, that of each partition, when each was read last and since when
    it is behind the others, and what was complete where the partitions do not say so.
    """

    def __init__(self, source: Source, stream: StreamType, patience: float | None) -> None:
        super().__init__(source, stream)
        self._patience = patience

    def after(self, before: Any, reader: RecordReader, chunk: Chunk) -> Any:
        with much_at_once():
            found = self._newest(None, self._times(reader, chunk), like=self.reference(before))
        kept, lane = self._whole(before), str(chunk.number)
        known = kept[_PARTITIONS].get(lane)
        if found is None and known is None:
            return before
        own, newest = (
            msgspec.to_builtins(self._newest(self._time(old), [] if found is None else [found]))
            for old in (known and known["newest"], kept["newest"])
        )
        partitions = {**kept[_PARTITIONS], lane: {"newest": own, "seen": chunk.planned}}
        return {**kept, "newest": newest, _PARTITIONS: partitions}

    def settled(self, before: Any, after: Any, now: float) -> Any:
        if after is None:
            return None
        kept = self._whole(after)
        partitions = {}
        for lane, each in kept[_PARTITIONS].items():
            is_behind = each["seen"] != now
            behind = {"behind": each.get("behind", now)} if is_behind else {}
            if not (is_behind and self._is_given_up(now - behind["behind"])):
                partitions[lane] = {**each, **behind}
        done, own = self.completed(before), self._least(partitions)
        is_passed = done is None or (own is not None and done <= own)
        mark = None if is_passed else msgspec.to_builtins(done)
        return {**kept, _PARTITIONS: partitions, _FOLLOWED: mark}

    def _is_given_up(self, seconds: float) -> bool:
        return self._patience is not None and seconds >= self._patience

    def brief(self, kept: Any) -> Any:
        return None if kept is None else _without_partitions(kept, self.completed(kept))

    def completed(self, newest: Any) -> Any | None:
        kept = self._whole(newest)
        return _later(self._least(kept[_PARTITIONS]), self._time(kept[_FOLLOWED]))

    def partitions(self, kept: Any) -> dict[str, PartitionTimes]:
        """How far each partition is that is waited for."""
        found = {}
        for name, each in self._whole(kept)[_PARTITIONS].items():
            newest = self._time(each["newest"])
            found[name] = PartitionTimes(newest, self._by_rule(newest), each["seen"])
        return found

    def _marked(self, newest: Any, mark: Any) -> Any:
        return {**self._whole(newest), _FOLLOWED: msgspec.to_builtins(mark)}

    def _least(self, partitions: Mapping[str, Any]) -> Any | None:
        """What all partitions are past; None if nothing, or if there is none."""
        marks: list[Any] = [self._by_rule(self._time(p["newest"])) for p in partitions.values()]
        return None if None in marks else min(marks, default=None)

    def _whole(self, kept: Any) -> dict[str, Any]:
        """What is kept with nothing missing: there may be none yet, or that of all partitions."""
        if isinstance(kept, dict) and _PARTITIONS in kept:
            return kept
        return _without_partitions(kept, super().completed(kept))


def _without_partitions(kept: Any, done: Any | None) -> dict[str, Any]:
    """What is kept where only what is complete counts."""
    return {
        "newest": newest_of(kept),
        _PARTITIONS: {},
        _FOLLOWED: msgspec.to_builtins(done),
    }


def _later(own: Any | None, mark: Any | None) -> Any | None:
    """The later of what a source and the others have completed."""
    if mark is None or own is None:
        return own if mark is None else mark
    return own if mark <= own else mark


def _leading(times: list[Any]) -> list[Any]:
    """The newest of times if that is quickly told, else all of them."""
    if set(map(type, times)) not in ({int}, {dt.datetime}):
        return times
    try:
        least, most = min(times), max(times)
    except TypeError:  # datetimes with and without a zone
        return times
    return [most] if is_time(least) and is_time(most) else times


def is_time(value: Any) -> bool:
    """Has a value a place in an order, and can it be sent? A record with another time is bad.

    >>> is_time(5), is_time(float("nan")), is_time(1 << 64)
    (True, False, False)
    """
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 64
    try:
        return bool(value <= value)
    except (TypeError, ArithmeticError):
        return False


def are_comparable(one: Any, other: Any) -> bool:
    """Are two times of one kind?

    >>> are_comparable(1, 2.5), are_comparable(1, "2")
    (True, False)
    """
    try:
        one <= other  # noqa: B015
    except TypeError:
        return False
    return True


def misplaced(time: Any, reference: Any | None) -> str:
    """Why a time has no place among those of its source, one of which is given; empty: it has.

    >>> misplaced(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
    'its time, 2024-01-01 00:00:00, has no time zone, and the times before it have one'
    """
    if not is_time(time):
        return f"its time, {time}, has no place in an order or more than 64 bits"
    if reference is None or are_comparable(reference, time):
        return ""
    if isinstance(time, dt.datetime) and isinstance(reference, dt.datetime):
        has, have = ("a", "none") if time.tzinfo else ("no", "one")
        return f"its time, {time}, has {has} time zone, and the times before it have {have}"
    return (
        f"its time, {time}, cannot be compared with {reference}, a time of this source: they are "
        f"{type(time).__name__} and {type(reference).__name__}"
    )


def _with_mark(newest: Any, mark: Any) -> dict[str, Any]:
    return {"newest": msgspec.to_builtins(newest), _FOLLOWED: msgspec.to_builtins(mark)}


def newest_of(kept: Any) -> Any:
    """The newest time in what a log keeps of it, as JSON has it.

    >>> newest_of(5), newest_of({"newest": 5, "mark of the others": 9})
    (5, 5)
    """
    return kept["newest"] if isinstance(kept, dict) and _FOLLOWED in kept else kept


class Numbering:
    """The clock of a source without times: its records are numbered 0, 1, 2, …

    A bad record has a number as well, so one that is skipped leaves a gap.
    """

    def after(self, before: int | None, reader: RecordReader, chunk: Chunk) -> int:
        """How many records there are once a chunk is read too."""
        return (before or 0) + reader.count(chunk)

    def settled(self, before: int | None, after: int | None, now: float) -> int | None:
        """The same."""
        return after

    def brief(self, kept: int | None) -> int | None:
        """The same."""
        return kept

    def completed(self, newest: int | None) -> int | None:
        """The number of the last record; None if there is none."""
        return newest - 1 if newest else None

    def are_late(self, values: Sequence[Any], completed: int | None) -> list[bool]:
        """Never: numbers only grow."""
        return [False] * len(values)

    def first(self, newest: int | None) -> int:
        """The number of the next record."""
        return newest or 0

    def reference(self, kept: Any) -> None:
        """None: no record has a time."""


SourceClock = Clock | Numbering


def not_a_time(source: Source, time: Any, reason: str) -> Problem:
    """Why a value cannot be the time of an event."""
    return Problem(
        "not-a-time",
        f"{source.title} was given the time {time!r}; it has no place in an order: {reason}",
        "times of a source are of one kind and have <=; correct the input",
    )


def _times_in(reader: RecordReader, run: Run, field: str) -> list[Any]:
    """The times of the records of a run that are no bad ones."""
    try:
        return reader.times(run, field)
    except BAD:
        return list(_one_by_one(reader, run, field))


def _one_by_one(reader: RecordReader, run: Run, field: str) -> Iterator[Any]:
    for raw in run.raws:
        try:
            yield getattr(reader.decode_one(raw), field)
        except BAD:
            continue
