"""The watermark of a source, tracked from its newest event time in each epoch.

An event is late if its time was complete at the start of its epoch. The newest time is written to
the offset log together with the chunks of an epoch, so a replay finds the same events late.
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
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.source import BAD, Chunk, RawBatch, RecordReader, times_of
from cutwater.spark.exchange.batch import without_gc

__all__ = [
    "Numbering",
    "PartitionTimes",
    "PartitionWatermarkTracker",
    "SourceTracker",
    "WatermarkTracker",
    "are_comparable",
    "is_time",
    "misplaced",
    "newest_of",
    "not_a_time",
]

_FOLLOWED = "watermark of the others"
"""Logged beside the newest time: the watermark of the others that an idle source adopted.

No record has a field of this name, so it distinguishes such an entry from a time that is a record.
"""
_PARTITIONS = "newest of partitions"
"""Logged beside the newest time: that of each partition, and when it last had input."""


class WatermarkTracker:
    """Tracks the watermark of a source that has a rule for it, by the newest time of its records.

    For a source that was idle, also the watermark of the others that it followed, until the
    watermark of its own records passes that one. "Kept" is what the offset log stores of this.
    """

    def __init__(self, source: Source, stream: StreamType) -> None:
        self._rule = source.watermark
        self._field = source.time or ""
        self._time_type = stream.time

    def after(self, before: Any, reader: RecordReader, chunk: Chunk) -> Any:
        """What is kept after a chunk is read as well."""
        with without_gc():
            return self.newest(before, self._times(reader, chunk))

    def _times(self, reader: RecordReader, chunk: Chunk) -> Iterator[Any]:
        """The times of a chunk; times that are certainly not its newest may be left out."""
        runs = (_times_in(reader, raw_batch, self._field) for raw_batch in reader.batches(chunk))
        return (time for times in runs for time in _leading(times))

    def settled(self, before: Any, after: Any, now: float) -> Any:
        """What is kept after all chunks of the epoch that is planned at `now`."""
        return after

    def brief(self, kept: Any) -> Any:
        """What is kept, reduced to what determines which times are complete."""
        return kept

    def newest_in(self, kept: Any) -> Any | None:
        """The newest time itself, decoded from what is kept."""
        return self._time(newest_of(kept))

    def newest(self, before: Any, times: Iterable[Any]) -> Any:
        """What is kept after records of these times are read, as JSON."""
        newest, watermark = self._load(before)
        newest = self._newest(newest, times, like=watermark)
        own = self._by_rule(newest)
        is_passed = watermark is None or (own is not None and watermark <= own)
        return msgspec.to_builtins(newest) if is_passed else _with_watermark(newest, watermark)

    def _newest(self, before: Any, times: Iterable[Any], like: Any = None) -> Any:
        """The newest of times; ignores bad ones, which do not compare with it or with `like`."""
        newest = before
        for time in filter(is_time, times):
            other = like if newest is None else newest
            if other is None or are_comparable(other, time):
                newest = time if newest is None or newest <= time else newest
        return newest

    def reference(self, kept: Any) -> Any | None:
        """A time that all times of the source must be comparable with; None if there is none."""
        newest, watermark = self._load(kept)
        return watermark if newest is None else newest

    def completed(self, newest: Any) -> Any | None:
        """The watermark that follows from what is kept; None if no time is complete."""
        loaded, watermark = self._load(newest)
        return _later(self._by_rule(loaded), watermark)

    def following(self, newest: Any, watermark: Any) -> Any | None:
        """What is kept once an idle source adopts the watermark of the others.

        None if that completes nothing more.
        """
        own = self._in_own_kind(watermark)
        before = self.completed(newest)
        if own is None or (before is not None and own <= before):
            return None
        return self._with_followed(newest, own)

    def _with_followed(self, newest: Any, watermark: Any) -> Any:
        return _with_watermark(self._load(newest)[0], watermark)

    def _in_own_kind(self, watermark: Any) -> Any | None:
        """The watermark as a time of this source, rounded down; None if there is no such time."""
        if self._time_type is int and isinstance(watermark, (float, Decimal)):
            return math.floor(watermark) if math.isfinite(watermark) else None
        try:
            own = msgspec.convert(msgspec.to_builtins(watermark), self._time_type)
            return own if own <= watermark else None
        except (msgspec.ValidationError, TypeError):
            return None

    def _by_rule(self, newest: Any) -> Any | None:
        return None if self._rule is None or newest is None else self._rule.watermark(newest)

    def are_late(self, values: Sequence[Any], completed: Any | None) -> list[bool]:
        """For each record: is it late, given the watermark `completed`?"""
        if completed is None:
            return [False] * len(values)
        return [bool(time <= completed) for time in times_of(values, self._field)]

    def first(self, newest: Any) -> int:
        """0: records that have times are not numbered."""
        return 0

    def _load(self, kept: Any) -> tuple[Any, Any]:
        """The newest time, and the adopted watermark of the others or None."""
        is_marked = isinstance(kept, dict) and _FOLLOWED in kept
        times = (kept["newest"], kept[_FOLLOWED]) if is_marked else (kept, None)
        newest, watermark = map(self._time, times)
        return newest, watermark

    def _time(self, kept: Any) -> Any:
        return None if kept is None else msgspec.convert(kept, self._time_type)


@dataclass(frozen=True)
class PartitionTimes:
    """The newest time and the watermark of one partition."""

    newest: Any
    completed: Any | None
    seen: float
    """When it last had input, in seconds of the wall clock."""


class PartitionWatermarkTracker(WatermarkTracker):
    """Tracks the watermark of a source whose partitions each progress at their own pace.

    The watermark is the minimum over the partitions. A partition counts from its first record on.
    One without input for `patience` seconds while others had some is idle and ignored until it has
    input again; if `patience` is None, it holds back the watermark. The watermark never moves back,
    so the records of a partition that returns may be late.

    Kept are the newest time of all partitions and of each, when each last had input and since when
    it lags behind the others, and the watermark if that of the partitions is lower.
    """

    def __init__(self, source: Source, stream: StreamType, patience: float | None) -> None:
        super().__init__(source, stream)
        self._patience = patience

    def after(self, before: Any, reader: RecordReader, chunk: Chunk) -> Any:
        with without_gc():
            found = self._newest(None, self._times(reader, chunk), like=self.reference(before))
        kept, bucket = self._whole(before), str(chunk.number)
        known = kept[_PARTITIONS].get(bucket)
        if found is None and known is None:
            return before
        own, newest = (
            msgspec.to_builtins(self._newest(self._time(old), [] if found is None else [found]))
            for old in (known and known["newest"], kept["newest"])
        )
        partitions = {**kept[_PARTITIONS], bucket: {"newest": own, "seen": chunk.planned}}
        return {**kept, "newest": newest, _PARTITIONS: partitions}

    def settled(self, before: Any, after: Any, now: float) -> Any:
        if after is None:
            return None
        kept = self._whole(after)
        partitions = {}
        for bucket, each in kept[_PARTITIONS].items():
            is_behind = each["seen"] != now
            behind = {"behind": each.get("behind", now)} if is_behind else {}
            if not (is_behind and self._is_given_up(now - behind["behind"])):
                partitions[bucket] = {**each, **behind}
        done, own = self.completed(before), self._least(partitions)
        is_passed = done is None or (own is not None and done <= own)
        watermark = None if is_passed else msgspec.to_builtins(done)
        return {**kept, _PARTITIONS: partitions, _FOLLOWED: watermark}

    def _is_given_up(self, seconds: float) -> bool:
        return self._patience is not None and seconds >= self._patience

    def brief(self, kept: Any) -> Any:
        return None if kept is None else _without_partitions(kept, self.completed(kept))

    def completed(self, newest: Any) -> Any | None:
        kept = self._whole(newest)
        return _later(self._least(kept[_PARTITIONS]), self._time(kept[_FOLLOWED]))

    def partitions(self, kept: Any) -> dict[str, PartitionTimes]:
        """The times of each partition that is not idle, by its name."""
        found = {}
        for name, each in self._whole(kept)[_PARTITIONS].items():
            newest = self._time(each["newest"])
            found[name] = PartitionTimes(newest, self._by_rule(newest), each["seen"])
        return found

    def _with_followed(self, newest: Any, watermark: Any) -> Any:
        return {**self._whole(newest), _FOLLOWED: msgspec.to_builtins(watermark)}

    def _least(self, partitions: Mapping[str, Any]) -> Any | None:
        """The lowest watermark of the partitions; None if one has none, or there are none."""
        watermarks: list[Any] = [
            self._by_rule(self._time(p["newest"])) for p in partitions.values()
        ]
        return None if None in watermarks else min(watermarks, default=None)

    def _whole(self, kept: Any) -> dict[str, Any]:
        """What is kept, with all its fields: the log may hold nothing yet, or no partitions."""
        if isinstance(kept, dict) and _PARTITIONS in kept:
            return kept
        return _without_partitions(kept, super().completed(kept))


def _without_partitions(kept: Any, done: Any | None) -> dict[str, Any]:
    """What is kept if only the watermark matters, not how far each partition is."""
    return {
        "newest": newest_of(kept),
        _PARTITIONS: {},
        _FOLLOWED: msgspec.to_builtins(done),
    }


def _later(own: Any | None, watermark: Any | None) -> Any | None:
    """The later of two watermarks: a source's own and that of the others."""
    if watermark is None or own is None:
        return own if watermark is None else watermark
    return own if watermark <= own else watermark


def _leading(times: list[Any]) -> list[Any]:
    """Only the newest of times if that is quick to find, else all of them."""
    if set(map(type, times)) not in ({int}, {dt.datetime}):
        return times
    try:
        least, most = min(times), max(times)
    except TypeError:  # datetimes with and without a zone
        return times
    return [most] if is_time(least) and is_time(most) else times


def is_time(value: Any) -> bool:
    """Is a value ordered, and can it be encoded? A record with any other time is bad.

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
    """Can two times be compared?

    >>> are_comparable(1, 2.5), are_comparable(1, "2")
    (True, False)
    """
    try:
        one <= other  # noqa: B015
    except TypeError:
        return False
    return True


def misplaced(time: Any, reference: Any | None) -> str:
    """Why a time does not compare with `reference`, a time of its source; empty: it does.

    >>> misplaced(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
    'its time, 2024-01-01 00:00:00, has no time zone, and the times before it have one'
    """
    if not is_time(time):
        return f"its time, {time}, has no order, or more than 64 bits"
    if reference is None or are_comparable(reference, time):
        return ""
    if isinstance(time, dt.datetime) and isinstance(reference, dt.datetime):
        has, have = ("a", "none") if time.tzinfo else ("no", "one")
        return f"its time, {time}, has {has} time zone, and the times before it have {have}"
    return (
        f"its time, {time}, cannot be compared with {reference}, a time of this source: they are "
        f"{type(time).__name__} and {type(reference).__name__}"
    )


def _with_watermark(newest: Any, watermark: Any) -> dict[str, Any]:
    return {"newest": msgspec.to_builtins(newest), _FOLLOWED: msgspec.to_builtins(watermark)}


def newest_of(kept: Any) -> Any:
    """The newest time in what the offset log keeps, as JSON.

    >>> newest_of(5), newest_of({"newest": 5, "watermark of the others": 9})
    (5, 5)
    """
    return kept["newest"] if isinstance(kept, dict) and _FOLLOWED in kept else kept


class Numbering:
    """Tracks a source without times: its records are numbered 0, 1, 2, …

    Bad records are numbered too, so one that is skipped leaves a gap.
    """

    def after(self, before: int | None, reader: RecordReader, chunk: Chunk) -> int:
        """The number of records after a chunk is read as well."""
        return (before or 0) + reader.count(chunk)

    def settled(self, before: int | None, after: int | None, now: float) -> int | None:
        """The number of records after the epoch, unchanged."""
        return after

    def brief(self, kept: int | None) -> int | None:
        """The number of records, unchanged."""
        return kept

    def completed(self, newest: int | None) -> int | None:
        """The number of the last record; None if there is none."""
        return newest - 1 if newest else None

    def are_late(self, values: Sequence[Any], completed: int | None) -> list[bool]:
        """False for each record: numbers only grow."""
        return [False] * len(values)

    def first(self, newest: int | None) -> int:
        """The number of the next record."""
        return newest or 0

    def reference(self, kept: Any) -> None:
        """None: no record has a time."""


SourceTracker = WatermarkTracker | Numbering


def not_a_time(source: Source, time: Any, reason: str) -> Problem:
    """Why a value cannot be the time of an event."""
    return Problem(
        "not-a-time",
        f"{source.title} was given the time {time!r}, which cannot be ordered: {reason}",
        "times of a source are of one kind and have <=; correct the input",
    )


def _times_in(reader: RecordReader, raw_batch: RawBatch, field: str) -> list[Any]:
    """The times of the good records of a batch."""
    try:
        return reader.times(raw_batch, field)
    except BAD:
        return list(_one_by_one(reader, raw_batch, field))


def _one_by_one(reader: RecordReader, raw_batch: RawBatch, field: str) -> Iterator[Any]:
    for raw in raw_batch.raws:
        try:
            yield getattr(reader.decode_one(raw), field)
        except BAD:
            continue
