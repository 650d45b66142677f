"""Which chunks a source has read, in which epoch and in which order: a durable log.

An entry is written before Spark may log the offset that names it; an entry that no offset names
(a crash came between) is the next epoch. Of entries that no replay needs there remains, for each
file or partition, one chunk that spans all that was read of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cutwater.spark.connectors.base.source import Chunk, Feed
from cutwater.spark.connectors.base.watermarks import Clock, SourceClock
from cutwater.spark.storage.durable import make_folder
from cutwater.spark.storage.entry_log import EntryLog

__all__ = ["LOG", "ChunkLog", "began"]

LOG = "the log of a source"
"""How the log is named where it is damaged."""

_BEGAN = "began"


def began(log: Path) -> float | None:
    """When a log was opened for the first time, in seconds of the wall clock; None if never."""
    mark = log / _BEGAN
    return mark.stat().st_mtime if mark.exists() else None


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
        self._merge = feed.merge
        self._reader = feed.reader(tp)
        self._clock = clock
        self._now = now
        make_folder(log)
        if began(log) is None:
            (log / _BEGAN).touch(mode=0o600)
        self._began = began(log) or 0.0
        self._planner = feed.planner(tp, now)
        self._last: Chunk | None = None
        self._log = EntryLog(log, LOG, self._note, generation=generation, condense=self._condensed)

    def _note(self, kept: list[dict[str, Any]]) -> None:
        for chunk in map(Chunk.of_json, kept):
            self._last = chunk
            if not chunk.is_decision:
                self._planner.note(chunk)

    def _condensed(self, kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What a start needs of entries: how far each number is, and how the last of them ended."""
        chunks = list(map(Chunk.of_json, kept))
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
        return [replace(end, newest_before=None, first=0).to_brief_json() for end in ends]

    @property
    def newest(self) -> int:
        """The number of the newest entry."""
        return self._log.newest

    def read(self, number: int) -> list[Chunk]:
        """The chunks of an entry."""
        return list(map(Chunk.of_json, self._log.read(number)))

    def freeze(self) -> None:
        """From now on take only what is there now."""
        self._planner.freeze()

    def has_input(self) -> bool:
        """Is there something that no entry has taken yet?"""
        return self._planner.has_input()

    def extend(self) -> int:
        """Take what an epoch may read into a new entry; the newest entry's number."""
        chunks = self._planner.take()
        if chunks:
            self._append(self._timed(chunks, self._now()))
        return self.newest

    def quiet_since(self) -> float:
        """When there was new input last, in seconds of the wall clock; else when the log began."""
        planned = self._last.planned if self._last else None
        return self._began if planned is None else planned

    def follow(self, mark: Any) -> int:
        """Let the source complete what others have; the newest entry's number.

        The entry reads nothing. There is none if the source has completed as much by itself.
        """
        last = self._last or Chunk(-1, 0, 0)
        before = last.newest_after
        after = self._clock.following(before, mark) if isinstance(self._clock, Clock) else None
        if after is not None:
            brief = self._clock.brief(before) if self._clock else before
            decision = replace(last, start=last.end, newest_before=brief, newest_after=after)
            self._append([decision])
        return self.newest

    def _append(self, chunks: list[Chunk]) -> None:
        kept = [chunk.to_json() for chunk in chunks]
        self._log.append(kept)
        self._note(kept)

    def _timed(self, chunks: list[Chunk], now: float) -> list[Chunk]:
        """Chunks of an epoch that is planned now, with what was newest before and is after."""
        before = after = self._last.newest_after if self._last else None
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
