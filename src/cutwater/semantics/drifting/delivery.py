"""Drifting state under P2's definitions: what consumers see, compared with a run without faults.

The inputs are in the producers' logs from the start. The reference (`DriftingDelivery.reference`)
is the unmodified protocol, without faults and snapshots; with a flawed input channel it runs on
any of the logs that the channel can turn these into. `Quiesce` marks the end of a run, as in
`semantics.delivery`: quiescence alone is no end, since a fault may follow and repair what is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import msgspec

from cutwater.semantics.delivery.model import Flaw, Quiesce
from cutwater.semantics.drifting.agents import Consumer, Deployment
from cutwater.semantics.drifting.elements import Element, Time
from cutwater.semantics.drifting.model import DriftingModel
from cutwater.semantics.drifting.protocol import Drifting
from cutwater.semantics.drifting.system import Move, System

__all__ = ["DriftingDelivery", "DriftingReference", "ProducerLogs", "Received", "Run"]


class Received(msgspec.Struct, frozen=True, cache_hash=True):
    """What is observable from outside."""

    outputs: tuple[tuple[Any, ...], ...]
    """The values that each consumer has received, in order."""
    is_quiescent: bool

    def is_before(self, other: Received) -> bool:
        """Can it be observed earlier in a run than the other, or at the same time?"""
        pairs = zip(self.outputs, other.outputs, strict=True)
        return self.is_quiescent <= other.is_quiescent and all(
            mine == theirs[: len(mine)] for mine, theirs in pairs
        )


class Run(msgspec.Struct, frozen=True, cache_hash=True):
    """A system, and whether `Quiesce` has marked that nothing is left to do."""

    system: System
    is_quiescent: bool = False


class DriftingDelivery:
    """All runs of a deployment with a bounded number of faults, each with its end.

    Examples
    --------
    >>> from cutwater.semantics.drifting.elements import Grouping
    >>> one = Deployment((Grouping(1),), ((Element(Time((1, 0)), "v1"),),))
    >>> model = DriftingDelivery(DriftingModel(Drifting(one)))
    >>> model.observation(*model.initial_states())
    Received(outputs=((),), is_quiescent=False)
    """

    def __init__(self, model: DriftingModel) -> None:
        self.model = model

    @property
    def is_reducible(self) -> bool:
        """As for the model."""
        return self.model.is_reducible

    @property
    def is_acyclic(self) -> bool:
        """As for the model: `Quiesce` is the last step."""
        return self.model.is_acyclic

    def initial_states(self) -> Iterable[Run]:
        """The runs in which nothing has started."""
        return [Run(system) for system in self.model.initial_states()]

    def actions(self, run: Run) -> list[Move | Quiesce]:
        """The model's moves, or the end."""
        if run.is_quiescent:
            return []
        rest = [Quiesce()] if self.model.is_quiescent(run.system) else []
        return [*rest, *self.model.actions(run.system)]

    def step(self, run: Run, action: Move | Quiesce) -> Run:
        """The run after a step."""
        if isinstance(action, Quiesce):
            return Run(run.system, is_quiescent=True)
        return Run(self.model.step(run.system, action))

    def ample(self, run: Run, actions: Sequence[Move | Quiesce]) -> Sequence[Move] | None:
        """As for the model; where a run may rest, no delivery is pending."""
        moves = [action for action in actions if not isinstance(action, Quiesce)]
        return self.model.ample(run.system, moves)

    def observation(self, run: Run) -> Received:
        """What can be seen from outside."""
        consumers = (p for _, p in run.system.processes if isinstance(p, Consumer))
        values = tuple(tuple(e.value for e in c.received) for c in consumers)
        return Received(values, run.is_quiescent)

    def reference(self, flaw: Flaw = "none") -> DriftingReference:
        """The unmodified protocol without faults, behind an input channel that may be flawed."""
        deployment = self.model.deployment
        faults = self.model.faults
        count = sum(getattr(faults, name) for name in faults.__struct_fields__)
        return DriftingReference(deployment, tuple(_logs(deployment.inputs, flaw, count)))


ProducerLogs = tuple[tuple[Element, ...], ...]
"""The log of each producer."""


class _Enter(msgspec.Struct, frozen=True):
    """Chooses one of the logs that the channel can produce from the inputs."""

    number: int


class _Entered(msgspec.Struct, frozen=True, cache_hash=True):
    """A run on one of the logs."""

    number: int
    run: Run


class DriftingReference:
    """The runs without faults on any of the given logs."""

    is_acyclic = True

    def __init__(self, deployment: Deployment, logs: Sequence[ProducerLogs]) -> None:
        self.deployment = deployment
        self._runs = [
            DriftingDelivery(DriftingModel(Drifting(replace(deployment, inputs=log, snapshots=()))))
            for log in logs
        ]

    def initial_states(self) -> Iterable[_Entered | None]:
        """The state before a log is chosen."""
        return (None,)

    def actions(self, state: _Entered | None) -> list[Any]:
        """The channel chooses the logs, then they are processed."""
        if state is None:
            return [_Enter(number) for number in range(len(self._runs))]
        return list(self._runs[state.number].actions(state.run))

    def step(self, state: _Entered | None, action: Any) -> _Entered:
        """The state after a step."""
        if state is None:
            (run,) = self._runs[action.number].initial_states()
            return _Entered(action.number, run)
        return _Entered(state.number, self._runs[state.number].step(state.run, action))

    def ample(self, state: _Entered | None, actions: Sequence[Any]) -> Sequence[Move] | None:
        """As for the run."""
        return None if state is None else self._runs[state.number].ample(state.run, actions)

    def observation(self, state: _Entered | None) -> Received:
        """What can be seen from outside."""
        if state is None:
            return Received(((),) * self.deployment.nodes, is_quiescent=False)
        return self._runs[state.number].observation(state.run)


def _logs(inputs: ProducerLogs, flaw: Flaw, faults: int) -> Iterator[ProducerLogs]:
    """The logs a channel can produce; an input is repeated at most once per fault.

    Only the order of inputs matters, so they are renumbered where one repeats.
    """
    sent = sorted((e for log in inputs for e in log), key=lambda e: e.t)
    match flaw:
        case "none":
            yield inputs
        case "loses":
            for count in range(len(sent) + 1):
                for kept in combinations(sent, count):
                    yield _by_producer(kept, len(inputs))
        case "repeats":
            for again in _repeated(sent, (), 1 + faults):
                times = [Time((place, e.t.root[1])) for place, e in enumerate(again, 1)]
                renumbered = [Element(t, e.value) for t, e in zip(times, again, strict=True)]
                yield _by_producer(renumbered, len(inputs))


def _repeated(
    coming: Sequence[Element], came: tuple[Element, ...], most: int
) -> Iterator[tuple[Element, ...]]:
    """The sequences with first occurrences in order and none more than `most` times."""
    if not coming:
        yield came
    else:
        yield from _repeated(coming[1:], (*came, coming[0]), most)
    for element in dict.fromkeys(came):
        if came.count(element) < most:
            yield from _repeated(coming, (*came, element), most)


def _by_producer(elements: Iterable[Element], producers: int) -> ProducerLogs:
    known = list(elements)
    return tuple(tuple(e for e in known if e.t.root[1] == n) for n in range(producers))
