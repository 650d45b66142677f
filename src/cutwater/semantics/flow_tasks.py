"""A flow as a graph of P1's tasks: segments, their instances, and the messages between them.

=====================================  =====================================================
P1                                     here
=====================================  =====================================================
source                                 an input stream of rows, closed in each epoch by an
                                       `End`: the outputs of barriers and watermarks are ordinary
                                       messages here, since I-Border sends nothing but barriers
task TK⟨f, S, o⟩                       an instance of a segment; named after its last step
parallel instance                      reads the whole stream and skips keys that are not its
                                       own; its readers have one input for each instance
sink                                   the streams of the segment that feeds it
=====================================  =====================================================

With ``in_order`` rows carry their position in the total order and `FlowTasks.next_input` selects
the input a task reads next, so that a run has the result of `simulate`. Without it tasks process
messages as they arrive, as in the paper, and every interleaving is a run.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

from cutwater.errors import Problem, StepError
from cutwater.events import Data
from cutwater.flow import steps as s
from cutwater.flow.fusing import Plan, Segment
from cutwater.jsonable import JsonValue, plain
from cutwater.ordering import AFTER_DATA, NO_KEY, bucket_of
from cutwater.semantics.barriers import (
    Configuration,
    EventContent,
    Message,
    Task,
    initial_configuration,
)
from cutwater.semantics.frozen import Frozen, hashable_form
from cutwater.semantics.inputs import SourceReader
from cutwater.semantics.segments import Row, RowOrder, SegmentState
from cutwater.semantics.snapshots import OnLoss, refuse
from cutwater.semantics.wellformed import checked_configuration, graph_of

__all__ = ["End", "FlowTasks", "Instance", "Payload", "Sent", "TaskValue", "shown_payload"]


@dataclass(frozen=True, slots=True)
class Sent:
    """A row on a stream."""

    stream: str
    row: Row


@dataclass(frozen=True, slots=True)
class End:
    """The end of an epoch on a stream, or of the input."""

    stream: str
    times: tuple[Any, ...] = ()
    """The watermarks at the end of the epoch, by the sources' own rules."""
    is_last: bool = False
    """Is it the end of the input?"""


Payload = Sent | End

_MOST_KEYS = 50
"""The most keys whose states are shown."""
_LAST: RowOrder = (AFTER_DATA + 2,)
"""The order of an end: after everything."""


@dataclass(frozen=True)
class Instance:
    """A parallel instance of a segment."""

    name: str
    """The name of the task and of the stream it writes."""
    segment: Segment
    number: int
    """Its index among the instances."""
    of: int
    """The number of instances."""
    streams: tuple[str, ...]
    """The streams it reads."""
    slots: Mapping[str, tuple[tuple[int, int], ...]]
    """For each stream, the inputs of the segment it feeds, each as (slot in the frontier, port)."""
    sinks: tuple[s.Sink, ...]
    """The sinks that it feeds."""
    is_sorting: bool
    """Must it buffer an epoch and sort it, because an input stream is not in order?"""

    def start(self, on_loss: OnLoss) -> SegmentState:
        """The segment before the first event."""
        ports = [
            port for _, port in sorted(slot for slots in self.slots.values() for slot in slots)
        ]
        owns = self.owns if self.of > 1 else None
        return SegmentState(self.segment, ports, owns, on_loss, self.sinks)

    def owns(self, key_bytes: bytes) -> bool:
        """Does a key belong to this instance?"""
        return bucket_of(key_bytes, self.of) == self.number


class TaskValue:
    """The value of a task: its running segment, and its progress in the epoch."""

    __slots__ = ("_form", "_hash", "advances", "ended", "waiting", "work")

    def __init__(
        self,
        work: SegmentState,
        ended: frozenset[str] = frozenset(),
        advances: tuple[tuple[int, Any], ...] = (),
        waiting: tuple[Sent, ...] = (),
    ) -> None:
        self.work = work
        self.ended = ended
        """The streams whose epoch has ended."""
        self.advances = advances
        """The watermarks they ended with, each with its slot in the frontier."""
        self.waiting = waiting
        """Rows that wait to be sorted."""
        self._form: Hashable = None

    @property
    def form(self) -> Hashable:
        """A hashable form for comparison; computed on demand, which a plain run never needs."""
        if self._form is None:
            keyed = self.work.keyed
            states = {key_bytes: state for key_bytes, (_, state) in keyed.states.items()}
            parts = (states, keyed.touched, self.work.frontier, self.ended, self.advances)
            self._form = hashable_form((*parts, self.waiting))
            self._hash = hash(self._form)
        return self._form

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TaskValue) and self.form == other.form)

    def __hash__(self) -> int:
        return self._hash if self.form else 0

    def __repr__(self) -> str:
        return f"TaskValue({self.shown()!r})"

    def shown(self) -> JsonValue:
        """The states by key, for display."""
        kept = list(islice(self.work.keyed.states.values(), _MOST_KEYS))
        is_unkeyed = all(key is None for key, _ in kept)
        state = plain(kept[0][1] if kept else None) if is_unkeyed else _by_key(kept)
        return {"waiting": len(self.waiting), "state": state} if self.waiting else state


def _by_key(states: Sequence[tuple[Any, Any]]) -> JsonValue:
    by_key = {key: state for key, state in states if isinstance(key, str)}
    if len(by_key) == len(states):
        return plain(by_key)
    return {"$dict": [[plain(key), plain(state)] for key, state in states]}


class FlowTasks:
    """The tasks of a plan.

    Parameters
    ----------
    plan
        The flow.
    instances
        The number of instances of a segment that is placed by key.
    in_order
        Whether rows carry their order; see the module.
    on_call
        Called with the instance, the value before, the payload, and the function that computes the
        result; None: just compute it.
    on_loss
        Called for an event or a state that its codec does not round-trip unchanged. With
        ``in_order`` states go through their codecs at every barrier; without it, where a barrier
        may follow any event, after every event.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        instances: int = 1,
        in_order: bool = False,
        on_call: Callable[..., Any] | None = None,
        on_loss: OnLoss = refuse,
    ) -> None:
        self.plan = plan
        self._on_loss = on_loss
        self.in_order = in_order
        self._instances = instances
        self._on_call = on_call
        self.instances: dict[str, Instance] = {}
        for segment in plan.segments:
            if not self._is_bare_source(segment):
                for number in range(self._count(segment)):
                    instance = self._instance(segment, number)
                    self.instances[instance.name] = instance

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """P1's tasks."""
        return tuple(
            Task(
                instance.name,
                partial(self._call, instance),
                instance.streams,
                instance.name,
                TaskValue(instance.start(self._on_loss)),
            )
            for instance in self.instances.values()
        )

    @cached_property
    def sinks(self) -> dict[str, tuple[str, ...]]:
        """For each sink, the streams it shows."""
        return {sink.name: self.outputs(number) for sink, number in self.plan.sinks}

    @cached_property
    def needs_ends(self) -> bool:
        """Does any step act at the end of an epoch, or when a time is complete?"""
        return any(
            step.is_stateful and not (isinstance(step, s.Apply) and step.expire_after is None)
            for step in self.plan.flow.steps
        )

    def outputs(self, number: int) -> tuple[str, ...]:
        """The streams that carry a segment's output."""
        segment = self.plan.segments[number]
        if self._is_bare_source(segment):
            return (segment.name,)
        return self._names(segment)

    def tasks_of(self, step: str) -> list[str]:
        """The tasks that run a step; a source is a stream, which does not crash."""
        return [
            name
            for name, instance in self.instances.items()
            if step in [p.name for p in instance.segment.steps if not isinstance(p, s.Source)]
        ]

    def initial(self, epochs: Mapping[str, Sequence[Sequence[Payload]]]) -> Configuration:
        """The configuration in which each source stream has these payloads."""
        frozen = {
            name: [[Frozen(w) for w in payloads] for payloads in e] for name, e in epochs.items()
        }
        return checked_configuration(initial_configuration(graph_of(self.tasks), frozen))

    def read(
        self, cut: Sequence[Mapping[str, Sequence[Any]]]
    ) -> tuple[dict[str, list[list[Payload]]], dict[str, SourceReader]]:
        """The payloads of each source by epoch, up to the end of the input; and the readers."""
        sources = sorted((seg.source for seg in self.plan.segments if seg.source), key=_name)
        readers = {source.name: SourceReader(source) for source in sources}
        payloads: dict[str, list[list[Payload]]] = {source.name: [] for source in sources}
        for items in cut:
            for rank, (name, reader) in enumerate(readers.items()):
                rows: list[Payload] = [
                    Sent(name, Row(self._order(rank, position), None, NO_KEY, event))
                    for position, event in reader.read(items[name])
                ]
                time = reader.watermark()
                if self.in_order or self.needs_ends:
                    rows.append(End(name, () if time is None else (time,)))
                payloads[name].append(rows)
        if self.in_order or self.needs_ends:
            for name in payloads:
                payloads[name].append([End(name, is_last=True)])
        return payloads, readers

    def next_input(self, c: Configuration, task: str) -> Message | None:
        """The message a task reads next if it reads in order; None if it must wait."""
        instance = self.instances[task]
        number = c.graph.number[task]
        heads = []
        for stream, position in zip(instance.streams, c.positions[number], strict=False):
            messages = c.messages.at(stream, position)
            if not messages:
                if not instance.is_sorting:
                    return None
                continue
            if isinstance(messages[0].content, EventContent):
                heads.append(messages[0])
        return min(heads, key=_order_of, default=None)

    def _order(self, rank: int, position: int) -> RowOrder:
        return (rank, 0, position) if self.in_order else ()

    def _is_bare_source(self, segment: Segment) -> bool:
        """Is it a source that other segments read, without steps of its own?"""
        is_read = bool(self.plan.readers[segment.number])
        return is_read and segment.source is not None and len(segment.steps) == 1

    def _names(self, segment: Segment) -> tuple[str, ...]:
        """The names of a segment's tasks: that of its last step, unless a source has that name."""
        name, count = segment.steps[-1].name, self._count(segment)
        if any(other.source is not None and other.name == name for other in self.plan.segments):
            name = f"read {name}" if segment.source else f"{segment.steps[-1].verb} {name}"
        return (name,) if count == 1 else tuple(f"{name}/{i}" for i in range(count))

    def _count(self, segment: Segment) -> int:
        return self._instances if segment.placement == "by key" and segment.is_stateful else 1

    def _instance(self, segment: Segment, number: int) -> Instance:
        edges = [(edge.segment, port) for port, edge in enumerate(segment.inputs)]
        slots: dict[str, list[tuple[int, int]]] = {}
        if segment.source is not None:
            slots[segment.name] = [(0, 0)]
        for upstream, port in sorted(edges):
            for stream in self.outputs(upstream):
                slot = sum(map(len, slots.values()))
                slots.setdefault(stream, []).append((slot, port))
        return Instance(
            self._names(segment)[number],
            segment,
            number,
            self._count(segment),
            tuple(slots),
            {stream: tuple(ports) for stream, ports in slots.items()},
            self.plan.sinks_of(segment),
            self.in_order and any(not self._is_emitted_in_order[up] for up, _ in edges),
        )

    @cached_property
    def _is_emitted_in_order(self) -> dict[int, bool]:
        """Does a segment emit rows in order, given inputs in order?

        Not if outputs of one row can arrive by paths of different lengths: an order that extends
        another sorts after it, but what the shorter one causes may sort after what the longer does.
        """
        lengths: dict[int, dict[int, set[int]]] = {}
        verdict: dict[int, bool] = {}
        for segment in self.plan.segments:
            mine: dict[int, set[int]] = {segment.number: {0}}
            for edge in segment.inputs:
                for origin, known in lengths[edge.segment].items():
                    mine.setdefault(origin, set()).update(length + 1 for length in known)
            lengths[segment.number] = mine
            verdict[segment.number] = all(len(known) == 1 for known in mine.values())
        return verdict

    def _call(
        self, instance: Instance, value: Any, payload: Frozen[Payload]
    ) -> tuple[Any, list[Any]]:
        if self._on_call is None:
            return self.work(instance, value, payload)
        result: tuple[Any, list[Any]] = self._on_call(instance, value, payload, self.work)
        return result

    def work(
        self, instance: Instance, value: TaskValue, payload: Frozen[Payload]
    ) -> tuple[TaskValue, list[Frozen[Payload]]]:
        """The new value and the outputs of a task for a payload."""
        content = payload.thaw()
        work = _copied(value.work)
        if isinstance(content, End):
            return self._end(instance, value, work, content)
        if instance.is_sorting:
            waiting = (*value.waiting, content)
            return TaskValue(work, value.ended, value.advances, waiting), []
        rows = self._take(instance, work, content)
        if not self.in_order:
            work.snapshot()
        after = TaskValue(work, value.ended, value.advances)
        return after, self._sent(instance, rows)

    def _end(
        self, instance: Instance, value: TaskValue, work: SegmentState, end: End
    ) -> tuple[TaskValue, list[Frozen[Payload]]]:
        ended = value.ended | {end.stream}
        slots = instance.slots[end.stream]
        advances = (*value.advances, *((slot, time) for time in end.times for slot, _ in slots))
        if len(ended) < len(instance.streams):
            return TaskValue(work, ended, advances, value.waiting), []
        rows = []
        for sent in sorted(value.waiting, key=lambda sent: sent.row.order):
            rows += self._take(instance, work, sent)
        if end.is_last:
            rows += work.finish()
            last = End(instance.name, is_last=True)
        else:
            more, common = work.end_epoch(sorted(advances, key=lambda pair: pair[0]))
            rows += more
            last = End(instance.name, tuple(common))
        return TaskValue(work), [*self._sent(instance, rows), Frozen(last)]

    def _take(self, instance: Instance, work: SegmentState, sent: Sent) -> list[Row]:
        return [
            row
            for slot, port in instance.slots[sent.stream]
            for row in work.process(slot, port, sent.row)
        ]

    def _sent(self, instance: Instance, rows: Sequence[Row]) -> list[Frozen[Payload]]:
        if not self.in_order:
            rows = [Row((), row.key, row.key_bytes, row.event) for row in rows]
        return [Frozen(Sent(instance.name, row)) for row in rows]


def _copied(work: SegmentState) -> SegmentState:
    try:
        return work.copy()
    except (TypeError, AttributeError, pickle.PickleError, RecursionError) as error:
        raise StepError(
            Problem(
                "not-a-value",
                f"{work.segment.steps[-1].title} keeps a state that cannot be copied: {error}",
                "keep dataclasses or builtin values",
            )
        ) from None


def _name(source: s.Source) -> str:
    return source.name


def _order_of(message: Message) -> RowOrder:
    content = message.content
    assert isinstance(content, EventContent)
    payload = content.payload.thaw()
    return payload.row.order if isinstance(payload, Sent) else _LAST


def shown_payload(payload: Frozen[Payload]) -> JsonValue:
    """A payload for display: its value, a watermark, or an end."""
    content = payload.thaw()
    if isinstance(content, End):
        if content.is_last:
            return {"$repr": "end of input"}
        times = ", ".join(repr(time) for time in content.times)
        return {"$repr": f"end of epoch, complete to {times}" if times else "end of epoch"}
    event = content.row.event
    return plain(event.value) if isinstance(event, Data) else plain(event)
