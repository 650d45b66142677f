"""Tests of what tasks claim: ``commutative=True`` and ``idempotent=True``."""

from __future__ import annotations

from collections.abc import Iterator

from cutwater.checking.flows.histories import Histories
from cutwater.checking.flows.report import Finding
from cutwater.checking.guarantees.swaps import (
    Repetition,
    Swap,
    find_repetition,
    find_swap,
)
from cutwater.errors import many
from cutwater.flow.builder import Flow
from cutwater.flow.steps import Apply
from cutwater.flow.timely import with_bodies

__all__ = ["check_claims", "claiming_steps"]

_NOTHING_TRIED = "nothing was tried: no key gets events that could refute it"


def claiming_steps(flow: Flow) -> list[Apply]:
    """The steps of a flow whose tasks make a claim, those in the bodies of loops included."""
    steps = with_bodies(flow.steps)
    return [step for step in steps if isinstance(step, Apply) and step.task.claims]


def check_claims(flow: Flow, histories: Histories, seed: int) -> Iterator[tuple[str, str, Finding]]:
    """A finding for each step and claim: not refuted, or violated, with the refuting calls."""
    for step in claiming_steps(flow):
        for claim in step.task.claims:
            yield step.name, claim, _finding(step, claim, histories.by_key(step.name), seed)


def _finding(step: Apply, claim: str, events: list[list[object]], seed: int) -> Finding:
    witness: Swap | Repetition | None
    if claim == "commutative":
        witness, tried = find_swap(step, events, seed)
        extent = f"{many(tried, 'pair')} of events swapped"
    else:
        witness, tried = find_repetition(step, events, seed)
        extent = f"{many(tried, 'event')} repeated"
    check = f"claim: '{step.name}' is {claim}"
    if witness:
        return Finding(check, extent, "violated", (str(witness),))
    if not tried:
        return Finding(check, extent, "note", (_NOTHING_TRIED,))
    return Finding(check, extent, "not refuted")
