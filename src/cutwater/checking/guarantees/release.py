"""What an output waits for (P2, III.F: the lower bound on latency that follows from Theorem 1).

A system that is not deterministic, is order-sensitive and gives exactly-once releases no output
before a snapshot of the state it depends on is stored. A deterministic one need not wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from cutwater.checking.explorer.model import always
from cutwater.checking.explorer.search import Checked, check_model
from cutwater.semantics.delivery.model import DeliveryModel, Point
from cutwater.semantics.delivery.system import Element, System

__all__ = ["outputs_are_saved", "recovers_from_storage", "waits_for"]


def outputs_are_saved(
    system: System, inputs: Sequence[Element], kind: str, *, failures: int = 1
) -> Checked:
    """Is each released output covered by a snapshot of a kind, stored before it or with it?

    Outputs and snapshots are never removed, so this is a property of single states.
    """

    def is_saved(point: Point) -> bool:
        stored = point.configuration.outputs
        snapshots = stored.of_kind(kind)
        shown = system.visible(stored).distinct()
        return all(any(system.holds(snapshot, out) for snapshot in snapshots) for out in shown)

    model = DeliveryModel(system, inputs, failures=failures)
    return check_model(model, [always(f"each output is held by a {kind}", is_saved)], reduce=False)


def waits_for(system: System, inputs: Sequence[Element], *, failures: int = 1) -> tuple[str, ...]:
    """The kinds of snapshots that every output waits for."""
    return tuple(
        kind
        for kind in sorted(system.snapshots)
        if outputs_are_saved(system, inputs, kind, failures=failures).holds
    )


def recovers_from_storage(
    system: System, inputs: Sequence[Element], *, failures: int = 1
) -> Checked:
    """Does F restore only what is stored: is F(A, B) always a sub-multiset of A ∪ B?"""

    def is_stored(point: Point) -> bool:
        c = point.configuration
        stored = c.inputs + c.outputs
        return all(working <= stored for working in system.recover(c.inputs, c.outputs))

    model = DeliveryModel(system, inputs, failures=failures)
    return check_model(model, [always("F(A, B) ⊆ A ∪ B", is_stored)], reduce=False)
