"""Stateful dataflow with asynchronous barrier snapshots: the rules (P1, section 4).

=====================================  =====================================================
P1                                     here
=====================================  =====================================================
configuration ⟨Π, Σ, N, M, D⟩          `Configuration`: graph, states, positions, messages,
                                       inputs
processor TK⟨f, S, o⟩                  `Task`
state ⟨a, σ_V⟩; fl; ⟨e, v⟩             `TaskState`; `FAILED`; `Running`
message n s ⟨e, d_C⟩; EV⟨w⟩; BD        `Message`; its ``content`` is an `EventContent` or `BARRIER`
actions + s d, − s d                   `Produce`, `Consume`
Def. 4.1, action application           `apply_actions`; None where it is undefined
S-Step                                 `take_step`; S-AbsX and S-AbsP, which drop labels from the
                                       arrow, correspond to dropping its arguments
I-Event, I-Border, F-Fail              `event_step`, `barrier_step`, `fail_step`: local steps
F-Recover                              `recover_all`
Def. 4.2, gce                          `greatest_common_epoch`
Def. 4.3, out                          `output`
Def. 4.4, M ↓ s                        ``Messages.on``
Def. 4.5, lcs                          `latest_common_snapshot`
Def. 6.8, K                            `initial_configuration`, validated
=====================================  =====================================================

Where we interpret the paper (2026-11-16):

- Archives start as ``{0: initial}`` and work starts in epoch 1. Appendix A.2 prints I-Event with a
  superscript on what is consumed and omits F-Fail; we follow section 4.2.1.
- Lemma B.6 says ``dom(a') = {gce}`` after a recovery; Definition 4.5 keeps all epochs up to it, and
  we follow the definition.
- The set of inputs D is M_0, so a recovery makes the sources replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

__all__ = [
    "BARRIER",
    "FAILED",
    "Action",
    "Configuration",
    "Consume",
    "Content",
    "EventContent",
    "Graph",
    "LocalStep",
    "Message",
    "Messages",
    "Produce",
    "Running",
    "Task",
    "TaskState",
    "apply_actions",
    "barrier_step",
    "event_step",
    "fail_step",
    "greatest_common_epoch",
    "initial_configuration",
    "latest_common_snapshot",
    "output",
    "recover_all",
    "take_step",
]


class _Barrier(msgspec.Struct, frozen=True):
    """The type of `BARRIER`."""

    def __repr__(self) -> str:
        return "BARRIER"


class _Failed(msgspec.Struct, frozen=True):
    """The type of `FAILED`."""

    def __repr__(self) -> str:
        return "FAILED"


BARRIER = _Barrier()
"""The content of a message that ends an epoch (P1: BD)."""
FAILED = _Failed()
"""The volatile state of a task that has crashed (P1: fl)."""


class EventContent(msgspec.Struct, frozen=True, cache_hash=True):
    """The content of a message that carries data (P1: EV⟨w⟩)."""

    payload: Any
    """The payload; hashable."""


Content = EventContent | _Barrier


class Message(msgspec.Struct, frozen=True, cache_hash=True):
    """A message at its position on a stream (P1: n s ⟨e, d_C⟩)."""

    n: int
    """Its sequence number on the stream, from 0."""
    stream: str
    epoch: int
    """The epoch it belongs to."""
    content: Content


class Produce(msgspec.Struct, frozen=True):
    """The action of sending a message (P1: + s d)."""

    stream: str
    epoch: int
    content: Content


class Consume(msgspec.Struct, frozen=True):
    """The action of consuming the next message of a stream, which must be this one (P1: − s d)."""

    stream: str
    epoch: int
    content: Content


Action = Produce | Consume


_MANY = 256
"""From this size on, a set is a view of a log that it shares with the sets it grew from: copying
each would make a long run quadratic. A search has many small sets that fork, which are copied."""


class _Grown:
    """An append-only log of distinct messages."""

    __slots__ = ("by_position", "log", "number")

    def __init__(self, messages: Iterable[Message]) -> None:
        self.log: list[Message] = []
        self.number: dict[Message, int] = {}
        self.by_position: dict[tuple[str, int], list[Message]] = {}
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        self.number[message] = len(self.log)
        self.log.append(message)
        self.by_position.setdefault((message.stream, message.n), []).append(message)


class Messages:
    """The messages in the system (P1: M): a set, indexed by position."""

    __slots__ = ("_all", "_by_position", "_grown", "_size")

    def __init__(self, messages: frozenset[Message]) -> None:
        self._all: frozenset[Message] | None = messages
        self._by_position: dict[tuple[str, int], tuple[Message, ...]] | None = None
        self._grown: _Grown | None = None
        self._size = len(messages)

    @property
    def all(self) -> frozenset[Message]:
        """All messages, as a set."""
        if self._all is None:
            assert self._grown is not None
            self._all = frozenset(self._grown.log[: self._size])
        return self._all

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Messages) and self.all == other.all

    def __hash__(self) -> int:
        return hash(self.all)

    def __repr__(self) -> str:
        ordered = sorted(self.all, key=lambda m: (m.stream, m.n, m.epoch, repr(m.content)))
        return f"Messages({ordered!r})"

    def __iter__(self) -> Iterator[Message]:
        return iter(self.all)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, message: Message) -> bool:
        if self._grown is not None:
            return self._grown.number.get(message, self._size) < self._size
        return message in self.all

    def at(self, stream: str, n: int) -> tuple[Message, ...]:
        """The messages at a position: at most one in a well-formed configuration."""
        if self._grown is not None:
            return tuple(m for m in self._grown.by_position.get((stream, n), ()) if m in self)
        if self._by_position is None:
            by_position: dict[tuple[str, int], tuple[Message, ...]] = {}
            for message in self.all:
                position = (message.stream, message.n)
                by_position[position] = (*by_position.get(position, ()), message)
            self._by_position = by_position
        return self._by_position.get((stream, n), ())

    def on(self, stream: str) -> frozenset[Message]:
        """Definition 4.4: the messages on a stream."""
        return frozenset(message for message in self.all if message.stream == stream)

    def with_message(self, message: Message) -> Messages:
        """These messages and one more."""
        if message in self:
            return self
        if self._size >= _MANY:
            return self._with_one_of_many(message)
        extended = Messages(self.all | {message})
        if self._by_position is not None:
            position = (message.stream, message.n)
            extended._by_position = {**self._by_position, position: (*self.at(*position), message)}
        return extended

    def _with_one_of_many(self, message: Message) -> Messages:
        if self._grown is None or len(self._grown.log) > self._size:  # another set grew from it
            self._grown = _Grown(self.all)
        self._grown.add(message)
        extended = Messages.__new__(Messages)
        extended._all, extended._by_position = None, None
        extended._grown, extended._size = self._grown, self._size + 1
        return extended


@dataclass(frozen=True)
class Task:
    """A processor (P1: TK⟨f, S, o⟩), with its initial value."""

    name: str
    f: Callable[[Any, Any], tuple[Any, Sequence[Any]]]
    """``(value, payload) -> (value, payloads)``; pure. Values and payloads are hashable."""
    inputs: tuple[str, ...]
    """The streams it reads."""
    output: str
    """The stream it writes."""
    initial: Any = None
    """Its value before the first event."""

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The streams it has a position on: its inputs, then its output."""
        return (*self.inputs, self.output)


@dataclass(frozen=True, eq=False)
class Graph:
    """The processors (P1: Π), which no step changes; graphs compare by identity."""

    tasks: tuple[Task, ...]
    """In topological order: each task comes after those it reads."""

    @cached_property
    def number(self) -> dict[str, int]:
        """The index of each task, by name."""
        return {task.name: i for i, task in enumerate(self.tasks)}

    @cached_property
    def writer(self) -> dict[str, int]:
        """The index of the task that writes each stream; the other streams are inputs."""
        return {task.output: i for i, task in enumerate(self.tasks)}

    @cached_property
    def produced(self) -> frozenset[str]:
        """The streams that tasks write; the others are inputs."""
        return frozenset(self.writer)


class Running(msgspec.Struct, frozen=True, cache_hash=True):
    """The volatile state of a running task (P1: ⟨e, v⟩)."""

    epoch: int
    """The epoch it is in."""
    value: Any
    """Its function's state after the events so far; hashable."""


class TaskState(msgspec.Struct, frozen=True, cache_hash=True):
    """The state of a task (P1: ⟨a, σ_V⟩)."""

    archive: tuple[tuple[int, Any], ...]
    """Its snapshots: pairs of an epoch and the value at its end, in order of epochs."""
    volatile: Running | _Failed
    """The part that a crash loses."""

    @property
    def newest(self) -> int:
        """The newest epoch it has a snapshot of (P1: max(dom(a)))."""
        return self.archive[-1][0]

    def snapshot(self, epoch: int) -> Any:
        """The value it had at the end of an epoch (P1: a(e))."""
        return next(value for known, value in self.archive if known == epoch)


class Configuration(msgspec.Struct, frozen=True, cache_hash=True):
    """A point of an execution (P1: ⟨Π, Σ, N, M, D⟩)."""

    graph: Graph
    """Π: the tasks and how they are connected."""
    states: tuple[TaskState, ...]
    """Σ: the state of each task, in the order of the graph."""
    positions: tuple[tuple[int, ...], ...]
    """N: for each task its position on each of its streams, the next to be read or written."""
    messages: Messages
    """M: the messages sent on all streams."""
    inputs: Messages
    """D: the initial messages, to be replayed."""

    def position(self, number: int, stream: str) -> int:
        """N_p(s): the position of a task on one of its streams."""
        return self.positions[number][self.graph.tasks[number].streams.index(stream)]

    @property
    def is_failed(self) -> bool:
        """Has some task crashed and not been recovered?"""
        return any(state.volatile is FAILED for state in self.states)


class LocalStep(msgspec.Struct, frozen=True):
    """A step of a task by itself (P1: π ⊩ σ –X→ σ'): its actions and its next state."""

    actions: tuple[Action, ...]
    state: TaskState


def apply_actions(
    actions: Iterable[Action], streams: Sequence[str], at: tuple[int, ...], messages: Messages
) -> tuple[tuple[int, ...], Messages] | None:
    """Definition 4.1: positions and messages after the actions; None where it is undefined."""
    positions = list(at)
    for action in actions:
        index = streams.index(action.stream)
        message = Message(positions[index], action.stream, action.epoch, action.content)
        if isinstance(action, Produce):
            messages = messages.with_message(message)
        elif message not in messages:
            return None
        positions[index] += 1
    return tuple(positions), messages


def take_step(c: Configuration, number: int, local: LocalStep) -> Configuration | None:
    """Rule S-Step: a task takes a local step; None if its actions cannot be applied."""
    # PREMISE: X(N_p, M) = (N_p', M')
    streams = c.graph.tasks[number].streams
    applied = apply_actions(local.actions, streams, c.positions[number], c.messages)
    if applied is None:
        return None
    # STATE
    position, messages = applied
    states = (*c.states[:number], local.state, *c.states[number + 1 :])
    positions = (*c.positions[:number], position, *c.positions[number + 1 :])
    # RESULT
    return Configuration(c.graph, states, positions, messages, c.inputs)


def event_step(task: Task, state: TaskState, stream: str, payload: Any) -> LocalStep | None:
    """Rule I-Event: consume an event of this epoch from one input, and send the outputs."""
    # PREMISE: the task runs; f(v, w) = v', W'
    if not isinstance(state.volatile, Running):
        return None
    epoch = state.volatile.epoch
    value, payloads = task.f(state.volatile.value, payload)
    # STATE
    after = TaskState(state.archive, Running(epoch, value))
    # RESULT
    taken = Consume(stream, epoch, EventContent(payload))
    sent = (Produce(task.output, epoch, EventContent(out)) for out in payloads)
    return LocalStep((taken, *sent), after)


def barrier_step(task: Task, state: TaskState) -> LocalStep | None:
    """Rule I-Border: align, snapshot, forward the barrier, enter the next epoch."""
    # PREMISE: the task runs; S-Step checks that the next message on every input is the barrier
    if not isinstance(state.volatile, Running):
        return None
    epoch, value = state.volatile.epoch, state.volatile.value
    # STATE
    after = TaskState((*state.archive, (epoch, value)), Running(epoch + 1, value))
    # RESULT
    taken = (Consume(stream, epoch, BARRIER) for stream in task.inputs)
    return LocalStep((*taken, Produce(task.output, epoch, BARRIER)), after)


def fail_step(state: TaskState) -> LocalStep:
    """Rule F-Fail: the volatile state is lost."""
    # PREMISE: none; STATE
    after = TaskState(state.archive, FAILED)
    # RESULT
    return LocalStep((), after)


def recover_all(c: Configuration) -> Configuration | None:
    """Rule F-Recover: all tasks restore the latest common snapshot; None if none has failed."""
    # PREMISE: some task has failed
    if not c.is_failed:
        return None
    # RESULT
    return latest_common_snapshot(c)


def greatest_common_epoch(c: Configuration) -> int:
    """Definition 4.2: the newest epoch of which every task has a snapshot."""
    return min(state.newest for state in c.states)


def output(c: Configuration) -> frozenset[Message]:
    """Definition 4.3: what an observer may rely on, the messages of common epochs."""
    epoch = greatest_common_epoch(c)
    return frozenset(message for message in c.messages if message.epoch <= epoch)


def latest_common_snapshot(c: Configuration) -> Configuration:
    """Definition 4.5: the configuration as if nothing after the common epoch had happened."""
    epoch = greatest_common_epoch(c)
    kept = output(c)
    states = tuple(
        TaskState(
            tuple((known, value) for known, value in state.archive if known <= epoch),
            Running(epoch + 1, state.snapshot(epoch)),
        )
        for state in c.states
    )
    count = Counter(message.stream for message in kept)
    positions = tuple(tuple(count[stream] for stream in task.streams) for task in c.graph.tasks)
    return Configuration(c.graph, states, positions, Messages(c.inputs.all | kept), c.inputs)


def initial_configuration(
    graph: Graph, inputs: Mapping[str, Sequence[Sequence[Any]]]
) -> Configuration:
    """The configuration before the first step: each input stream has its epochs and barriers.

    Not validated here: see `cutwater.semantics.wellformed`.
    """
    messages = Messages(
        frozenset(message for stream in inputs for message in _closed(stream, inputs[stream]))
    )
    states = tuple(
        TaskState(((0, task.initial),), Running(1, task.initial)) for task in graph.tasks
    )
    positions = tuple((0,) * len(task.streams) for task in graph.tasks)
    return Configuration(graph, states, positions, messages, messages)


def _closed(stream: str, epochs: Sequence[Sequence[Any]]) -> Iterator[Message]:
    n = 0
    for epoch, payloads in enumerate(epochs, 1):
        for payload in payloads:
            yield Message(n, stream, epoch, EventContent(payload))
            n += 1
        yield Message(n, stream, epoch, BARRIER)
        n += 1
