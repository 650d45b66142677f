"""P2's four steps as a model: a system, its inputs, and how often it fails.

The reference (`DeliveryModel.reference`) is the same system with F*. Definitions 7 and 8 compare
with a reference whose input channel is flawed: it loses inputs, or repeats them. Each run makes one
choice of what is lost or repeated (decided where the input enters, or after a failure); an input
enters at most once, plus once more for each failure.

`Quiesce` is not in the paper. It marks that nothing is left to do: the end of a run becomes
observable, and a system that loses outputs can be distinguished from one that is slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from cutwater.semantics.delivery.system import (
    Bag,
    Configuration,
    Element,
    System,
    fail_and_recover,
    reference_recovery,
    release,
    take_input,
    transform,
)

__all__ = [
    "DeliveryModel",
    "DeliveryStep",
    "Flaw",
    "Input",
    "Lose",
    "Output",
    "Point",
    "Quiesce",
    "Recover",
    "Repeat",
    "Seen",
    "Transform",
]


class Input(msgspec.Struct, frozen=True, cache_hash=True):
    """An element enters."""

    element: Element

    def __str__(self) -> str:
        return f"{self.element} enters"


class Transform(msgspec.Struct, frozen=True, cache_hash=True):
    """An operation replaces elements by others."""

    taken: Bag
    made: Bag

    def __str__(self) -> str:
        return f"{self.taken} becomes {self.made}"


class Output(msgspec.Struct, frozen=True, cache_hash=True):
    """An element leaves."""

    element: Element

    def __str__(self) -> str:
        return f"{self.element} leaves"


class Recover(msgspec.Struct, frozen=True, cache_hash=True):
    """The system fails and restores a working set."""

    restored: Bag

    def __str__(self) -> str:
        return f"failure; {self.restored} is restored"


class Quiesce(msgspec.Struct, frozen=True):
    """Nothing is left to do."""

    def __str__(self) -> str:
        return "nothing is left to do"


class Lose(msgspec.Struct, frozen=True, cache_hash=True):
    """The input channel loses an element (of the reference of Definition 7 alone)."""

    element: Element


class Repeat(msgspec.Struct, frozen=True, cache_hash=True):
    """The input channel repeats an element (of the reference of Definition 8 alone)."""

    element: Element


DeliveryStep = Input | Transform | Output | Recover | Quiesce | Lose | Repeat
Flaw = Literal["none", "loses", "repeats"]


class Seen(msgspec.Struct, frozen=True, cache_hash=True):
    """What is observable from outside: the condition of the probabilities in section III.D."""

    entered: int
    """The number of inputs sent to the system."""
    outputs: Bag
    """The outputs that consumers have seen."""
    failures: int
    """How often the system has failed."""
    is_quiescent: bool

    def is_before(self, other: Seen) -> bool:
        """Can it be observed earlier in a run than the other, or at the same time?"""
        return (
            self.entered <= other.entered
            and self.failures <= other.failures
            and self.is_quiescent <= other.is_quiescent
            and self.outputs <= other.outputs
        )


class Point(msgspec.Struct, frozen=True, cache_hash=True):
    """A configuration, and the progress of its run."""

    configuration: Configuration
    entered: int
    """The number of inputs sent to the system, including lost ones."""
    failures: int
    """How often the system has failed."""
    is_quiescent: bool = False
    """Has `Quiesce` marked that nothing is left to do?"""


class DeliveryModel:
    """All runs of a system on some inputs, with at most `failures` failures.

    Inputs enter in the order given; what happens to them inside is a race.

    Examples
    --------
    >>> from cutwater.semantics.delivery.epochs import flink_epochs
    >>> model = DeliveryModel(flink_epochs(), [Element("in", "a")], failures=0)
    >>> print(*model.actions(*model.initial_states()))
    in a enters
    """

    def __init__(
        self,
        system: System,
        inputs: Sequence[Element],
        *,
        failures: int = 1,
        is_reference: bool = False,
        flaw: Flaw = "none",
    ) -> None:
        self.system, self.inputs, self.failures = system, tuple(inputs), failures
        self.is_reference, self.flaw = is_reference, flaw

    def reference(self, flaw: Flaw = "none") -> DeliveryModel:
        """The same system with F*, and with an input channel that may be flawed."""
        return DeliveryModel(
            self.system, self.inputs, failures=self.failures, is_reference=True, flaw=flaw
        )

    def initial_states(self) -> Iterable[Point]:
        """The single point before anything has entered."""
        return (Point(Configuration(), 0, 0),)

    def actions(self, point: Point) -> list[DeliveryStep]:
        """The possible steps: work, then failures."""
        if point.is_quiescent:
            return []
        work = self._work(point)
        flaws = [*self._lost(point), *self._repeated(point)]
        rest = [] if work else [Quiesce()]
        return [*work, *flaws, *rest, *self._recoveries(point)]

    def _work(self, point: Point) -> list[DeliveryStep]:
        c = point.configuration
        steps: list[DeliveryStep] = [Input(element) for element in self._next(point)]
        for taken, made in self.system.transforms(c.working, c.outputs):
            steps.append(Transform(taken, made))
        steps += [Output(element) for element in self.system.leaving(c.working, c.outputs)]
        return list(dict.fromkeys(steps))

    def _next(self, point: Point) -> tuple[Element, ...]:
        return self.inputs[point.entered : point.entered + 1]

    def _lost(self, point: Point) -> list[DeliveryStep]:
        return [Lose(element) for element in self._next(point)] if self.flaw == "loses" else []

    def _repeated(self, point: Point) -> list[DeliveryStep]:
        if self.flaw != "repeats":
            return []
        entered = Bag(tuple(sorted(self.inputs[: point.entered])))
        inputs = point.configuration.inputs
        return [
            Repeat(element)
            for element in entered.distinct()
            if inputs.count(element) < entered.count(element) * (1 + point.failures)
        ]

    def _recoveries(self, point: Point) -> list[DeliveryStep]:
        if point.failures >= self.failures:
            return []
        c = point.configuration
        recover = reference_recovery(c) if self.is_reference else self.system.recover
        return [Recover(working) for working in dict.fromkeys(recover(c.inputs, c.outputs))]

    def step(self, point: Point, action: DeliveryStep) -> Point:
        """The point after a step; raises `ValueError` if the step is not possible."""
        c, entered, failures = point.configuration, point.entered, point.failures
        after: Configuration | None = c
        match action:
            case Input(element):
                after, entered = take_input(c, element), entered + 1
            case Lose():
                entered += 1
            case Repeat(element):
                after = take_input(c, element)
            case Transform(taken, made):
                after = transform(c, (taken, made))
            case Output(element):
                after = release(c, element)
            case Recover(restored):
                recover = reference_recovery(c) if self.is_reference else self.system.recover
                after, failures = fail_and_recover(c, restored, recover), failures + 1
        if after is None:
            raise ValueError(f"{action} is not possible here")
        return Point(after, entered, failures, isinstance(action, Quiesce))

    def observation(self, point: Point) -> Seen:
        """What is observable from outside."""
        return Seen(
            point.entered,
            self.system.visible(point.configuration.outputs),
            point.failures,
            point.is_quiescent,
        )
