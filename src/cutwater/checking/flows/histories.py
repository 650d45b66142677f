"""Histories: the events of each key of a task, in order, recorded in runs of a flow."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cutwater.annotations import is_immutable
from cutwater.checking.flows.samples import sample_inputs
from cutwater.checking.flows.scenario import Scenario
from cutwater.errors import CutwaterError
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import plan
from cutwater.flow.timely import with_bodies
from cutwater.flow.vector_tasks import VectorisedTask
from cutwater.operators.task import fresh_copies
from cutwater.semantics.crashing import run_with_crashes

__all__ = ["Histories", "KeyedValue", "histories_of", "vectorised_steps"]

KeyedValue = tuple[int, Any]
"""A key's number, and a value."""

_LONGEST = 1_000
"""The number of events of a run that are used."""


def vectorised_steps(flow: Flow) -> list[s.Apply]:
    """The steps of a flow with a vectorised task, those in the bodies of loops included."""
    return [
        step
        for step in with_bodies(flow.steps)
        if isinstance(step, s.Apply) and isinstance(step.task, VectorisedTask)
    ]


@dataclass(frozen=True)
class _Followed:
    """A state tagged with its key."""

    state: Any = None
    """None: the initial state."""
    key: int | None = None


@dataclass
class Histories:
    """For each step with a task the events of each key, run by run."""

    noted: dict[str, list[list[KeyedValue]]] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin another run."""
        for runs in self.noted.values():
            runs.append([])

    def of(self, step: str) -> list[list[KeyedValue]]:
        """The runs of a step that have events, each cut to `_LONGEST` events."""
        return [run[:_LONGEST] for run in self.noted[step] if run]

    def by_key(self, step: str) -> list[list[Any]]:
        """The events of each key of a step in each run, in order."""
        found: list[list[Any]] = []
        for run in self.of(step):
            keys: dict[int, list[Any]] = {}
            for key, value in run:
                keys.setdefault(key, []).append(value)
            found += keys.values()
        return found

    def watch(self, step: s.Step) -> s.Step:
        """The step, with a task that records its events."""
        if not isinstance(step, s.Apply):
            return step
        runs = self.noted.setdefault(step.name, [])
        fresh, f = fresh_copies(step.task.initial), step.task.f

        def noting(followed: _Followed, value: Any) -> tuple[_Followed, Sequence[Any]]:
            key = len(runs[-1]) if followed.key is None else followed.key
            runs[-1].append((key, value if is_immutable(value) else copy.deepcopy(value)))
            state = fresh() if followed.state is None else followed.state
            after, outputs = f(state, value)
            return _Followed(after, key), outputs

        return replace(step, task=replace(step.task, f=noting, initial=_Followed()))


def histories_of(scenarios: Sequence[Scenario], seed: int, *, is_made_up: bool) -> Histories:
    """The histories of a flow's tasks; to generated inputs longer ones are added."""
    histories = Histories()
    watched = plan(scenarios[0].flow, watch=histories.watch)
    for one in [*scenarios, *(_longer(scenarios[0], seed) if is_made_up else ())]:
        histories.begin()
        try:
            run_with_crashes(
                watched, one.inputs, epoch_size=one.epoch_size, on_loss=lambda _problem: None
            )
        except CutwaterError:  # keep what was recorded until then
            continue
    return histories


def _longer(scenario: Scenario, seed: int) -> list[Scenario]:
    samples = (sample_inputs(scenario.flow, seed * 1_000 + number, size=12) for number in range(3))
    return [replace(scenario, inputs=inputs) for inputs in samples]
