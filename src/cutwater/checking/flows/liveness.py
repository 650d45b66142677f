"""Does every fair run of a flow commit every epoch of its input? (P1, Theorem 6.10.)"""

from __future__ import annotations

from collections.abc import Callable

from cutwater.checking.explorer.model import eventually
from cutwater.checking.explorer.search import Checked, SearchProgress, check_model
from cutwater.checking.flows.report import Finding, FindingVerdict
from cutwater.checking.flows.runs import Remembered, failing
from cutwater.checking.flows.scenario import Scenario
from cutwater.errors import CutwaterError, many
from cutwater.semantics.barrier_model import Point, fairness, is_failure
from cutwater.semantics.barriers import greatest_common_epoch

__all__ = ["liveness"]

_PARTS = ((2, 2), (2, 1), (1, 1))
"""Epochs and events per epoch of the parts of an input, tried until one can be exhausted."""
_CLAIM = "every epoch is committed"


def liveness(
    scenario: Scenario, crashes: int, max_states: int, notify: Callable[[str], None]
) -> Finding:
    """Check every fair run, with at most `crashes`, of as much input as can be exhausted."""
    subject = "liveness: every epoch is eventually committed"
    try:
        return _searched(subject, scenario, crashes, max_states, notify)
    except CutwaterError as error:
        return failing(subject, error)


def _searched(
    subject: str, scenario: Scenario, crashes: int, max_states: int, notify: Callable[[str], None]
) -> Finding:
    for epochs, size in _PARTS:
        part = scenario.cut(epochs, size)
        found = _explored(part, crashes, max_states, notify)
        if found.is_exhaustive or found.stopped != "at the bound" or not found.holds:
            break
    what = f"{many(epochs, 'epoch')} of {many(size, 'event')}, {many(crashes, 'crash')}"
    extent = f"{what}: {found.summary()}"
    if found.holds:
        verdict: FindingVerdict = "holds" if found.is_exhaustive else "not refuted"
        return Finding(subject, extent, verdict, is_interrupted=found.stopped == "interrupted")
    path = found.discoveries[_CLAIM].path
    tasks = part.tasks()
    model = part.model(crashes, tasks)
    note = "this run never ends, or stops before everything is committed"
    trace = part.trace(tasks, model, path.actions, note)
    details = ("a fair run never commits an epoch of its input",)
    return Finding(subject, extent, "violated", details, part.inputs, trace=trace)


def _explored(
    scenario: Scenario, crashes: int, max_states: int, notify: Callable[[str], None]
) -> Checked:
    model = scenario.model(crashes, scenario.tasks(Remembered()))
    last = max((message.epoch for message in model.initial.inputs), default=0)

    def is_committed(point: Point) -> bool:
        return greatest_common_epoch(point.configuration) >= last

    def progress(found: SearchProgress) -> None:
        notify(f"looking for runs that never end: {found.unique_states:,} states")

    claim = eventually(_CLAIM, is_committed, fair=fairness, rare=is_failure)
    return check_model(model, [claim], max_states=max_states, progress=progress)
