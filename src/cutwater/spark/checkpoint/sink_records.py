"""What a checkpoint records about its sinks, to detect an output that has changed since.

::

    checkpoint/
      sinks.json      where each sink has its output and its ledger; written when all are claimed
      released.json   the newest epoch that had rows for each sink; written when all are published

Both are written *after* what they record. So wherever a crash interrupts a run, a ledger knows at
least what its checkpoint records; one that knows less was restored from a backup, emptied or
replaced. Spark commits an epoch after both: every finished epoch is covered.

``released.json`` is not synced, so that no epoch waits for it: a power loss may lose its newest
versions, and then less is detected. Side outputs are in the checkpoint and are restored with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from cutwater.errors import Problem
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.refusals import OUTPUT_AHEAD
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.job.spec import Job
from cutwater.spark.storage.durable import read_json, write_json
from cutwater.spark.storage.notes import read_note, write_note

__all__ = ["ACCEPTABLE", "changed_outputs", "note_released", "output_problems", "remember_sinks"]

_BEHIND = "output-behind"
_ELSEWHERE = "another-output"
ACCEPTABLE = (_BEHIND, _ELSEWHERE)
"""What `accept_gap` covers. Not another ledger of the same output: rows would be duplicated."""


def note_released(root: str | Path, epoch: int, sinks: Iterable[str]) -> None:
    """Record that an epoch with rows for these sinks was published."""
    before = _released(root)
    after = {**before, **{name: max(epoch, before.get(name, -1)) for name in sinks}}
    if after != before:
        write_note(_released_file(root), after)


def remember_sinks(root: Path, job: Job, accept_gap: Collection[str] = ()) -> None:
    """Record where the sinks of a job are, all of which it has claimed.

    For sinks whose gap is accepted, what they have now becomes the baseline.
    """
    own = {name: job.sinks[name] for name in job.own_sinks}
    noted = _released(root)
    gaps = {name: _newest(name, own[name], job.query_id) for name in accept_gap if name in noted}
    if gaps:
        write_note(_released_file(root), {**noted, **gaps})
    before = _bound(root)
    now = {name: {"output": s.location, "ledger": s.ledger_location} for name, s in own.items()}
    if {**before, **now} != before:
        write_json(root / "sinks.json", {"sinks": {**before, **now}})


def output_problems(
    checkpoint: Checkpoint, name: str, sink: SinkConnector, query_id: str | None
) -> list[Problem]:
    """Why a checkpoint must not write to a sink, by the ledger of the sink.

    A run that is active may plan an epoch and release it while this looks: a ledger that seems to
    be ahead is compared once more, with what is planned after it was read.
    """
    found = sink.check(name, query_id, checkpoint.next_epoch())
    if query_id is None or OUTPUT_AHEAD not in (problem.code for problem in found):
        return found
    newest = sink.newest_epoch(name, query_id)
    is_planned = newest is not None and 0 <= newest < checkpoint.next_epoch()
    return [problem for problem in found if problem.code != OUTPUT_AHEAD or not is_planned]


def changed_outputs(root: Path, name: str, sink: SinkConnector, query_id: str) -> list[Problem]:
    """Why an output is not the one that the checkpoint wrote to, or lacks released rows."""
    before, released = _bound(root).get(name), _released(root).get(name, -1)
    if before is None or not sink.location:
        return []
    newest = sink.newest_epoch(name, query_id)
    if (
        newest is None
        and before["output"] == sink.location
        and before["ledger"] != sink.ledger_location
    ):
        return [_another_ledger(name, sink, before["ledger"])]
    if newest is None and before["output"] != sink.location and released >= 0:
        return [_another_output(name, sink, before["output"], released)]
    if released > (-1 if newest is None else newest):
        return [_behind(name, sink, newest, released)]
    return []


def _newest(name: str, sink: SinkConnector, query_id: str) -> int:
    found = sink.newest_epoch(name, query_id)
    return -1 if found is None else found


def _bound(root: str | Path) -> Mapping[str, Any]:
    found = read_json(Path(root) / "sinks.json", "what the checkpoint knows of its sinks")
    known: Mapping[str, Any] = (found or {}).get("sinks", {})
    return known


def _released_file(root: str | Path) -> Path:
    return Path(root) / "released.json"


def _released(root: str | Path) -> dict[str, int]:
    return {n: e for n, e in read_note(_released_file(root)).items() if isinstance(e, int)}


def _another_ledger(name: str, sink: SinkConnector, before: str) -> Problem:
    return Problem(
        "another-ledger",
        f"sink '{name}' goes to {sink.location} and had its ledger in {before}; the one in "
        f"{sink.ledger_location} knows nothing of this checkpoint, so rows would be duplicated "
        "and a run that is still alive would not be fenced",
        "put the setting back; or stop every run and move the ledger itself to its new location",
    )


def _another_output(name: str, sink: SinkConnector, before: str, released: int) -> Problem:
    return Problem(
        _ELSEWHERE,
        f"sink '{name}' has released rows up to epoch {released} in {before} and is bound to "
        f"{sink.location} now, which knows nothing of this checkpoint; those rows are not there",
        f"bind it to its earlier location; or, to write only new rows here: --accept-gap {name}",
    )


def _behind(name: str, sink: SinkConnector, newest: int | None, released: int) -> Problem:
    has = "knows nothing of this checkpoint" if newest is None else f"has them up to epoch {newest}"
    has = "has none" if newest == -1 else has
    return Problem(
        _BEHIND,
        f"sink '{name}' has released rows up to epoch {released}, and {sink.location} {has}; it "
        "was restored from a backup or emptied, and the rows in between would stay missing",
        "restore the checkpoint of the same time too; or start over with a new checkpoint; or "
        f"continue without these rows: --accept-gap {name}",
    )
