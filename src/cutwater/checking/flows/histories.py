"""Which events come to which key of a task, and in which order, in runs of a flow."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cutwater.annotations import is_immutable
from cutwater.checking.flows.samples import sample_inputs
from cutwater.checking.flows.scenario import Given
from cutwater.errors import CutwaterError
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import plan
from cutwater.flow.vector_tasks import VectorisedTask
from cutwater.operators.task import fresh_copies
from cutwater.semantics.crashing import run_with_crashes

__all__ = ["Event", "Histories", "histories_of", "vectorised_steps"]

Event = tuple[int, Any]
"""The number of a key, and a value."""

_LONGEST = 1_000
"""How many events of a run are kept."""


def vectorised_steps(flow: Flow) -> list[s.Apply]:
    """The steps of a flow whose tasks take batches."""
    return [
        step
        for step in flow.steps
        if isinstance(step, s.Apply) and isinstance(step.task, VectorisedTask)
    ]


@dataclass(frozen=True)
class _Followed:
    """A state that knows whose it is."""

    state: Any = None
    """None: that to begin with."""
    key: int | None = None


@dataclass
class Histories:
    """For each step with a task what came to which key, run by run."""

    noted: dict[str, list[list[Event]]] = field(default_factory=dict)

    def begin(self) -> None:
        """What comes now is of another run."""
        for runs in self.noted.values():
            runs.append([])

    def of(self, step: str) -> list[list[Event]]:
        """The runs of a step in which something came."""
        return [run[:_LONGEST] for run in self.noted[step] if run]

    def by_key(self, step: str) -> list[list[Any]]:
        """What came to each key of a step in each run, in order."""
        found: list[list[Any]] = []
        for run in self.of(step):
            keys: dict[int, list[Any]] = {}
            for key, value in run:
                keys.setdefault(key, []).append(value)
            found += keys.values()
        return found

    def watch(self, step: s.Step) -> s.Step:
        """The step, with a task that notes what it is given."""
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


def histories_of(given: Sequence[Given], seed: int, *, is_made_up: bool) -> Histories:
    """What comes to the tasks of a flow; inputs that were made up are joined by longer ones."""
    histories = Histories()
    watched = plan(given[0].flow, watch=histories.watch)
    for one in [*given, *(_longer(given[0], seed) if is_made_up else ())]:
        histories.begin()
        try:
            run_with_crashes(
                watched, one.inputs, epoch_size=one.epoch_size, on_loss=lambda _problem: None
            )
        except CutwaterError:  # what came until then, came
            continue
    return histories


def _longer(given: Given, seed: int) -> list[Given]:
    samples = (sample_inputs(given.flow, seed * 1_000 + number, size=12) for number in range(3))
    return [replace(given, inputs=inputs) for inputs in samples]
