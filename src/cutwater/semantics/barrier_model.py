"""P1's rules as a model: which steps are possible, and the protocol that says so.

A `Point` is a configuration and how many more tasks may crash. The fair actions (P1, Definition
B.12; see `fairness`) are taking events, taking borders and recovering.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec

from cutwater.semantics.barriers import (
    BORDER,
    FAILED,
    Configuration,
    Event,
    LocalStep,
    Message,
    Running,
    border_step,
    event_step,
    fail_step,
    greatest_common_epoch,
    output,
    recover,
    take_step,
)
from cutwater.semantics.overriding import overridden
from cutwater.semantics.wellformed import checked

__all__ = [
    "BarrierModel",
    "Barriers",
    "Fail",
    "Move",
    "Point",
    "Recover",
    "TakeBorder",
    "TakeEvent",
    "fairness",
    "is_failure",
]


class TakeEvent(msgspec.Struct, frozen=True, cache_hash=True):
    """A task takes an event (I-Event)."""

    task: str
    message: Message


class TakeBorder(msgspec.Struct, frozen=True):
    """A task takes the borders of its epoch (I-Border)."""

    task: str


class Fail(msgspec.Struct, frozen=True):
    """A task crashes (F-Fail)."""

    task: str


class Recover(msgspec.Struct, frozen=True):
    """All tasks recover (F-Recover)."""

    task: None = None


Move = TakeEvent | TakeBorder | Fail | Recover


class Point(msgspec.Struct, frozen=True, cache_hash=True):
    """A configuration, and what may still go wrong."""

    configuration: Configuration
    crashes: int
    """How many more times a task may crash."""


class Barriers:
    """The protocol as the paper has it; a variant overrides what it does otherwise."""

    def moves(self, c: Configuration, number: int) -> Sequence[Move]:
        """What a running task may do next."""
        task, volatile = c.graph.tasks[number], c.states[number].volatile
        if not isinstance(volatile, Running):
            return ()
        heads = self.heads(c, number)
        taken: list[Move] = [
            TakeEvent(task.name, message)
            for messages in heads
            for message in messages
            if isinstance(message.content, Event) and message.epoch == volatile.epoch
        ]
        if all(self._is_border(messages, volatile.epoch) for messages in heads):
            taken.append(TakeBorder(task.name))
        return taken

    @staticmethod
    def heads(c: Configuration, number: int) -> list[tuple[Message, ...]]:
        """The next messages on each input of a task."""
        task, position = c.graph.tasks[number], c.positions[number]
        return [c.messages.at(stream, position[i]) for i, stream in enumerate(task.inputs)]

    @staticmethod
    def _is_border(messages: Sequence[Message], epoch: int) -> bool:
        return any(m.content is BORDER and m.epoch == epoch for m in messages)

    def local(self, c: Configuration, move: TakeEvent | TakeBorder) -> LocalStep | None:
        """The local step of a move."""
        number = c.graph.number[move.task]
        task, state = c.graph.tasks[number], c.states[number]
        if isinstance(move, TakeBorder):
            return border_step(task, state)
        content = move.message.content
        assert isinstance(content, Event)
        return event_step(task, state, move.message.stream, content.word)

    def step(self, c: Configuration, move: Move) -> Configuration:
        """The configuration after a move that is possible."""
        after: Configuration | None
        if isinstance(move, Recover):
            after = self.recover(c)
        elif isinstance(move, Fail):
            number = c.graph.number[move.task]
            after = take_step(c, number, fail_step(c.states[number]))
        else:
            local = self.local(c, move)
            after = take_step(c, c.graph.number[move.task], local) if local else None
        if after is None:
            raise ValueError(f"{move!r} is not possible here")
        return after

    def recover(self, c: Configuration) -> Configuration | None:
        """Where a recovery leads; None if nothing has failed."""
        return recover(c)


class BarrierModel:
    """All executions from a configuration, with so many crashes at most.

    `FlowError` if it is none to start from (P1, Definition 6.8): a graph without circles, inputs of
    equally many epochs, each closed by a border, and tasks that have done nothing yet.

    Examples
    --------
    >>> from cutwater.semantics.barriers import Graph, Task, initial_configuration
    >>> double = Task("double", lambda v, w: (v, [2 * w]), ("numbers",), "doubled")
    >>> start = initial_configuration(Graph((double,)), {"numbers": [[1], [2]]})
    >>> model = BarrierModel(start, crashes=0)
    >>> [type(move).__name__ for move in model.actions(*model.initial_states())]
    ['TakeEvent']
    """

    def __init__(
        self, initial: Configuration, *, crashes: int = 0, protocol: Barriers | None = None
    ) -> None:
        self.initial = checked(initial)
        self.crashes = crashes
        self.protocol = protocol or Barriers()

    @property
    def is_reducible(self) -> bool:
        """Is it the protocol as the paper has it, of which `ample` and `independent` were shown?

        A variant that overrides a rule is searched in full.
        """
        return not overridden(self.protocol, Barriers)

    @property
    def is_acyclic(self) -> bool:
        """Every step but a recovery brings a task forward, and crashes are counted."""
        return self.is_reducible

    def failure_free(self) -> BarrierModel:
        """The same without crashes (P1: I \\ F)."""
        return BarrierModel(self.initial, crashes=0, protocol=self.protocol)

    def initial_states(self) -> Iterable[Point]:
        """The one point at which everything starts."""
        return (Point(self.initial, self.crashes),)

    def actions(self, state: Point) -> list[Move]:
        """What may happen: steps of tasks, then crashes, then a recovery."""
        c = state.configuration
        moves: list[Move] = []
        for number in range(len(c.graph.tasks)):
            moves += self.protocol.moves(c, number)
        if state.crashes:
            moves += [
                Fail(task.name)
                for task, known in zip(c.graph.tasks, c.states, strict=True)
                if known.volatile is not FAILED
            ]
        if c.is_failed:
            moves.append(Recover())
        return moves

    def step(self, state: Point, action: Move) -> Point:
        """The point after a move."""
        after = self.protocol.step(state.configuration, action)
        return Point(after, state.crashes - isinstance(action, Fail))

    def observation(self, state: Point) -> Hashable:
        """What an observer may rely on (Definition 4.3)."""
        return output(state.configuration)

    @staticmethod
    def independent(a: Move, b: Move) -> bool:
        """Causal order (Definition B.3): steps of two tasks, neither of which is a recovery.

        Two crashes may take the last one that is allowed from each other.
        """
        if isinstance(a, Recover) or isinstance(b, Recover):
            return False
        return a.task != b.task and not (isinstance(a, Fail) and isinstance(b, Fail))

    def ample(self, state: Point, actions: Sequence[Move]) -> Sequence[Move] | None:
        """The steps of one task, if nothing else can change them and no observer sees them.

        If every input of a running task has a next message, what the task can do next is settled:
        messages are only ever added behind. Whatever the other tasks do first, its steps stay
        possible and commute with it.

        What can follow without the task shows the same before and after its step. An event is of
        an epoch the task has not closed, so no other task can make it common. A border of epoch e
        is passed over only where another task is behind: until the others have caught up it shows
        nothing, and then, taken before or after them, the common epoch goes from e - 1 to e.

        A recovery does not commute with the steps; but by Lemma B.9 it leads where it leads
        without them, so trying it later loses nothing. Crash and recovery are therefore tried only
        where no such task is left: just before what an observer sees.
        """
        c = state.configuration
        for number in range(len(c.graph.tasks)):
            moves = self.protocol.moves(c, number)
            is_settled = all(self.protocol.heads(c, number))
            if moves and is_settled and not any(self._is_seen(c, move) for move in moves):
                return moves
        return None

    def _is_seen(self, c: Configuration, move: Move) -> bool:
        """Does the step end an epoch that all other tasks have ended?"""
        if not isinstance(move, TakeBorder):
            return False
        after = self.protocol.step(c, move)
        return greatest_common_epoch(after) > greatest_common_epoch(c)


def fairness(move: Any) -> Hashable:
    """The class that a fair execution does not starve: each task, and recovery; no crash."""
    if isinstance(move, Fail):
        return None
    return "recovery" if isinstance(move, Recover) else move.task


def is_failure(move: Any) -> bool:
    """Is it a crash, of which there are finitely many?"""
    return isinstance(move, Fail)
