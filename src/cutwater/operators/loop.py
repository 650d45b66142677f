"""Loops: feedback enters again one round later, until nothing circulates (P3; Naiad's loop).

A loop *iterates* to its fixed point at the end of an epoch, before a watermark and at the
end of the input. Everything that arrived since it last iterated is round 0; what a round feeds back
is the next one. A round runs node by node, each node's events in the order of their causes,
and the end of a round is to the nodes what the end of an epoch is outside. So a result depends on
neither buckets nor instances.

=====================================  =====================================================
P3                                     here
=====================================  =====================================================
ingress, feedback, egress              `step` puts events into round 0 of their times; `_Iteration`
                                       adds 1 to the round, and strips it from outputs
times of messages inside               ``Product(t, rounds)``, rounds lexicographic,
                                       outermost first
Clock inside                           while times are completed by ``w``, the least rounds
                                       with pending work: feedback, and what nodes wait for
                                       (`Operator.awaits`). No watermark could say that all
                                       rounds of ``w`` are over
notification at the fixed point        when no round has pending work at or before ``w``
=====================================  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cutwater.errors import Problem, RunError, many
from cutwater.events import Data, Event
from cutwater.operators.keyed import Emitted, Keyed
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, many_of, row_of
from cutwater.ordering import AFTER_DATA, NO_KEY, canonical
from cutwater.times import in_rounds, maximal, rounds_of

__all__ = ["Body", "LoopNode", "LoopState", "NodeInput", "bound_reached", "loop", "loop_snapshot"]


class NodeInput(NamedTuple):
    """A stream into a node."""

    node: int
    """The node that sends it; always an earlier one."""
    side: Callable[[Any], Any] | None = None
    """For a join: the side that times are tagged with; None: no join."""


@dataclass(frozen=True)
class LoopNode:
    """An operator in the body of a loop."""

    operator: Operator
    inputs: tuple[NodeInput, ...] = ()
    """Where its events come from; empty for the first node, at which events enter."""
    key: Callable[[Any], tuple[Any, bytes]] | None = None
    """The key of a value and its canonical bytes, if the node re-keys events; None: it does not."""
    is_keyed: bool = False
    """Does it keep one state per key? Otherwise it keeps one for all events."""
    rank: int = 0
    """Its position in the order of what one event causes."""
    stage: int = 0
    """The largest number of nodes on a path to it."""
    is_stateful: bool = True
    """Does it keep state, or depend on rounds and times?"""

    def first_index(self, port: int) -> int:
        """The index of the first output for an event that arrived by an input."""
        is_copy = len({edge.node for edge in self.inputs}) < len(self.inputs)
        return port << 32 if is_copy else 0


@dataclass(frozen=True)
class Body:
    """What a loop does in a round."""

    nodes: tuple[LoopNode, ...]
    """In topological order: each comes after those it reads."""
    again: int
    """The node whose outputs are fed back."""
    out: int
    """The node whose outputs leave the loop; may be the same."""
    title: str
    """The loop's name in messages."""
    max_rounds: int | None = None
    is_keyed: bool = False
    """Does each key iterate by itself?"""
    state_per_epoch: bool = False
    """Do the states of its nodes start afresh with each epoch?"""

    @property
    def readers(self) -> list[list[tuple[int, int]]]:
        """For each node, the nodes that read it, with the input they read it by."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for port, edge in enumerate(node.inputs):
                found[edge.node].append((number, port))
        return found


class LoopState:
    """The states of a loop's nodes, and the events since it last iterated. Changed in place."""

    __slots__ = ("held", "key", "waiting")

    def __init__(self, key: Any, held: Sequence[Keyed], waiting: Iterable[Data] = ()) -> None:
        self.key = key
        """The key that iterates by itself; None if all iterate together."""
        self.held = list(held)
        self.waiting = list(waiting)

    def __deepcopy__(self, _memo: Any) -> LoopState:
        return LoopState(self.key, [held.copy() for held in self.held], self.waiting)

    def __repr__(self) -> str:
        states = [dict(held.states.values()) for held in self.held]
        return f"LoopState({[each for each in states if each]!r})"

    @property
    def content(self) -> tuple[Any, ...]:
        """The parts by which states are compared."""
        return self.key, [held.states for held in self.held], self.waiting


def loop(body: Body) -> Operator:
    """Iterates a body until nothing is fed back.

    Keeps the states of its nodes. An output has the time at which its cause entered; a watermark
    passes when nothing at or before it circulates or is awaited any more.

    Examples
    --------
    >>> from cutwater.operators import flatten
    >>> from cutwater.operators.compose import compose
    >>> from cutwater.operators.map_values import map_values
    >>> halve = compose(map_values(lambda time, n: [n // 2] if n > 1 else []), flatten())
    >>> op = loop(Body((LoopNode(halve),), again=0, out=0, title="'halve'"))
    >>> state, _ = op.step(op.start_for(None), Data(5, 8))
    >>> op.barrier(state)[1]
    [Data(time=5, value=4), Data(time=5, value=2), Data(time=5, value=1)]
    """

    def start(key: Any) -> LoopState:
        return LoopState(key if body.is_keyed else None, [Keyed(n.operator) for n in body.nodes])

    def step(state: LoopState, event: Event) -> tuple[LoopState, Sequence[Event]]:
        if isinstance(event, Data):
            state.waiting.append(event)
            return state, ()
        return state, [*_Iteration(body, state).complete([event.time]), event]

    def barrier(state: LoopState) -> tuple[LoopState, Sequence[Event]]:
        left = _Iteration(body, state).run()
        return (start(state.key) if body.state_per_epoch else state), left

    def finish(state: LoopState) -> Iterable[Event]:
        iteration = _Iteration(body, state)
        iteration.run()
        return iteration.complete(maximal(_awaited(state)))

    return Operator(
        None,
        step,
        finish,
        start=start,
        barrier=barrier,
        is_idle=lambda state: not state.waiting and all(held.is_idle for held in state.held),
        is_blank=lambda state: not state.waiting and not any(h.states for h in state.held),
        is_awake=any(node.operator.is_awake for node in body.nodes),
        awaits=lambda state: [*_awaited(state), *(event.time for event in state.waiting)],
    )


def _awaited(state: LoopState) -> Iterator[Any]:
    """The times that its nodes await, as times outside the loop."""
    return (_outside(time) for held in state.held for time in held.awaited())


def _outside(time: Any) -> Any:
    return in_rounds(time, rounds_of(time)[:-1])


def _entered(time: Any) -> Any:
    return in_rounds(time, (*rounds_of(time), 0))


def _next_round(time: Any) -> Any:
    *outer, innermost = rounds_of(time)
    return in_rounds(time, (*outer, innermost + 1))


class _Row(NamedTuple):
    """An event in the loop; `order` is its position in the round."""

    order: tuple[int | bytes, ...]
    key: Any
    key_bytes: bytes
    event: Data


class _Iteration:
    """Runs a loop until nothing circulates."""

    def __init__(self, body: Body, state: LoopState) -> None:
        self._body, self._state = body, state
        # a restored state was made without the functions that run here, such as watched ones
        for node, held in zip(body.nodes, state.held, strict=True):
            held.op = node.operator
        self._readers = body.readers
        self._outputs: list[Data] = []
        self._left: dict[Any, Any] = {}
        self._later: dict[Any, Any] = {}
        """Caches of times outside the loop and in the next round: many events share few times."""

    def run(self) -> list[Data]:
        """The outputs of everything that arrived since the last iteration."""
        waiting, self._state.waiting = self._state.waiting, []
        rows = self._entering(waiting)
        while rows:
            rows = self._round(rows)
        return self._outputs

    def complete(self, limits: Sequence[Any]) -> list[Data]:
        """The same, and the outputs due because all input at or before the limits has arrived."""
        self.run()
        rows: list[_Row] = []
        while rows or (due := self._due(limits)):
            # a round ends only after all earlier ones, so feedback precedes waiting nodes
            rounds = rounds_of(rows[0].event.time) if rows else min(due)
            rows = self._round(rows, [in_rounds(limit, rounds) for limit in limits])
        return self._outputs

    def _due(self, limits: Sequence[Any]) -> set[tuple[int, ...]]:
        """The rounds, at or before one of the limits, that some node awaits."""
        return {
            rounds_of(time)
            for held in self._state.held
            for time in held.awaited()
            if any(_outside(time) <= limit for limit in limits)
        }

    def _entering(self, events: Iterable[Data]) -> list[_Row]:
        is_keyed, key = self._body.is_keyed, self._state.key
        key_bytes = canonical(key) if is_keyed else NO_KEY
        return [
            _Row((position,), key, key_bytes, Data(_entered(event.time), event.value))
            for position, event in enumerate(events)
        ]

    def _round(self, rows: Sequence[_Row], completed: Sequence[Any] = ()) -> list[_Row]:
        """Run each node once; returns the feedback, in the order of its causes."""
        inboxes: list[list[tuple[int, _Row]]] = [[] for _ in self._body.nodes]
        inboxes[0] = [(0, row) for row in rows]
        fed: list[_Row] = []
        for number, node in enumerate(self._body.nodes):
            emitted = self._work(node, self._state.held[number], inboxes[number], completed)
            emitted.sort(key=lambda row: row.order)
            for reader, port in self._readers[number]:
                inboxes[reader] += [(port, row) for row in emitted]
            if number == self._body.out:
                left = self._left
                self._outputs += [
                    Data(_shifted(left, _outside, event.time), event.value)
                    for _, _, _, event in emitted
                ]
            if number == self._body.again:
                fed = emitted
        return self._fed_back(fed)

    def _work(
        self, node: LoopNode, held: Keyed, inbox: list[tuple[int, _Row]], completed: Sequence[Any]
    ) -> list[_Row]:
        inbox.sort(key=_by_order)
        firsts = [node.first_index(port) for port in range(max(1, len(node.inputs)))]
        if not node.is_stateful:
            return self._stateless(node, inbox, firsts)
        emitted: list[_Row] = []
        for port, row in inbox:
            key, key_bytes = self._key_of(node, row)
            side = node.inputs[port].side if node.inputs else None
            event = Data(side(row.event.time), row.event.value) if side else row.event
            outputs = held.data(key, key_bytes, event)
            if outputs:
                emitted += _rows(node, row.order, [(key_bytes, key, outputs)], firsts[port])
        emitted += _rows(node, (AFTER_DATA, node.stage, 0), held.barrier())
        return emitted + _rows(node, (AFTER_DATA, node.stage, 1), held.watermarks(completed))

    def _stateless(
        self, node: LoopNode, inbox: list[tuple[int, _Row]], firsts: Sequence[int]
    ) -> list[_Row]:
        step, start, emitted = node.operator.step, node.operator.start_for(None), list[_Row]()
        for port, row in inbox:
            outputs = step(start, row.event)[1]
            if outputs:
                key, key_bytes = self._key_of(node, row)
                emitted += _rows(node, row.order, [(key_bytes, key, outputs)], firsts[port])
        return emitted

    def _key_of(self, node: LoopNode, row: _Row) -> tuple[Any, bytes]:
        if node.key is not None:
            return node.key(row.event.value)
        return (row.key, row.key_bytes) if node.is_keyed else (None, NO_KEY)

    def _fed_back(self, fed: Sequence[_Row]) -> list[_Row]:
        """The next round. Only events of one round are compared, so positions replace orders."""
        later = self._later
        rows = [
            _Row(
                (position,),
                key,
                key_bytes,
                Data(_shifted(later, _next_round, event.time), event.value),
            )
            for position, (_, key, key_bytes, event) in enumerate(fed)
        ]
        if rows and rounds_of(rows[0].event.time)[-1] == self._body.max_rounds:
            first, rounds = rows[0].event, self._body.max_rounds
            time = _outside(first.time)
            raise RunError(bound_reached(self._body.title, rounds, len(rows), first.value, time))
        return rows


def _shifted(known: dict[Any, Any], shift: Callable[[Any], Any], time: Any) -> Any:
    if time not in known:
        known[time] = shift(time)
    return known[time]


def _by_order(item: tuple[int, _Row]) -> tuple[tuple[int | bytes, ...], int]:
    return item[1].order, item[0]


def _rows(
    node: LoopNode, cause: tuple[int | bytes, ...], emitted: Iterable[Emitted], first: int = 0
) -> list[_Row]:
    return [
        _Row((*cause, key_bytes, node.rank, index), key, key_bytes, event)
        for key_bytes, key, outputs in emitted
        for index, event in enumerate(outputs, first)
        if isinstance(event, Data)
    ]


def bound_reached(title: str, rounds: int, count: int, value: Any, time: Any) -> Problem:
    """The problem of `count` values still circulating; `time` is that of one, None: unknown."""
    at = "" if time is None else f" at time {time!r}"
    return Problem(
        "loop-bound",
        f"{title} has run {many(rounds, 'iteration')}, its max_rounds, and still feeds back "
        f"{many(count, 'value')}, for example {value!r}{at}"[:500],
        "let the body filter out what need not be fed back, or allow more iterations",
    )


def loop_snapshot(
    body: Body, key: Any, kept: Sequence[tuple[Any, Sequence[SnapshotCodec | None]]]
) -> SnapshotCodec:
    """The states of the nodes; `kept` has the key type of each, and the codecs of its steps.

    At the end of an epoch nothing is waiting: the loop has iterated.
    """

    def freeze(state: LoopState) -> Any:
        return (
            state.key,
            *(
                tuple((k, *_frozen(codecs, s)) for k, s in held.states.values())
                for held, (_, codecs) in zip(state.held, kept, strict=True)
            ),
        )

    def thaw(frozen: Any) -> LoopState:
        of_key, *nodes = frozen
        state = LoopState(of_key, [Keyed(node.operator) for node in body.nodes])
        for node, held, (_, codecs), entries in zip(
            body.nodes, state.held, kept, nodes, strict=True
        ):
            for inner, *parts in entries:
                key_bytes = canonical(inner) if node.is_keyed else NO_KEY
                held.put(inner, key_bytes, _thawed(codecs, held.op.start_for(inner), parts))
        return state

    entry_types = (
        many_of(row_of(tp, *(many_of(snapshot.type) for snapshot in codecs if snapshot)))
        for tp, codecs in kept
    )
    return SnapshotCodec(row_of(key, *entry_types), freeze, thaw)


def _frozen(codecs: Sequence[SnapshotCodec | None], state: Any) -> Iterator[tuple[Any, ...]]:
    parts = (state,) if len(codecs) == 1 else state
    for snapshot, part in zip(codecs, parts, strict=True):
        if snapshot is not None:
            yield () if part is None else (snapshot.freeze(part),)


def _thawed(codecs: Sequence[SnapshotCodec | None], begun: Any, kept: Sequence[Any]) -> Any:
    parts = [begun] if len(codecs) == 1 else list(begun)
    rest = iter(kept)
    for number, snapshot in enumerate(codecs):
        if snapshot is not None and (found := next(rest)):
            parts[number] = snapshot.thaw(found[0])
    return parts[0] if len(codecs) == 1 else tuple(parts)
