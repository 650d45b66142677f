"""The elements of a flow diagram: steps, groups of fused steps, edges and exchanges."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from cutwater.annotations import typename
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import Placement, Plan, Segment, plan
from cutwater.flow.inference import infer
from cutwater.flow.timely.cutting import iteration_phrase, loop_to_cut

__all__ = ["Diagram", "DiagramEdge", "DiagramNode", "Sort", "StepGroup", "diagram_of"]

Sort = Literal["source", "step", "stateful", "sink"]


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """One step."""

    number: int
    """Its position in the flow."""
    verb: str
    name: str
    sort: Sort
    carries: str
    """The type of its output (for a sink: of its input); empty if unknown."""


@dataclass(frozen=True, slots=True)
class StepGroup:
    """Steps that run as one operator, or a single step."""

    nodes: tuple[int, ...]
    """The numbers of its steps, from first to last."""
    placement: Placement
    """Where its events must be."""
    exchange: str | None = None
    """What its inputs are shuffled by; None: they are not exchanged."""

    @property
    def is_fused(self) -> bool:
        """Does it have more than one step?"""
        return len(self.nodes) > 1


@dataclass(frozen=True, slots=True)
class DiagramEdge:
    """A stream from one step to another."""

    source: int
    target: int
    exchange: str | None = None
    """What it is shuffled by; None: it is not exchanged."""


@dataclass(frozen=True, slots=True)
class Diagram:
    """A flow, ready to be drawn."""

    name: str
    nodes: tuple[DiagramNode, ...]
    """Indexed by number."""
    groups: tuple[StepGroup, ...]
    """Every step is in exactly one; edges between groups lead from smaller to larger numbers."""
    edges: tuple[DiagramEdge, ...]

    @property
    def exchanges(self) -> tuple[StepGroup, ...]:
        """The groups whose inputs are exchanged."""
        return tuple(group for group in self.groups if group.exchange)


def diagram_of(plan_or_flow: Plan | Flow) -> Diagram:
    """The steps, groups and edges of a plan; a flow is planned first, so it must be valid.

    Examples
    --------
    >>> flow = Flow("lengths")
    >>> words = flow.source("words", str)
    >>> _ = words.map(len).key_by(abs).batch().sink("lengths")
    >>> diagram = diagram_of(flow)
    >>> [[diagram.nodes[n].name for n in group.nodes] for group in diagram.groups]
    [['words', 'len'], ['by_abs', 'batch'], ['lengths']]
    >>> [edge.exchange for edge in diagram.edges]
    [None, 'by abs', None, None]
    """
    planned = plan(plan_or_flow) if isinstance(plan_or_flow, Flow) else plan_or_flow
    steps = planned.flow.steps
    carried = [_type_text(stream.value) for stream in infer(steps)[0]]
    groups = _groups(planned)
    first_of = {group.nodes[0]: group for group in groups}
    return Diagram(
        planned.flow.name,
        tuple(_node(n, step, carried[n], steps) for n, step in enumerate(steps)),
        groups,
        tuple(
            DiagramEdge(i, n, first_of[n].exchange if n in first_of else None)
            for n, step in enumerate(steps)
            for i in step.inputs
        ),
    )


def _node(number: int, step: s.Step, carries: str, steps: Sequence[s.Step]) -> DiagramNode:
    sort: Sort = "stateful" if step.is_stateful else "step"
    if isinstance(step, s.Source):
        sort = "source"
    elif isinstance(step, s.Sink):
        sort = "sink"
    return DiagramNode(number, _verb(step, steps), step.name, sort, carries)


def _verb(step: s.Step, steps: Sequence[s.Step]) -> str:
    """The verb; for a loop also how it iterates."""
    return (
        f"{step.verb}, {iteration_phrase(steps, step)}"
        if isinstance(step, s.Iterate)
        else step.verb
    )


def _groups(planned: Plan) -> tuple[StepGroup, ...]:
    steps = planned.flow.steps
    numbers = {id(step): n for n, step in enumerate(steps)}
    groups = [
        StepGroup(
            tuple(numbers[id(step)] for step in segment.steps),
            segment.placement,
            _exchange(segment, numbers[id(segment.steps[0])], steps)
            if planned.is_exchange(segment)
            else None,
        )
        for segment in planned.segments
    ]
    groups += [StepGroup((numbers[id(sink)],), "anywhere") for sink, _ in planned.sinks]
    return tuple(sorted(groups, key=lambda group: group.nodes))


def _exchange(segment: Segment, number: int, steps: Sequence[s.Step]) -> str:
    if segment.steps[0] is loop_to_cut(steps):
        return "by the keys in its body"
    if segment.placement != "by key":
        return "all in one place"
    step = steps[number]
    while not isinstance(step, s.KeyBy):
        step = steps[step.inputs[0]]
    return "by " + (", ".join(step.fields) or step.name.removeprefix("by_"))


def _type_text(tp: Any) -> str:
    """A type as text, without module names; empty if unknown.

    >>> _type_text(tuple[tuple[int, StepGroup], ...]), _type_text(StepGroup | None), _type_text(Any)
    ('tuple[tuple[int, StepGroup], ...]', 'StepGroup | None', '')
    """
    return "" if tp is Any else _short(tp)


def _short(tp: Any) -> str:
    if tp is Ellipsis:
        return "..."
    origin, args = get_origin(tp), get_args(tp)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_short, args))
    if isinstance(origin, type) and args:
        return f"{origin.__name__}[{', '.join(map(_short, args))}]"
    return typename(tp)
