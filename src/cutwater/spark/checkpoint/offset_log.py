"""The offset log of a source: which chunks it read, in which epoch and order; durable.

An entry is written before Spark may log the offset that refers to it; an entry without an offset (a
crash came between) becomes the next epoch. Compaction replaces entries that no replay needs by one
chunk per file or partition, which spans all that was read of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cutwater.spark.connectors.base.source import Chunk, SourceConnector
from cutwater.spark.connectors.base.watermarks import SourceTracker, WatermarkTracker
from cutwater.spark.storage.durable import make_folder
from cutwater.spark.storage.entry_log import EntryLog

__all__ = ["LOG", "ChunkLog", "SourcePlan", "began"]

LOG = "the log of a source"
"""The name of the log in messages about damage."""

_BEGAN = "began"


def began(log: Path) -> float | None:
    """When a log was first opened, in Unix seconds; None if never."""
    began = log / _BEGAN
    return began.stat().st_mtime if began.exists() else None


class SourcePlan:
    """Plans what a source reads next, and which times that completes, from the chunks logged so
    far.

    It writes nothing: each engine stores the plan in a log of its own.
    """

    def __init__(
        self,
        connector: SourceConnector,
        tp: Any,
        tracker: SourceTracker | None,
        now: Callable[[], float],
    ) -> None:
        self._merge = connector.merge
        self._reader = connector.reader(tp)
        self._planner = connector.planner(tp, now)
        self._tracker = tracker
        self._now = now
        self.last: Chunk | None = None
        """The newest chunk in the log."""

    def advance(self, chunks: Iterable[Chunk]) -> None:
        """Advance past chunks that are in the log: at a start all, in order; later each new one."""
        for chunk in chunks:
            self.last = chunk
            if not chunk.is_decision:
                self._planner.advance(chunk)

    def freeze(self) -> None:
        """From now on plan only input that exists now."""
        self._planner.freeze()

    def has_input(self) -> bool:
        """Is there input that is not in the log yet?"""
        return self._planner.has_input()

    def poll(self) -> list[Chunk]:
        """What to read next, with the times complete before and after; log it, then `advance`."""
        chunks = self._planner.poll()
        return self._timed(chunks, self._now()) if chunks else []

    def followed(self, watermark: Any) -> Chunk | None:
        """The decision to follow the others' watermark; None if the source's own is as high."""
        last = self.last or Chunk(-1, 0, 0)
        before = last.newest_after
        after = (
            self._tracker.following(before, watermark)
            if isinstance(self._tracker, WatermarkTracker)
            else None
        )
        if after is None:
            return None
        brief = self._tracker.brief(before) if self._tracker else before
        return replace(last, start=last.end, newest_before=brief, newest_after=after)

    def condensed(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Merge chunks to what a start needs: one per file or partition, and the newest time."""
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
        """The chunks of an epoch planned now, with the newest time before and after each."""
        before = after = self.last.newest_after if self.last else None
        timed = []
        for chunk in chunks:
            chunk = replace(chunk, planned=now)
            if self._tracker is not None:  # else keep it: a later run may need times
                chunk = replace(chunk, first=self._tracker.first(after))
                after = self._tracker.after(after, self._reader, chunk)
            timed.append(chunk)
        if self._tracker is None:
            return [replace(chunk, newest_before=before, newest_after=after) for chunk in timed]
        after = self._tracker.settled(before, after, now)
        brief = [self._tracker.brief(kept) for kept in (before, after)]
        timed = [replace(chunk, newest_before=brief[0], newest_after=brief[1]) for chunk in timed]
        return [*timed[:-1], replace(timed[-1], newest_after=after)]


class ChunkLog:
    """The log of one source; entries are numbered from 1."""

    def __init__(
        self,
        connector: SourceConnector,
        tp: Any,
        log: Path,
        tracker: SourceTracker | None = None,
        now: Callable[[], float] = time.time,
        generation: int = 0,
    ) -> None:
        make_folder(log)
        if began(log) is None:
            (log / _BEGAN).touch(mode=0o600)
        self._began = began(log) or 0.0
        self._plan = SourcePlan(connector, tp, tracker, now)
        self._log = EntryLog(log, LOG, self._note, generation=generation, condense=self._condensed)

    def _note(self, kept: list[dict[str, Any]]) -> None:
        self._plan.advance(map(Chunk.of_json, kept))

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
        """From now on plan only input that exists now."""
        self._plan.freeze()

    def has_input(self) -> bool:
        """Is there input that is in no entry yet?"""
        return self._plan.has_input()

    def extend(self) -> int:
        """Append an entry with the input of an epoch, if any; return the newest entry's number."""
        return self._append(self._plan.poll())

    def quiet_since(self) -> float:
        """When new input was last seen, in Unix seconds; if never, when the log began."""
        planned = self._plan.last.planned if self._plan.last else None
        return self._began if planned is None else planned

    def follow(self, watermark: Any) -> int:
        """Let an idle source complete what the others have; return the newest entry's number.

        The entry reads nothing. There is none if the source has completed as much by itself.
        """
        decision = self._plan.followed(watermark)
        return self._append([decision] if decision else [])

    def _append(self, chunks: list[Chunk]) -> int:
        if chunks:
            self._log.append([chunk.to_json() for chunk in chunks])
            self._plan.advance(chunks)
        return self.newest
