"""The state of a step at a tick, read from the snapshots of its tasks; no session is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from cutwater.errors import Problem, RefusedError
from cutwater.ordering import bucket_of, canonical
from cutwater.spark.checkpoint.compatibility import Identity
from cutwater.spark.checkpoint.state_reader import StepState, kept_step, rows_of_log
from cutwater.spark.checkpoint.store import no_checkpoint
from cutwater.spark.exchange.bucket_hash import labels
from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint
from cutwater.spark.realtime.opening import Opening, newest_opening
from cutwater.spark.realtime.snapshots import Changes
from cutwater.spark.state.changelog import HEAD_KEY

__all__ = ["read_state_at_tick"]

_ATTEMPTS = 20
"""How often reading is retried: an active run replaces files."""


def read_state_at_tick(
    checkpoint: RealTimeCheckpoint,
    step: str,
    *,
    tick: int | None = None,
    keys: Sequence[Any] = (),
    limit: int | None = None,
) -> StepState:
    """The state of a step at a tick that has a snapshot, by default the newest.

    Read-only, and safe while a run is active.
    """
    identity = checkpoint.identity()
    if identity is None:
        raise RefusedError(no_checkpoint(checkpoint))
    kept = kept_step(identity, step)
    wanted = {canonical(key) for key in keys}
    chosen, tasks = _loaded(checkpoint, kept.level - 1, tick)
    names = _labels(identity, wanted)
    found = (
        row
        for state in tasks
        for label in sorted(state)
        if names is None or label in names
        for row in rows_of_log(_log(state, label), step, kept, wanted)
    )
    rows = list(islice(found, None if limit is None else limit + 1))
    is_whole = limit is None or len(rows) <= limit
    return StepState(identity.flow, step, chosen, rows[:limit], is_whole, checkpoint.unit)


def _loaded(
    checkpoint: RealTimeCheckpoint, level: int, tick: int | None
) -> tuple[int, list[Changes]]:
    """The states of all tasks of a level at one tick."""
    for left in reversed(range(_ATTEMPTS)):
        opening = newest_opening(checkpoint.root)
        common = opening.snapshots.common() if opening else -1
        if opening is None or common < 0:
            raise RefusedError(_no_snapshot(checkpoint))
        chosen = common if tick is None else tick
        if not opening.snapshots.has(chosen):
            raise RefusedError(_no_such_tick(checkpoint, chosen, _ticks(opening)))
        try:
            of = opening.snapshots.of
            return chosen, [of(level, p).load(chosen) for p in range(opening.partitions)]
        except FileNotFoundError:
            if not left:
                raise
        except RefusedError:  # a file that was replaced meanwhile looks like a gap
            if not left:
                raise
    raise AssertionError("the last attempt returns or raises")


def _labels(identity: Identity, keys: Collection[bytes]) -> set[int] | None:
    """The labels of the buckets that the keys are in; None: of all."""
    names = labels(identity.buckets)
    return {names[bucket_of(key, identity.buckets)] for key in keys} if keys else None


def _log(state: Changes, label: int) -> dict[int, bytes]:
    return {n: data for n, data in state[label].items() if n != HEAD_KEY and data is not None}


def _ticks(opening: Opening) -> Iterator[int]:
    """The ticks at which a task has stored something, and all have a state."""
    stored = {each.through for each in opening.snapshots.all_stored()}
    return (tick for tick in sorted(stored) if opening.snapshots.has(tick))


def _no_snapshot(checkpoint: RealTimeCheckpoint) -> Problem:
    return Problem(
        "no-epoch-finished",
        f"there is no snapshot in the checkpoint {checkpoint.root} yet",
        "run the flow first; a run stores one every snapshot_interval, and when it stops",
    )


def _no_such_tick(checkpoint: RealTimeCheckpoint, tick: int, there: Iterator[int]) -> Problem:
    newest = [str(each) for each in there][-5:]
    return Problem(
        "unknown-epoch",
        f"the checkpoint {checkpoint.root} has no snapshot of tick {tick}; the newest ones are of "
        f"{', '.join(newest)}",
        "leave the epoch out for the newest; older ones are removed",
    )
