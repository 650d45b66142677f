"""Lets an idle source follow the others, so that it does not hold back their watermarks.

The frontier of a step is the minimum of what all its upstream sources have completed, so one source
without new input stalls it. A source bound with ``idle_after`` follows, once it has been quiet for
that long, what the others have completed according to their logs at that moment: the minimum over
those that are not idle themselves, or, if all are, the maximum.

The decision is an entry of the source's own log that reads nothing, written before it takes effect.
A replay finds it there, and consults neither a clock nor the other sources.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.offset_log import LOG, began
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.job.column_requirements import least_and_greatest
from cutwater.spark.job.spec import Job
from cutwater.spark.storage.entry_log import newest_entry

__all__ = ["Patience", "watermark_to_follow"]


@dataclass(frozen=True)
class Patience:
    """The clock by which a source counts as idle."""

    now: Callable[[], float]
    """Seconds of the wall clock."""
    began: float
    """Quiet time before this does not count: a source is given time to begin."""

    def is_over(self, limit: float | None, quiet_since: float) -> bool:
        """Has a source with this idle timeout been quiet for that long?"""
        return limit is not None and self.now() - max(quiet_since, self.began) >= limit


def watermark_to_follow(job: Job, source: str, patience: Patience) -> Any | None:
    """The watermark that an idle source may adopt from the sources it meets; None: none."""
    active: dict[str, Any] = {}
    idle: dict[str, Any] = {}
    for other in sorted(job.requirements.met_by(source)):
        log = Path(job.checkpoint) / "sources" / other
        end = _end_of(log)
        is_idle = _is_idle(log, end, job.sources[other].idle_after, patience)
        (idle if is_idle else active)[other] = _completed(job, other, end)
    who = f"source '{source}', which is idle, would follow"
    if active:
        is_held = None in active.values()
        return None if is_held else least_and_greatest(active, who)[0]
    known = {other: watermark for other, watermark in idle.items() if watermark is not None}
    return least_and_greatest(known, who)[1] if known else None


def _is_idle(log: Path, end: Chunk | None, limit: float | None, patience: Patience) -> bool:
    """Has another source decided to be idle, or would it now?"""
    if end is None:
        since = began(log)
        return since is not None and patience.is_over(limit, since)
    return end.is_decision or patience.is_over(limit, end.planned or 0)


def _completed(job: Job, source: str, end: Chunk | None) -> Any | None:
    tracker = job.watermark_tracker_of(source)
    return tracker.completed(end.newest_after) if tracker and end else None


def _end_of(log: Path) -> Chunk | None:
    """The end of another source's log as of now; its reader may be appending to it."""
    chunks = newest_entry(log, LOG)
    return Chunk.of_json(chunks[-1]) if chunks else None
