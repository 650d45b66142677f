"""Which chunks a source has read, in which epoch and in which order: a durable log.

An entry is written before Spark may log the offset that names it; an entry that no offset names
(a crash came between) is the next epoch. Of entries that no replay needs there remains, for each
file or partition, one chunk that spans all that was read of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cutwater.spark.connectors.base.source import Chunk, Feed
from cutwater.spark.connectors.base.watermarks import Clock, SourceClock
from cutwater.spark.storage.durable import make_folder
from cutwater.spark.storage.entry_log import EntryLog

__all__ = ["LOG", "ChunkLog", "SourcePlan", "began"]

LOG = "the log of a source"
"""How the log is named where it is damaged."""

_BEGAN = "began"


def began(log: Path) -> float | None:
    """When a log was opened for the first time, in seconds of the wall clock; None if never."""
    mark = log / _BEGAN
    return mark.stat().st_mtime if mark.exists() else None


class SourcePlan:
    """What a source reads next and what it completes by that, behind what was noted of it.

    Nothing is written here: the two engines keep what was planned each in a log of its own.
    """

    def __init__(
        self, feed: Feed, tp: Any, clock: SourceClock | None, now: Callable[[], float]
    ) -> None:
        self._merge = feed.merge
        self._reader = feed.reader(tp)
        self._planner = feed.planner(tp, now)
        self._clock = clock
        self._now = now
        self.last: Chunk | None = None
        """The chunk that was noted last."""

    def note(self, chunks: Iterable[Chunk]) -> None:
        """Take note of chunks that are in the log: all that are there, in order, and new ones."""
        for chunk in chunks:
            self.last = chunk
            if not chunk.is_decision:
                self._planner.note(chunk)

    def freeze(self) -> None:
        """From now on take only what is there now."""
        self._planner.freeze()

    def has_input(self) -> bool:
        """Is there something that was not noted yet?"""
        return self._planner.has_input()

    def take(self) -> list[Chunk]:
        """What is read next, with what is complete before and after; to be logged, then noted."""
        chunks = self._planner.take()
        return self._timed(chunks, self._now()) if chunks else []

    def followed(self, mark: Any) -> Chunk | None:
        """The decision to complete what others have; None if the source has done so by itself."""
        last = self.last or Chunk(-1, 0, 0)
        before = last.newest_after
        after = self._clock.following(before, mark) if isinstance(self._clock, Clock) else None
        if after is None:
            return None
        brief = self._clock.brief(before) if self._clock else before
        return replace(last, start=last.end, newest_before=brief, newest_after=after)

    def condensed(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """What a start needs of chunks: how far each number is, and how the last of them ended."""
        spans: dict[int, Chunk] = {}
        for chunk in chunks:
            if not chunk.is_decision:
                before = spans.pop(chunk.number, None)
                spans[chunk.number] = self._merge(before, chunk) if before else chunk
        ends = [replace(span, newest_after=None, planned=None) for span in spans.values()]
        if chunks and chunks[-1].is_decision:
            ends.append(chunks[-1])
        elif chunks:
            last = chunks[-1]
            ends[-1] = replace(ends[-1], newest_after=last.newest_after, planned=last.planned)
        return [replace(end, newest_before=None, first=0) for end in ends]

    def _timed(self, chunks: list[Chunk], now: float) -> list[Chunk]:
        """Chunks of an epoch that is planned now, with what was newest before and is after."""
        before = after = self.last.newest_after if self.last else None
        timed = []
        for chunk in chunks:
            chunk = replace(chunk, planned=now)
            if self._clock is not None:  # else a later run may ask for times again
                chunk = replace(chunk, first=self._clock.first(after))
                after = self._clock.after(after, self._reader, chunk)
            timed.append(chunk)
        if self._clock is None:
            return [replace(chunk, newest_before=before, newest_after=after) for chunk in timed]
        after = self._clock.settled(before, after, now)
        brief = [self._clock.brief(kept) for kept in (before, after)]
        timed = [replace(chunk, newest_before=brief[0], newest_after=brief[1]) for chunk in timed]
        return [*timed[:-1], replace(timed[-1], newest_after=after)]


class ChunkLog:
    """The log of one source; entries count from 1."""

    def __init__(
        self,
        feed: Feed,
        tp: Any,
        log: Path,
        clock: SourceClock | None = None,
        now: Callable[[], float] = time.time,
        generation: int = 0,
    ) -> None:
        make_folder(log)
        if began(log) is None:
            (log / _BEGAN).touch(mode=0o600)
        self._began = began(log) or 0.0
        self._plan = SourcePlan(feed, tp, clock, now)
        self._log = EntryLog(log, LOG, self._note, generation=generation, condense=self._condensed)

    def _note(self, kept: list[dict[str, Any]]) -> None:
        self._plan.note(map(Chunk.of_json, kept))

    def _condensed(self, kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
        chunks = self._plan.condensed(list(map(Chunk.of_json, kept)))
        return [chunk.to_brief_json() for chunk in chunks]

    @property
    def newest(self) -> int:
        """The number of the newest entry."""
        return self._log.newest

    def read(self, number: int) -> list[Chunk]:
        """The chunks of an entry."""
        return list(map(Chunk.of_json, self._log.read(number)))

    def freeze(self) -> None:
        """From now on take only what is there now."""
        self._plan.freeze()

    def has_input(self) -> bool:
        """Is there something that no entry has taken yet?"""
        return self._plan.has_input()

    def extend(self) -> int:
        """Take what an epoch may read into a new entry; the newest entry's number."""
        return self._append(self._plan.take())

    def quiet_since(self) -> float:
        """When there was new input last, in seconds of the wall clock; else when the log began."""
        planned = self._plan.last.planned if self._plan.last else None
        return self._began if planned is None else planned

    def follow(self, mark: Any) -> int:
        """Let the source complete what others have; the newest entry's number.

        The entry reads nothing. There is none if the source has completed as much by itself.
        """
        decision = self._plan.followed(mark)
        return self._append([decision] if decision else [])

    def _append(self, chunks: list[Chunk]) -> int:
        if chunks:
            self._log.append([chunk.to_json() for chunk in chunks])
            self._plan.note(chunks)
        return self.newest
