"""Ticks of which nothing was released: a start forgets them, and plans their input again (rule 11).

R is the newest tick of which a sink may have released something, or that a snapshot has. What comes
after it had no effect outside of the run: its rows are in no sink, and the states that it led to
are in no snapshot that counts. So it need not be replayed, and a corrected input, a corrected flow
or smaller limits take effect in it. It is forgotten in the plans of all sources alike: a row of
tick R may be made of records of every source up to R, and of none after it.

The plans of the old generation stay as they are. Those of the new one begin without these ticks,
and both this and K, after which new ticks come, take effect at once: when the generation is open.
A crash before leaves the old plans, and the next start asks the sinks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cutwater.spark.checkpoint.newest_epoch import released_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.job.spec import Job
from cutwater.spark.realtime.plan_log import PlannedTick, TickPlan

__all__ = ["newest_released", "without_unreleased"]


def newest_released(job: Job, plans: Sequence[TickPlan], common: int) -> int:
    """R; every sink is claimed, so what their ledgers say can no longer change.

    Sinks are asked from the newest tick down. That is short: readers are a few ticks ahead of what
    was released. Sinks that have released nothing at all after the snapshot are asked once.
    """
    ticks = sorted({each.tick for plan in plans for each in plan.after(common)})
    if not ticks or not (_is_noted_behind(job, common) or _is_released(job, ticks[0])):
        return common
    return next((tick for tick in reversed(ticks) if _is_released(job, tick)), common)


def without_unreleased(plan: TickPlan, common: int, released: int) -> tuple[PlannedTick, ...]:
    """The ticks of a plan that a start replays.

    The decision where a source begins is kept, even if no record was released since: a source
    that begins at the end of a topic would otherwise skip what arrived meanwhile.
    """
    kept: list[PlannedTick] = []
    for planned in plan.after(common):
        if planned.tick > released and not _only_begins(planned):
            break
        kept.append(planned)
    return tuple(kept)


def _only_begins(planned: PlannedTick) -> bool:
    return not planned.is_end and all(chunk.is_beginning for chunk in planned.chunks)


def _is_noted_behind(job: Job, common: int) -> bool:
    """Does a ledger name a tick after the snapshot?"""
    noted = (sink.newest_epoch(name, job.query_id) for name, sink in job.sinks.items())
    return any(tick is not None and tick > common for tick in noted)


def _is_released(job: Job, tick: int) -> bool:
    """May a sink have released something of a tick? One that cannot be asked may have."""
    checkpoint = Checkpoint(Path(job.checkpoint))
    identity = checkpoint.identity()
    if identity is not None and released_of(checkpoint, identity, job, tick):
        return True
    return any(sink.released(job.claim_of(name), tick) for name, sink in job.sinks.items())
