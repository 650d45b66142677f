"""Where the order of events matters in a flow: found by search, with witnesses.

Steps with a task are searched for two events of one key (`swaps`), sinks for two neighbours of
the input (`interleavings`). For other steps the kind decides (`flow.guarantees.order_free`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cutwater.checking.flows.histories import Histories, histories_of
from cutwater.checking.flows.interleavings import Dependence, dependences_of
from cutwater.checking.flows.samples import inputs_to_try
from cutwater.checking.flows.scenario import Scenario
from cutwater.checking.guarantees.claims import check_claims
from cutwater.checking.guarantees.swaps import find_swap
from cutwater.checking.purity.repeated_calls import Calls, check_purity, functions_of
from cutwater.errors import many
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import plan
from cutwater.flow.guarantees.order_free import Order, orders_of, why_order_matters
from cutwater.flow.inference import infer, loop_types
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.semantics.crashing import run_with_crashes
from cutwater.semantics.inputs import Barrier

__all__ = ["ClaimOutcome", "Matters", "Sensitivity", "SinkOrder", "StepOrder", "order_sensitivity"]

Matters = Literal["yes", "no", "maybe"]
"""``yes``: a witness was found; ``no``: it cannot matter, or an unrefuted claim says so."""


@dataclass(frozen=True)
class ClaimOutcome:
    """A claim of a task, and the outcome of its test."""

    claim: str
    verdict: str
    """``not refuted``, ``violated``, or ``note`` if nothing could be tried."""
    extent: str
    """How far it was tested."""
    witness: str = ""


@dataclass(frozen=True)
class StepOrder:
    """What is known of a stateful step."""

    step: str
    matters: Matters
    """Does the order of the events of a key matter?"""
    why: str
    witness: str = ""
    """Two events of one key that show it; empty: none was found, or none was searched for."""
    claims: tuple[ClaimOutcome, ...] = ()
    has_function: bool = True
    """Does it run a user's function?"""


@dataclass(frozen=True)
class SinkOrder:
    """What is known of everything upstream of a sink."""

    sink: str
    matters: Matters
    """Does what it shows in an epoch depend on the order of that epoch's inputs?"""
    why: str
    witnesses: tuple[str, ...] = ()
    """For each pair of sources, two events that show it."""


@dataclass(frozen=True)
class Sensitivity:
    """Where the order of events matters in a flow."""

    flow: str
    seed: int
    inputs: int
    """The number of inputs that were tried."""
    events: int
    """The number of events in all of them together."""
    steps: tuple[StepOrder, ...]
    sinks: tuple[SinkOrder, ...]
    refuted: tuple[str, ...] = ()
    """Steps that claim to be commutative and are not."""
    impure: Mapping[str, str] | None = None
    """Steps with an impure function, and the call that shows it."""

    def as_data(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "flow": self.flow,
            "seed": self.seed,
            "inputs": self.inputs,
            "events": self.events,
            "steps": [
                {
                    "step": step.step,
                    "order_matters": step.matters,
                    "why": step.why,
                    "witness": step.witness or None,
                    "claims": [vars(claim) for claim in step.claims],
                    "impurity": (self.impure or {}).get(step.step),
                }
                for step in self.steps
            ],
            "sinks": [
                {
                    "sink": sink.sink,
                    "order_matters": sink.matters,
                    "why": sink.why,
                    "witnesses": list(sink.witnesses),
                }
                for sink in self.sinks
            ],
        }


def order_sensitivity(
    flow: Flow,
    inputs: Mapping[str, Iterable[Any]] | None = None,
    *,
    epoch_size: int | None = None,
    samples: int = 10,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Sensitivity:
    """Search a flow for events whose order matters, on given or generated inputs.

    Parameters are those of `check_flow`; the same seed gives the same result.
    """
    notify = progress or (lambda _text: None)
    flow.validate()
    tried = inputs_to_try(flow, inputs, samples, seed)
    scenarios = [Scenario(flow, sample, epoch_size, 2) for sample in tried]
    notify("calling every function again")
    impure = _impure(flow, scenarios)
    notify("swapping events of one key")
    histories = histories_of(scenarios, seed, is_made_up=inputs is None)
    claims = _claims(flow, histories, seed)
    steps = tuple(_steps(flow, histories, claims, impure, seed))
    # If a call gives another result each time, any two runs may differ.
    dependences = [] if impure else dependences_of(scenarios, seed, notify)[0]
    refuted = _refuted(flow, claims, dependences)
    return Sensitivity(
        flow.name,
        seed,
        len(scenarios),
        sum(not isinstance(item, Barrier) for one in scenarios for item in one.items()),
        steps,
        tuple(_sink(order, dependences) for order in orders_of(flow, refuted).values()),
        refuted,
        impure,
    )


def _impure(flow: Flow, scenarios: Sequence[Scenario]) -> dict[str, str]:
    calls = Calls()
    watched = plan(flow, watch=calls.watch)
    for one in scenarios:
        run_with_crashes(watched, one.inputs, epoch_size=one.epoch_size)
    return {r.step: str(r.impurity) for r in check_purity(calls) if r.impurity}


def _claims(flow: Flow, histories: Histories, seed: int) -> dict[str, list[ClaimOutcome]]:
    found: dict[str, list[ClaimOutcome]] = {}
    for step, claim, finding in check_claims(flow, histories, seed):
        witness = "\n".join(finding.details) if finding.verdict == "violated" else ""
        tried = ClaimOutcome(claim, finding.verdict, finding.extent, witness)
        found.setdefault(step, []).append(tried)
    return found


def _refuted(
    flow: Flow, claims: Mapping[str, list[ClaimOutcome]], found: Sequence[Dependence]
) -> tuple[str, ...]:
    """Claims with a witness of their own, and all upstream of a sink that shows the order."""
    refuted = {
        step: None
        for step, made in claims.items()
        if any(c.claim == "commutative" and c.verdict == "violated" for c in made)
    }
    orders, shown = orders_of(flow), {dependence.sink for dependence in found}
    for sink, order in orders.items():
        if sink in shown and order.is_free:
            refuted |= dict.fromkeys(order.claims)
    return tuple(refuted)


def _steps(
    flow: Flow,
    histories: Histories,
    claims: Mapping[str, list[ClaimOutcome]],
    impure: Mapping[str, str],
    seed: int,
) -> Iterator[StepOrder]:
    for step, received in _typed(flow.steps, infer(flow.steps)[0]):
        if isinstance(step, s.Apply):
            made = tuple(claims.get(step.name, ()))
            if step.name in impure:
                why = "it is not a function of its arguments, so nothing can be compared"
                yield StepOrder(step.name, "maybe", why, claims=made)
            else:
                yield _task(step, histories.by_key(step.name), made, seed)
        elif step.is_stateful:
            reason = why_order_matters(step, received)
            matters: Matters = "maybe" if reason else "no"
            why = reason or "the same in every order"
            has_function = bool(functions_of(step))
            yield StepOrder(step.name, matters, why, has_function=has_function)


def _typed(
    steps: Sequence[s.Step], types: Sequence[StreamType]
) -> Iterator[tuple[s.Step, StreamType]]:
    """Each step with the type of its first input, a loop followed by the steps of its body."""
    for step in steps:
        received = types[step.inputs[0]] if step.inputs else StreamType()
        yield step, received
        if isinstance(step, s.Iterate):
            yield from _typed(step.body, loop_types(step, received)[0])


def _task(
    step: s.Apply, events: Sequence[Sequence[Any]], claims: tuple[ClaimOutcome, ...], seed: int
) -> StepOrder:
    witness, tried = find_swap(step, events, seed)
    extent = f"{many(tried, 'pair')} of events swapped"
    if witness is not None:
        return StepOrder(step.name, "yes", "two events show it", str(witness), claims)
    if step.task.commutative:
        return StepOrder(step.name, "no", f"it claims so; {extent}", claims=claims)
    return StepOrder(step.name, "maybe", f"no witness found; {extent}", claims=claims)


def _sink(order: Order, found: Sequence[Dependence]) -> SinkOrder:
    mine = tuple(d for d in found if d.sink in (order.step, ""))
    if mine:
        inputs = ", ".join(dict.fromkeys(d.inputs for d in mine))
        return SinkOrder(order.step, "yes", f"the order {inputs}", tuple(map(str, mine)))
    if order.is_free:
        claims = "".join(f", as `{name}` claims" for name in order.claims)
        return SinkOrder(order.step, "no", f"nothing on the way shows it{claims}")
    return SinkOrder(order.step, "maybe", str(order.reasons[0]))
