"""The flow itself, run with and without a crash: does a sink show a difference?"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from cutwater.checking.flows.report import Finding
from cutwater.checking.flows.scenario import Scenario
from cutwater.checking.flows.shrinking import shrink_inputs
from cutwater.errors import CutwaterError, many
from cutwater.events import Data
from cutwater.flow.fusing import plan
from cutwater.semantics.crashing import CrashingRun, run_with_crashes
from cutwater.semantics.frozen import hashable_form
from cutwater.semantics.inputs import CRASH
from cutwater.semantics.segments import Row
from cutwater.semantics.simulator import events_of_epochs

__all__ = ["EpochValues", "crash_witness", "values_of"]


_RUNS_OF_ITEMS = 10_000
"""The most items in all runs of an input together, so that a large input gets fewer runs."""

EpochValues = dict[str, list[list[Any]]]
"""The values that each sink shows in each epoch."""


def values_of(epochs: Sequence[Sequence[Row]]) -> list[list[Any]]:
    """The values of rows, in order."""
    return [[e.value for e in epoch if isinstance(e, Data)] for epoch in events_of_epochs(epochs)]


def crash_witness(
    scenarios: Sequence[Scenario],
    first: Sequence[EpochValues],
    seed: int,
    notify: Callable[[str], None],
    *,
    tries: int = 40,
) -> Finding:
    """Compare runs of the flow with a crash at some position of its input to one without.

    `first` holds what the sinks showed in the first run of each input.
    """
    check = "failure transparency, the flow itself"
    drawn = random.Random(seed)
    count = 0
    for one, before in zip(scenarios, first, strict=True):
        base = _events(one, one.inputs)
        if _differ(base, one.observed(before)):
            return _unsteady(check, one, one.observed(before), base, seed)
        positions = [(name, i) for name, items in one.inputs.items() for i in range(len(items) + 1)]
        few = max(3, min(tries, _RUNS_OF_ITEMS // max(1, one.size)))
        for position in drawn.sample(positions, min(few, len(positions))):
            count += 1
            notify(f"crashing the flow itself: {many(count, 'crash')}")
            if _differ(_events(one, _with_crash(one.inputs, position)), base):
                return _seen(check, one, seed)
    return Finding(check, f"run with {many(count, 'crash')}, one at a time", "not refuted")


def _events(scenario: Scenario, inputs: Mapping[str, Sequence[Any]]) -> Any:
    """What is observed of the sinks; a failure of the flow is a result like any other."""
    try:
        result = _simulated(scenario, inputs)
    except CutwaterError as error:
        return str(error)
    seen = {sink: values_of(epochs) for sink, epochs in result.rows.items()}
    return scenario.observed(seen)


def _differ(one: Any, other: Any) -> bool:
    return hashable_form(one) != hashable_form(other)  # as snapshots, in which NaN equals NaN


def _simulated(scenario: Scenario, inputs: Mapping[str, Sequence[Any]]) -> CrashingRun:
    return run_with_crashes(
        plan(scenario.flow), inputs, epoch_size=scenario.epoch_size, on_loss=scenario.on_loss
    )


def _with_crash(
    inputs: Mapping[str, Sequence[Any]], position: tuple[str, int]
) -> dict[str, list[Any]]:
    name, index = position
    return {n: [*i[:index], CRASH, *i[index:]] if n == name else list(i) for n, i in inputs.items()}


def _is_unsteady(scenario: Scenario, inputs: Mapping[str, list[Any]]) -> bool:
    return _differ(_events(scenario, inputs), _events(scenario, inputs))


def _is_seen(scenario: Scenario, inputs: Mapping[str, list[Any]]) -> bool:
    return not _is_unsteady(scenario, inputs) and _crash_shows(scenario, inputs) is not None


def _crash_shows(scenario: Scenario, inputs: Mapping[str, Sequence[Any]]) -> tuple[str, int] | None:
    """A source and position at which a crash is visible; None if there is none."""
    base = _events(scenario, inputs)
    for name, items in inputs.items():
        for index in range(len(items) + 1):
            if _differ(_events(scenario, _with_crash(inputs, (name, index))), base):
                return name, index
    return None


def _unsteady(check: str, scenario: Scenario, one: Any, other: Any, seed: int) -> Finding:
    """Two runs differ: a finding on shrunk input, unless only the first run was different."""
    is_steady_now = not _is_unsteady(scenario, scenario.inputs)
    inputs, free = shrink_inputs(
        scenario, lambda i: not is_steady_now and _is_unsteady(scenario, i)
    )
    if not is_steady_now:
        one, other = _events(scenario, inputs), _events(scenario, inputs)
    details = (
        "two runs without failures already differ",
        f"one run: {one!r}",
        f"another: {other!r}",
    )
    trace = _simulated(scenario, inputs).trace
    return Finding(check, f"seed {seed}", "violated", details, inputs, free, trace)


def _seen(check: str, scenario: Scenario, seed: int) -> Finding:
    inputs, free = shrink_inputs(scenario, partial(_is_seen, scenario))
    position = _crash_shows(scenario, inputs)
    crashed = _with_crash(inputs, position) if position else inputs
    with_crash = _events(scenario, crashed)
    details = (
        "a sink shows different values after a crash",
        f"without failures: {_events(scenario, inputs)!r}",
        f"with the crash:   {with_crash!r}",
    )
    if position is not None:
        free = frozenset((n, i + (n == position[0] and i >= position[1])) for n, i in free)
    trace = _simulated(scenario, crashed).trace if not isinstance(with_crash, str) else None
    return Finding(check, f"seed {seed}", "violated", details, crashed, free, trace)
