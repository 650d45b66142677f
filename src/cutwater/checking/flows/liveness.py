"""Does every fair run of a flow commit every epoch of its input? (P1, Theorem 6.10.)"""

from __future__ import annotations

from collections.abc import Callable

from cutwater.checking.explorer.model import eventually
from cutwater.checking.explorer.search import Checked, Progress, check
from cutwater.checking.flows.report import Finding, Verdict
from cutwater.checking.flows.runs import Remembered, failing
from cutwater.checking.flows.scenario import Given
from cutwater.errors import CutwaterError, many
from cutwater.semantics.barrier_model import Point, fairness, is_failure
from cutwater.semantics.barriers import greatest_common_epoch

__all__ = ["liveness"]

_PARTS = ((2, 2), (2, 1), (1, 1))
"""Epochs and events of the parts of an input that are tried, until one can be exhausted."""
_CLAIM = "every epoch is committed"


def liveness(given: Given, crashes: int, max_states: int, say: Callable[[str], None]) -> Finding:
    """Every fair run, with so many crashes at most, of as much of the input as can be exhausted."""
    subject = "liveness: every epoch is committed in the end"
    try:
        return _searched(subject, given, crashes, max_states, say)
    except CutwaterError as error:
        return failing(subject, error)


def _searched(
    subject: str, given: Given, crashes: int, max_states: int, say: Callable[[str], None]
) -> Finding:
    for epochs, size in _PARTS:
        part = given.cut(epochs, size)
        found = _explored(part, crashes, max_states, say)
        if found.is_exhaustive or found.stopped != "at the bound" or not found.holds:
            break
    what = f"{many(epochs, 'epoch')} of {many(size, 'event')}, {many(crashes, 'crash')}"
    extent = f"{what}: {found.summary()}"
    if found.holds:
        verdict: Verdict = "holds" if found.is_exhaustive else "not refuted"
        return Finding(subject, extent, verdict, is_interrupted=found.stopped == "interrupted")
    path = found.discoveries[_CLAIM].path
    tasks = part.tasks()
    model = part.model(crashes, tasks)
    note = "this run goes on for ever or stops before all is committed"
    trace = part.trace(tasks, model, path.actions, note)
    details = ("a fair run never commits an epoch of its input",)
    return Finding(subject, extent, "violated", details, part.inputs, trace=trace)


def _explored(given: Given, crashes: int, max_states: int, say: Callable[[str], None]) -> Checked:
    model = given.model(crashes, given.tasks(Remembered()))
    last = max((message.epoch for message in model.initial.inputs), default=0)

    def is_committed(point: Point) -> bool:
        return greatest_common_epoch(point.configuration) >= last

    def progress(found: Progress) -> None:
        say(f"looking for runs that never end: {found.unique_states:,} states")

    claim = eventually(_CLAIM, is_committed, fair=fairness, rare=is_failure)
    return check(model, [claim], max_states=max_states, progress=progress)
