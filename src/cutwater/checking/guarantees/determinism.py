"""Is the order of inputs visible, and do outputs depend on a race? (P2, III.F)

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
Def. 9, non-commutative, ((x, y), s)   `non_commutative`, for a relation over tuples; `in_sequence`
                                       is that relation for two inputs of a system
Def. 10, P(b | A, B, F*) = 1           `deterministic`
=====================================  =====================================================

Our reading of the paper (2026-11-18):

- Definition 9 needs tuples: D relates sets, which have no order.
- Definition 10 as printed requires every output to be certain at every time. We read: after the
  same inputs and outputs, at most one output can come next through each barrier. Snapshots do not
  count: when they are taken is not determined, and no consumer sees it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cutwater.checking.explorer.model import always, sometimes
from cutwater.checking.explorer.paths import Path
from cutwater.checking.explorer.search import check_model
from cutwater.semantics.delivery.model import (
    DeliveryModel,
    DeliveryStep,
    Input,
    Output,
    Point,
    Seen,
)
from cutwater.semantics.delivery.system import Bag, Element, System

__all__ = [
    "Determinism",
    "OrderWitness",
    "deterministic",
    "in_sequence",
    "non_commutative",
    "order_sensitive",
]

E = TypeVar("E", bound=Hashable)
_R = TypeVar("_R", bound=Hashable)


@dataclass(frozen=True)
class OrderWitness:
    """Two elements whose order is visible."""

    x: Any
    y: Any
    result: Any
    """What x before y can lead to, and y before x cannot (P2: s₁)."""
    other: Any
    """What y before x can lead to (P2: s₂)."""


def non_commutative(relation: Iterable[tuple[tuple[E, E], _R]]) -> OrderWitness | None:
    """Definition 9: x, y and two results that distinguish their orders; None if there are none.

    >>> non_commutative([(("a", "b"), "ab"), (("b", "a"), "ba")]).result
    'ab'
    >>> non_commutative([((1, 2), 3), ((2, 1), 3)])
    """
    results: dict[tuple[E, E], dict[_R, None]] = {}
    for pair, result in relation:
        results.setdefault(pair, {})[result] = None
    for (x, y), found in results.items():
        turned = results.get((y, x), {})
        for result in found:
            other = next((r for r in turned if r != result), None)
            if result not in turned and other is not None:
                return OrderWitness(x, y, result, other)
    return None


class _InSequence:
    """A model in which an input enters only where nothing else is left to do."""

    def __init__(self, model: DeliveryModel) -> None:
        self.model = model
        self.initial_states, self.step = model.initial_states, model.step

    def actions(self, point: Point) -> list[DeliveryStep]:
        steps = self.model.actions(point)
        return [step for step in steps if not isinstance(step, Input)] or steps


def in_sequence(
    system: System, x: Element, y: Element
) -> list[tuple[tuple[Element, Element], Bag]]:
    """D over tuples: the possible final outputs if one input is processed before the other."""
    relation: dict[tuple[tuple[Element, Element], Bag], None] = {}
    for pair in ((x, y), (y, x)):
        model = DeliveryModel(system, pair, failures=0)

        def note(point: Point, pair: tuple[Element, Element] = pair) -> bool:
            if point.is_quiescent:
                relation[pair, system.visible(point.configuration.outputs)] = None
            return True

        check_model(_InSequence(model), [always("noted", note)])
    return list(relation)


def order_sensitive(system: System, inputs: Sequence[Element]) -> OrderWitness | None:
    """Two inputs whose order is visible in what a system shows; None if there are none."""
    for i, x in enumerate(inputs):
        for y in inputs[i + 1 :]:
            witness = non_commutative(in_sequence(system, x, y))
            if witness is not None:
                return witness
    return None


@dataclass(frozen=True)
class Determinism:
    """Whether what was seen determines what comes next."""

    is_exhaustive: bool
    """Was the whole reference explored?"""
    witness: tuple[Path[Point, DeliveryStep], Path[Point, DeliveryStep]] | None = None
    """Two runs that show the same and end where different outputs come next."""
    outputs: tuple[Element, Element] | None = None
    """The outputs that may come next, in the first and in the second run."""

    @property
    def holds(self) -> bool:
        """Was no refutation found?"""
        return self.witness is None


def deterministic(
    system: System, inputs: Sequence[Element], *, max_states: int | None = None
) -> Determinism:
    """Definition 10, on some inputs: does each barrier have at most one next output?"""
    reference = DeliveryModel(system, inputs, failures=0, is_reference=True)
    following: dict[tuple[Seen, str], dict[Element, None]] = {}

    def note(point: Point) -> bool:
        for output in _shown_next(reference, point):
            at = reference.observation(point), system.barrier(output)
            following.setdefault(at, {})[output] = None
        return True

    found = check_model(reference, [always("noted", note)], max_states=max_states, reduce=False)
    for (seen, _), outputs in following.items():
        if len(outputs) > 1:
            first, second, *_ = outputs
            paths = (_path_to(reference, seen, first), _path_to(reference, seen, second))
            return Determinism(found.is_exhaustive, paths, (first, second))
    return Determinism(found.is_exhaustive)


def _shown_next(model: DeliveryModel, point: Point) -> list[Element]:
    steps = [step for step in model.actions(point) if isinstance(step, Output)]
    return [step.element for step in steps if step.element.kind in model.system.shown]


def _path_to(model: DeliveryModel, seen: Seen, output: Element) -> Path[Point, DeliveryStep]:
    claim = sometimes(
        "the output comes next",
        lambda p: model.observation(p) == seen and output in _shown_next(model, p),
    )
    return check_model(model, [claim], reduce=False).discoveries[claim.name].path
