"""Operator fusion: maximal chains of steps between exchanges become one composed operator.

A segment is a chain in which every step but the last has one reader, every step but the first
has one input, and no exchange is needed: it ends where the key changes, where streams fork or
join, and before a stateful step whose events must be placed elsewhere. A step that emits once per
epoch starts a new segment if a step before it emits when times complete: an epoch's barrier comes
before its watermarks, and what these complete still belongs to the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

from cutwater import operators as op
from cutwater.annotations import is_known, union_of
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.inference import loop_types
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.lowering import key_bytes_of, key_function, operator_of
from cutwater.flow.validation import checked
from cutwater.operators.loop import Body, LoopNode, loop
from cutwater.operators.loop import NodeInput as LoopInput
from cutwater.times import Left, Right

__all__ = ["Part", "Placement", "Plan", "Segment", "SegmentInput", "body_of", "plan", "watched"]

_MAKERS = (
    s.Map, s.FlatMap, s.MapValues, s.Apply, s.Join, s.JoinClocks, s.OnComplete, s.Bulk, s.Operate
)  # fmt: skip
"""Steps whose outputs are produced by a user function."""

Placement = Literal["anywhere", "by key", "in one place"]


@dataclass(frozen=True, slots=True)
class SegmentInput:
    """An edge into a segment."""

    segment: int
    """The segment it comes from."""
    sender: s.Step
    """The step whose output it carries."""
    value: Any
    """The type of the values it carries; for a merge, the union over all inputs."""
    side: type[Left] | type[Right] | None = None
    """For a join: the side that its times are tagged with; None: no join."""


class Part(NamedTuple):
    """A step of a segment that does work, with its operator."""

    step: s.Step
    operator: op.Operator
    input_types: tuple[StreamType, ...]
    """The type of each of its inputs."""


@dataclass(frozen=True)
class Segment:
    """A chain of steps that runs as one operator."""

    number: int
    """Its position in the plan; its inputs have smaller numbers."""
    steps: tuple[s.Step, ...]
    inputs: tuple[SegmentInput, ...]
    """Where its events come from; empty for a source."""
    parts: tuple[Part, ...]
    """The steps that do work, each with its operator."""
    key: Callable[[Any], Any] | None
    """Extracts the key of an incoming value; None: it does not begin with a key_by."""
    placement: Placement
    """Where its events must be: anywhere, together with their key, or all in one place."""
    input_type: StreamType
    """The type of its input."""
    output: StreamType
    """The type of its output."""
    rank: int
    """Its position in the total order: the number of its chain's first step."""
    stage: int
    """The largest number of exchanges, forks and joins on a path to it."""
    depth: int = 0
    """Its position in the chain, if chains are not fused."""

    @property
    def name(self) -> str:
        """The name of its first step."""
        return self.steps[0].name

    @cached_property
    def operator(self) -> op.Operator:
        """The composed operator of all steps."""
        return op.compose(*(part.operator for part in self.parts))

    @cached_property
    def is_stateful(self) -> bool:
        """Does any of its steps keep state?"""
        return any(step.is_stateful for step in self.steps)

    @cached_property
    def reads_twice(self) -> bool:
        """Does it read one stream by several inputs? Then each of its events arrives in copies."""
        return len({edge.segment for edge in self.inputs}) < len(self.inputs)

    def first_index(self, port: int) -> int:
        """The index of the first output for an event that arrived by an input.

        Copies of an event share one order, so each copy numbers its outputs in a range of its own.
        """
        return port << 32 if self.reads_twice else 0

    @cached_property
    def maker(self) -> s.Step | None:
        """The step whose user function produces the segment's output; None: no user function."""
        made = [step for step in self.steps if not isinstance(step, s.Filter)]
        return made[-1] if made and isinstance(made[-1], _MAKERS) else None

    @property
    def source(self) -> s.Source | None:
        """The source it begins with; None if it does not."""
        first = self.steps[0]
        return first if isinstance(first, s.Source) else None


@dataclass(frozen=True)
class Plan:
    """A flow as segments, in an order in which every segment comes after its inputs."""

    flow: Flow
    segments: tuple[Segment, ...]
    sinks: tuple[tuple[s.Sink, int], ...]
    """Each sink and the segment that feeds it."""

    @cached_property
    def readers(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """For each segment, the segments that read it, with the input they read it by."""
        found: dict[int, list[tuple[int, int]]] = {seg.number: [] for seg in self.segments}
        for segment in self.segments:
            for port, edge in enumerate(segment.inputs):
                found[edge.segment].append((segment.number, port))
        return {number: tuple(readers) for number, readers in found.items()}

    def sinks_of(self, segment: Segment) -> tuple[s.Sink, ...]:
        """The sinks that a segment feeds."""
        return tuple(sink for sink, number in self.sinks if number == segment.number)

    def is_exchange(self, segment: Segment) -> bool:
        """Must events be shuffled before this segment?"""
        return segment.is_stateful and segment.source is None


def plan(
    flow: Flow,
    *,
    fuse: bool = True,
    numbered: Any = Any,
    watch: Callable[[s.Step], s.Step] | None = None,
) -> Plan:
    """Plan a flow as segments. Raises `FlowError` if the flow has problems.

    Parameters
    ----------
    fuse
        Whether chains of steps become one segment; if not, every step is its own segment.
    numbered
        The type of the times of sources without a time field; it affects what is known of streams,
        never what a segment does.
    watch
        Maps each step to the one that runs in its place, for instance one with instrumented
        functions; types remain those of the flow's own steps.
    """
    steps = flow.steps
    types = checked(steps, flow=flow.name, numbered=numbered)
    replaced = tuple(watched(step, watch) for step in steps) if watch else steps
    segments, holder = _segments(steps, replaced, types, fuse)
    sinks = tuple((sk, holder[sk.inputs[0]]) for sk in steps if isinstance(sk, s.Sink))
    return Plan(flow, segments, sinks)


def watched(step: s.Step, watch: Callable[[s.Step], s.Step]) -> s.Step:
    """What runs in place of a step, in the bodies of loops too."""
    if isinstance(step, s.Iterate):
        step = replace(step, body=tuple(watched(inner, watch) for inner in step.body))
    return watch(step)


def _segments(
    steps: Sequence[s.Step],
    replaced: Sequence[s.Step],
    types: Sequence[StreamType],
    fuse: bool,
    leaving: Collection[int] = (),
) -> tuple[tuple[Segment, ...], dict[int, int]]:
    """The segments, and for each step the number of its segment."""
    chains = _chains(steps, types, leaving)
    pieces = [(tuple(chain), chain[0], 0) for chain in chains]
    if not fuse:
        pieces = [((n,), chain[0], depth) for chain in chains for depth, n in enumerate(chain)]
    pieces.sort(key=lambda piece: piece[0][-1])
    holder = {n: i for i, (piece, _, _) in enumerate(pieces) for n in piece}
    stages = _stages(steps, chains)
    placements = _placements(steps, types)
    segments = tuple(
        Segment(
            number=i,
            steps=tuple(steps[n] for n in piece),
            inputs=_edges(piece[0], steps, types, holder),
            parts=_parts(piece, steps, replaced, types),
            key=_key_of(replaced[piece[0]]),
            placement=placements[piece[-1]],
            input_type=_input_type(piece[0], steps, types),
            output=types[piece[-1]],
            rank=rank,
            stage=stages[rank],
            depth=depth,
        )
        for i, (piece, rank, depth) in enumerate(pieces)
    )
    return segments, holder


def body_of(
    step: s.Iterate, stream: StreamType, replaced: s.Iterate | None = None
) -> tuple[Body, tuple[Segment, ...]]:
    """The body of a loop, and the segments that its nodes are made from."""
    types = loop_types(step, stream)[0]
    leaving = {step.again, step.out}
    segments, holder = _segments(step.body, (replaced or step).body, types, True, leaving)
    body = Body(
        tuple(map(_node_of, segments)),
        again=holder[step.again],
        out=holder[step.out],
        title=step.title,
        max_rounds=step.max_rounds,
        is_keyed=types[0].key is not None,
        state_per_epoch=step.state_per_epoch,
    )
    return body, segments


def _node_of(segment: Segment) -> LoopNode:
    return LoopNode(
        segment.operator,
        tuple(LoopInput(edge.segment, edge.side) for edge in segment.inputs),
        _key_and_bytes(segment),
        segment.placement == "by key",
        segment.rank,
        segment.stage,
        segment.is_stateful,
    )


def _key_and_bytes(segment: Segment) -> Callable[[Any], tuple[Any, bytes]] | None:
    key_of, step = segment.key, segment.steps[0]
    if key_of is None:
        return None

    def keyed(value: Any) -> tuple[Any, bytes]:
        key = key_of(value)
        return key, key_bytes_of(step, key)

    return keyed


def _chains(
    steps: Sequence[s.Step], types: Sequence[StreamType], leaving: Collection[int]
) -> list[list[int]]:
    readers: dict[int, list[int]] = {n: [_OUTSIDE] * (n in leaving) for n in range(len(steps))}
    for number, step in enumerate(steps):
        for i in step.inputs:
            readers[i].append(number)
    placements = _placements(steps, types)
    behind: dict[int, int] = {}
    for number, step in enumerate(steps):
        before = step.inputs[0] if len(step.inputs) == 1 else -1
        if (
            readers.get(before) == [number]
            and not isinstance(step, (s.KeyBy, s.Sink))
            and placements[before] == placements[number]
        ):
            behind[number] = before
    alone = _taking_batches(steps, types, behind)
    chains: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        if isinstance(step, s.Sink):
            continue
        chain = chains[behind[number]] if number in behind else []
        if alone.intersection([number, *chain]):
            chain = chain if all(isinstance(steps[n], s.KeyBy) for n in chain) else []
        if _emits_per_epoch(step) and any(steps[n].waits for n in chain):
            chain = []
        chain.append(number)
        chains[number] = chain
    return list({id(chain): chain for chain in chains.values()}.values())


_OUTSIDE = -1
"""A pseudo-reader of the feedback and of the output of a loop."""


def _taking_batches(
    steps: Sequence[s.Step], types: Sequence[StreamType], behind: Mapping[int, int]
) -> set[int]:
    """Steps that work on whole batches, alone in their chains except for a key_by before them.

    An aggregate is excluded if that would cost another exchange, or one of values of unknown type.
    """
    ahead = {before: number for number, before in behind.items()}

    def is_free(number: int) -> bool:
        value = types[steps[number].inputs[0]].value
        neighbours = [*_followed(number, behind), *_followed(number, ahead)]
        return is_known(value) and not any(steps[n].is_stateful for n in neighbours)

    return {
        number
        for number, step in enumerate(steps)
        if (isinstance(step, s.Apply) and step.is_vectorised)
        or (isinstance(step, s.AggregateAll) and is_free(number))
    }


def _followed(number: int, links: Mapping[int, int]) -> Iterator[int]:
    while number in links:
        number = links[number]
        yield number


def _emits_per_epoch(step: s.Step) -> bool:
    is_aggregate = isinstance(step, s.AggregateAll) and step.emit == "epoch"
    has_barrier = isinstance(step, s.Operate) and step.op.barrier is not None
    return is_aggregate or has_barrier or isinstance(step, s.Iterate)


def _stages(steps: Sequence[s.Step], chains: Sequence[Sequence[int]]) -> dict[int, int]:
    """The stage of each chain, indexed by the number of its first step."""
    first = {n: chain[0] for chain in chains for n in chain}
    stages: dict[int, int] = {}
    for number in sorted(set(first.values())):
        before = (stages[first[i]] for i in steps[number].inputs)
        stages[number] = 1 + max(before, default=-1)
    return stages


def _placements(steps: Sequence[s.Step], types: Sequence[StreamType]) -> list[Placement]:
    placements: list[Placement] = []
    for number, step in enumerate(steps):
        if types[number].key is not None:
            placements.append("by key")
        elif step.is_stateful or _stays_in_one_place(step, placements):
            placements.append("in one place")
        else:
            placements.append("anywhere")
    return placements


def _stays_in_one_place(step: s.Step, placements: Sequence[Placement]) -> bool:
    return len(step.inputs) == 1 and placements[step.inputs[0]] == "in one place"


def _edges(
    number: int, steps: Sequence[s.Step], types: Sequence[StreamType], holder: Mapping[int, int]
) -> tuple[SegmentInput, ...]:
    first = steps[number]
    if isinstance(first, (s.Join, s.JoinClocks)):
        left, right = (
            partial(SegmentInput, holder[n], steps[n], types[n].value) for n in first.inputs
        )
        return left(Left), right(Right)
    value = _input_type(number, steps, types).value
    return tuple(SegmentInput(holder[n], steps[n], value) for n in first.inputs)


def _key_of(first: s.Step) -> Callable[[Any], Any] | None:
    return key_function(first) if isinstance(first, s.KeyBy) else None


def _input_type(number: int, steps: Sequence[s.Step], types: Sequence[StreamType]) -> StreamType:
    step = steps[number]
    if len(step.inputs) == 1:
        return types[step.inputs[0]]
    if isinstance(step, s.JoinClocks):
        return replace(types[number], time=union_of([types[n].time for n in step.inputs]))
    return types[number]


def _parts(
    piece: Sequence[int],
    steps: Sequence[s.Step],
    replaced: Sequence[s.Step],
    types: Sequence[StreamType],
) -> tuple[Part, ...]:
    return tuple(
        Part(
            steps[n],
            _operator(steps[n], replaced[n], _input_type(n, steps, types), types[n]),
            tuple(types[i] for i in steps[n].inputs),
        )
        for n in piece
        if _works(steps[n])
    )


def _operator(
    step: s.Step, replaced: s.Step, stream: StreamType, output: StreamType
) -> op.Operator:
    if isinstance(step, s.Iterate) and isinstance(replaced, s.Iterate):
        return loop(body_of(step, stream, replaced)[0])
    return operator_of(replaced, stream, output)


def _works(step: s.Step) -> bool:
    return not isinstance(step, (s.Source, s.Enter, s.KeyBy, s.Merge, s.Union))
