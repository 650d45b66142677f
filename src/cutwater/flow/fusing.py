"""Fusing: maximal chains of steps between exchanges become one composed operator.

A segment is a chain in which every step but the last has one reader, every step but the first
has one input, and no exchange is needed: it ends where the key changes, where streams fork or
meet, and before a stateful step that needs its events in another place. A step that emits once an
epoch begins a segment behind one that emits when times are complete: an epoch's border comes
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
from cutwater.flow.inference import StreamType, loop_types
from cutwater.flow.lowering import key_bytes_of, key_function, operator_of
from cutwater.flow.validation import checked
from cutwater.operators.loop import Body, Node, loop
from cutwater.operators.loop import Input as LoopInput
from cutwater.times import Left, Right

__all__ = ["Input", "Part", "Placement", "Plan", "Segment", "body_of", "plan"]

_MAKERS = (
    s.Map, s.FlatMap, s.MapValues, s.Apply, s.Join, s.JoinClocks, s.OnComplete, s.Bulk, s.Operate
)  # fmt: skip
"""Steps whose outputs are made by a user's function."""

Placement = Literal["anywhere", "by key", "in one place"]


@dataclass(frozen=True, slots=True)
class Input:
    """An edge into a segment."""

    segment: int
    """The segment it comes from."""
    sender: s.Step
    """The step whose output comes by it."""
    value: Any
    """The type of what comes by it; a merge takes all as one."""
    side: type[Left] | type[Right] | None = None
    """For a join: the side that times get."""


class Part(NamedTuple):
    """A step of a segment that works."""

    step: s.Step
    operator: op.Operator
    given: tuple[StreamType, ...]
    """What comes in, for each of its inputs."""


@dataclass(frozen=True)
class Segment:
    """A chain of steps that runs as one operator."""

    number: int
    """Its place in the plan; inputs come from smaller numbers."""
    steps: tuple[s.Step, ...]
    inputs: tuple[Input, ...]
    """Where its events come from; none for a source."""
    parts: tuple[Part, ...]
    """The steps that work, each with its operator."""
    key: Callable[[Any], Any] | None
    """If it begins with a key_by: the key of an incoming value."""
    placement: Placement
    """Where its events must be: anywhere, together with their key, or all in one place."""
    given: StreamType
    """What comes in."""
    output: StreamType
    """What goes out."""
    rank: int
    """Its place in the total order: the number of its chain's first step."""
    stage: int
    """How many exchanges, forks and meetings lie before it, at most."""
    depth: int = 0
    """Its place in the chain, where chains are not fused."""

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
        """Does one of its steps keep a state?"""
        return any(step.is_stateful for step in self.steps)

    @cached_property
    def reads_twice(self) -> bool:
        """Does one stream come in by several inputs? Then each of its events has copies."""
        return len({edge.segment for edge in self.inputs}) < len(self.inputs)

    def first_index(self, port: int) -> int:
        """The index of the first output for an event that came by an input.

        Copies of an event have one order, so their outputs are counted on from copy to copy.
        """
        return port << 32 if self.reads_twice else 0

    @cached_property
    def maker(self) -> s.Step | None:
        """The step whose function makes what the segment emits; None: no function of a user's."""
        made = [step for step in self.steps if not isinstance(step, s.Filter)]
        return made[-1] if made and isinstance(made[-1], _MAKERS) else None

    @property
    def source(self) -> s.Source | None:
        """The source it begins with, if it does."""
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
        """For each segment the segments that read it, with the input they read it by."""
        found: dict[int, list[tuple[int, int]]] = {seg.number: [] for seg in self.segments}
        for segment in self.segments:
            for port, edge in enumerate(segment.inputs):
                found[edge.segment].append((segment.number, port))
        return {number: tuple(readers) for number, readers in found.items()}

    def is_exchange(self, segment: Segment) -> bool:
        """Must the events be brought together before this segment?"""
        return segment.is_stateful and segment.source is None


def plan(
    flow: Flow,
    *,
    fuse: bool = True,
    numbered: Any = Any,
    watch: Callable[[s.Step], s.Step] | None = None,
) -> Plan:
    """The segments of a valid flow.

    Parameters
    ----------
    fuse
        Whether chains of steps become one segment; if not, every step is one of its own.
    numbered
        The type of the times of sources that have no field for them; it changes what is known of
        streams, never what a segment does.
    watch
        Makes of each step the one that works in its place, for instance one whose functions are
        watched; types are those of the flow's own steps.
    """
    steps = flow.steps
    types = checked(steps, flow=flow.name, numbered=numbered)
    at_work = tuple(_watched(step, watch) for step in steps) if watch else steps
    segments, holder = _segments(steps, at_work, types, fuse)
    sinks = tuple((sk, holder[sk.inputs[0]]) for sk in steps if isinstance(sk, s.Sink))
    return Plan(flow, segments, sinks)


def _watched(step: s.Step, watch: Callable[[s.Step], s.Step]) -> s.Step:
    if isinstance(step, s.Iterate):
        step = replace(step, body=tuple(_watched(inner, watch) for inner in step.body))
    return watch(step)


def _segments(
    steps: Sequence[s.Step],
    at_work: Sequence[s.Step],
    types: Sequence[StreamType],
    fuse: bool,
    leaving: Collection[int] = (),
) -> tuple[tuple[Segment, ...], dict[int, int]]:
    """The segments, and for each step the one that it is in."""
    chains = _chains(steps, types, leaving)
    pieces = [(tuple(chain), chain[0], 0) for chain in chains]
    if not fuse:
        pieces = [((n,), chain[0], depth) for chain in chains for depth, n in enumerate(chain)]
    pieces.sort(key=lambda piece: piece[0][-1])
    holder = {n: i for i, (piece, _, _) in enumerate(pieces) for n in piece}
    stages = _stages(steps, chains)
    places = _placements(steps, types)
    segments = tuple(
        Segment(
            number=i,
            steps=tuple(steps[n] for n in piece),
            inputs=_edges(piece[0], steps, types, holder),
            parts=_parts(piece, steps, at_work, types),
            key=_key_of(at_work[piece[0]]),
            placement=places[piece[-1]],
            given=_given(piece[0], steps, types),
            output=types[piece[-1]],
            rank=rank,
            stage=stages[rank],
            depth=depth,
        )
        for i, (piece, rank, depth) in enumerate(pieces)
    )
    return segments, holder


def body_of(
    step: s.Iterate, given: StreamType, at_work: s.Iterate | None = None
) -> tuple[Body, tuple[Segment, ...]]:
    """The body of a loop, and the segments that its nodes are."""
    types = loop_types(step, given)[0]
    leaving = {step.again, step.out}
    segments, holder = _segments(step.body, (at_work or step).body, types, True, leaving)
    body = Body(
        tuple(map(_node_of, segments)),
        again=holder[step.again],
        out=holder[step.out],
        title=step.title,
        max_rounds=step.max_rounds,
        is_keyed=types[0].key is not None,
    )
    return body, segments


def _node_of(segment: Segment) -> Node:
    return Node(
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
    places = _placements(steps, types)
    behind: dict[int, int] = {}
    for number, step in enumerate(steps):
        before = step.inputs[0] if len(step.inputs) == 1 else -1
        if (
            readers.get(before) == [number]
            and not isinstance(step, (s.KeyBy, s.Sink))
            and places[before] == places[number]
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
"""Reads what goes round a loop again, or leaves it."""


def _taking_batches(
    steps: Sequence[s.Step], types: Sequence[StreamType], behind: Mapping[int, int]
) -> set[int]:
    """Steps that work on whole batches, and are alone in their chains but for a key before them.

    An aggregate is not, if that would need another exchange, or one of values of unknown type.
    """
    ahead = {before: number for number, before in behind.items()}

    def is_free(number: int) -> bool:
        given = types[steps[number].inputs[0]].value
        neighbours = [*_followed(number, behind), *_followed(number, ahead)]
        return is_known(given) and not any(steps[n].is_stateful for n in neighbours)

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
    has_border = isinstance(step, s.Operate) and step.op.border is not None
    return is_aggregate or has_border or isinstance(step, s.Iterate)


def _stages(steps: Sequence[s.Step], chains: Sequence[Sequence[int]]) -> dict[int, int]:
    """The stage of each chain, by the number of its first step."""
    first = {n: chain[0] for chain in chains for n in chain}
    stages: dict[int, int] = {}
    for number in sorted(set(first.values())):
        before = (stages[first[i]] for i in steps[number].inputs)
        stages[number] = 1 + max(before, default=-1)
    return stages


def _placements(steps: Sequence[s.Step], types: Sequence[StreamType]) -> list[Placement]:
    places: list[Placement] = []
    for number, step in enumerate(steps):
        if types[number].key is not None:
            places.append("by key")
        elif step.is_stateful or _stays_in_one_place(step, places):
            places.append("in one place")
        else:
            places.append("anywhere")
    return places


def _stays_in_one_place(step: s.Step, places: Sequence[Placement]) -> bool:
    return len(step.inputs) == 1 and places[step.inputs[0]] == "in one place"


def _edges(
    number: int, steps: Sequence[s.Step], types: Sequence[StreamType], holder: Mapping[int, int]
) -> tuple[Input, ...]:
    first = steps[number]
    if isinstance(first, (s.Join, s.JoinClocks)):
        left, right = (partial(Input, holder[n], steps[n], types[n].value) for n in first.inputs)
        return left(Left), right(Right)
    value = _given(number, steps, types).value
    return tuple(Input(holder[n], steps[n], value) for n in first.inputs)


def _key_of(first: s.Step) -> Callable[[Any], Any] | None:
    return key_function(first) if isinstance(first, s.KeyBy) else None


def _given(number: int, steps: Sequence[s.Step], types: Sequence[StreamType]) -> StreamType:
    step = steps[number]
    if len(step.inputs) == 1:
        return types[step.inputs[0]]
    if isinstance(step, s.JoinClocks):
        return replace(types[number], time=union_of([types[n].time for n in step.inputs]))
    return types[number]


def _parts(
    piece: Sequence[int],
    steps: Sequence[s.Step],
    at_work: Sequence[s.Step],
    types: Sequence[StreamType],
) -> tuple[Part, ...]:
    return tuple(
        Part(
            steps[n],
            _operator(steps[n], at_work[n], _given(n, steps, types), types[n]),
            tuple(types[i] for i in steps[n].inputs),
        )
        for n in piece
        if _works(steps[n])
    )


def _operator(step: s.Step, at_work: s.Step, given: StreamType, output: StreamType) -> op.Operator:
    if isinstance(step, s.Iterate) and isinstance(at_work, s.Iterate):
        return loop(body_of(step, given, at_work)[0])
    return operator_of(at_work, given, output)


def _works(step: s.Step) -> bool:
    return not isinstance(step, (s.Source, s.Enter, s.KeyBy, s.Merge, s.Union))
