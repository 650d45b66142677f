"""Is a checkpoint of the real-time engine intact? Checks every file of it, without Spark.

=============================  =================================================================
``cutwater.json``              matches its checksum
``realtime/*/opening.json``    matches its checksum, and one generation is open
``realtime/*/plan/``           each source has a plan whose lines are intact; the last one may be
                               torn
``realtime/*/snapshots/``      files match their checksums; each task has what the newest common
                               tick needs, without a gap, and the plans begin no later
ledgers                        belong to this checkpoint, and are neither ahead of it nor behind
=============================  =================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from cutwater.errors import CutwaterError
from cutwater.spark.checkpoint.verify import Looking, Verified
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint
from cutwater.spark.realtime.opening import Opening, newest_opening
from cutwater.spark.realtime.plan_log import WHAT, TickPlan, read_plan
from cutwater.spark.realtime.side_outputs import read_side_outputs
from cutwater.spark.realtime.snapshots import TaskSnapshots, lacks_snapshots, read_changes

__all__ = ["verify_ticks"]

_SNAPSHOT = "the snapshot of a state"


def verify_ticks(checkpoint: RealTimeCheckpoint, sinks: Mapping[str, SinkConnector]) -> Verified:
    """Check every file of a checkpoint of the real-time engine; read-only."""
    looking = Looking(checkpoint)
    identity = looking.identity()
    opening = _look(looking, checkpoint.root, lambda: newest_opening(checkpoint.root))
    if isinstance(opening, Opening):
        plans = [_look_at_plan(looking, opening.plan_path(source)) for source in opening.sources]
        common = opening.snapshots.common()  # after the plans: one may be compacted meanwhile
        for task in opening.snapshots.tasks():
            _look_at_task(looking, task, common)
        if any(plan.through > common for plan in plans):
            looking.problems.append(lacks_snapshots(opening.snapshots.folder, common))
    if not looking.problems:  # else the next tick is unknown
        looking.ledgers(identity, sinks)
    return looking.verified(identity)


def _look_at_plan(looking: Looking, path: Path) -> TickPlan:
    if not path.exists():
        looking.damage(path, WHAT, "is missing")
    plan = _look(looking, path, lambda: read_plan(path))
    return plan if isinstance(plan, TickPlan) else TickPlan()


def _look_at_task(looking: Looking, task: TaskSnapshots, common: int) -> None:
    for stored in task.stored():
        path = task.folder / stored.name
        _look(looking, path, lambda path=path: read_changes(path))  # type: ignore[misc]
    for path in task.side_output_files():
        _look(looking, path, lambda path=path: read_side_outputs(path))  # type: ignore[misc]
    _look(looking, task.folder, lambda: task.needed(common))


def _look(looking: Looking, path: Path, read: Callable[[], object]) -> object:
    """The content of a file; None if it is damaged."""
    looking.files += 1
    try:
        return read()
    except FileNotFoundError:  # a run has replaced it meanwhile
        return None
    except CutwaterError as error:
        looking.problems += error.problems
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, OSError) as error:
        looking.damage(path, _SNAPSHOT, f"has invalid content: {error}")
    return None
