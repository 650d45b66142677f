"""P1's rules as a model: which steps are possible, and the protocol that defines them.

A `Point` is a configuration and the number of crashes still allowed. The fair actions (P1,
Definition B.12; see `fairness`) are consuming events, consuming barriers and recovering.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec

from cutwater.semantics.barriers import (
    BARRIER,
    FAILED,
    Configuration,
    EventContent,
    LocalStep,
    Message,
    Running,
    barrier_step,
    event_step,
    fail_step,
    greatest_common_epoch,
    output,
    recover_all,
    take_step,
)
from cutwater.semantics.overriding import overridden
from cutwater.semantics.wellformed import checked_configuration

__all__ = [
    "BarrierModel",
    "Barriers",
    "Fail",
    "Move",
    "Point",
    "Recover",
    "TakeBarrier",
    "TakeEvent",
    "fairness",
    "is_failure",
]


class TakeEvent(msgspec.Struct, frozen=True, cache_hash=True):
    """A task consumes an event (I-Event)."""

    task: str
    message: Message


class TakeBarrier(msgspec.Struct, frozen=True):
    """A task consumes the barriers of its epoch (I-Border)."""

    task: str


class Fail(msgspec.Struct, frozen=True):
    """A task crashes (F-Fail)."""

    task: str


class Recover(msgspec.Struct, frozen=True):
    """All tasks recover (F-Recover)."""

    task: None = None


Move = TakeEvent | TakeBarrier | Fail | Recover


class Point(msgspec.Struct, frozen=True, cache_hash=True):
    """A configuration, and the faults still allowed."""

    configuration: Configuration
    crashes: int
    """How many more crashes are allowed."""


class Barriers:
    """The protocol of the paper; a variant overrides the rules it changes."""

    def moves(self, c: Configuration, number: int) -> Sequence[Move]:
        """The moves that a task can make next; none if it has crashed."""
        task, volatile = c.graph.tasks[number], c.states[number].volatile
        if not isinstance(volatile, Running):
            return ()
        heads = self.heads(c, number)
        taken: list[Move] = [
            TakeEvent(task.name, message)
            for messages in heads
            for message in messages
            if isinstance(message.content, EventContent) and message.epoch == volatile.epoch
        ]
        if all(self._is_barrier(messages, volatile.epoch) for messages in heads):
            taken.append(TakeBarrier(task.name))
        return taken

    @staticmethod
    def heads(c: Configuration, number: int) -> list[tuple[Message, ...]]:
        """The next messages on each input of a task."""
        task, position = c.graph.tasks[number], c.positions[number]
        return [c.messages.at(stream, position[i]) for i, stream in enumerate(task.inputs)]

    @staticmethod
    def _is_barrier(messages: Sequence[Message], epoch: int) -> bool:
        return any(m.content is BARRIER and m.epoch == epoch for m in messages)

    def local(self, c: Configuration, move: TakeEvent | TakeBarrier) -> LocalStep | None:
        """The local step of a move; None if its premise does not hold."""
        number = c.graph.number[move.task]
        task, state = c.graph.tasks[number], c.states[number]
        if isinstance(move, TakeBarrier):
            return barrier_step(task, state)
        content = move.message.content
        assert isinstance(content, EventContent)
        return event_step(task, state, move.message.stream, content.payload)

    def step(self, c: Configuration, move: Move) -> Configuration:
        """The configuration after a move; raises `ValueError` if the move is not possible."""
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
        """The configuration after a recovery; None if nothing has failed."""
        return recover_all(c)


class BarrierModel:
    """All executions from a configuration, with at most `crashes` crashes.

    Raises `FlowError` if it is not an initial one (P1, Definition 6.8): an acyclic graph, inputs
    with the same number of epochs, each closed by a barrier, and tasks that have not run yet.

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
        self.initial = checked_configuration(initial)
        self.crashes = crashes
        self.protocol = protocol or Barriers()

    @property
    def is_reducible(self) -> bool:
        """Is it the paper's own protocol, for which `ample` and `independent` are proven?

        A variant that overrides a rule is searched exhaustively.
        """
        return not overridden(self.protocol, Barriers)

    @property
    def is_acyclic(self) -> bool:
        """True if reducible: every step but a recovery advances a task, and crashes are bounded."""
        return self.is_reducible

    def failure_free(self) -> BarrierModel:
        """The same model without crashes (P1: I \\ F)."""
        return BarrierModel(self.initial, crashes=0, protocol=self.protocol)

    def initial_states(self) -> Iterable[Point]:
        """The single initial point."""
        return (Point(self.initial, self.crashes),)

    def actions(self, state: Point) -> list[Move]:
        """The possible moves: steps of tasks, then crashes, then a recovery."""
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

        Two crashes are dependent: one may use up the last crash allowed.
        """
        if isinstance(a, Recover) or isinstance(b, Recover):
            return False
        return a.task != b.task and not (isinstance(a, Fail) and isinstance(b, Fail))

    def ample(self, state: Point, actions: Sequence[Move]) -> Sequence[Move] | None:
        """The steps of one task, if nothing else can affect them and no observer sees them.

        If every input of a running task has a next message, what the task can do next is fixed:
        messages are only ever appended. Whatever the other tasks do first, its steps stay possible
        and commute with theirs.

        An execution that continues without the task shows the same before and after its step. An
        event belongs to an epoch the task has not closed, so no other task can make it common. A
        barrier of epoch e is chosen only where another task is behind: until the others have caught
        up it shows nothing, and then, consumed before or after them, the common epoch goes from
        e - 1 to e.

        A recovery does not commute with the steps; but by Lemma B.9 it leads to the same
        configuration as without them, so trying it later loses nothing. Crash and recovery are
        therefore tried only where no such task is left: just before an observable step.
        """
        c = state.configuration
        for number in range(len(c.graph.tasks)):
            moves = self.protocol.moves(c, number)
            is_settled = all(self.protocol.heads(c, number))
            if moves and is_settled and not any(self._is_seen(c, move) for move in moves):
                return moves
        return None

    def _is_seen(self, c: Configuration, move: Move) -> bool:
        """Does the step complete an epoch that all other tasks have completed?"""
        if not isinstance(move, TakeBarrier):
            return False
        after = self.protocol.step(c, move)
        return greatest_common_epoch(after) > greatest_common_epoch(c)


def fairness(move: Any) -> Hashable:
    """The class that a fair execution must not starve: each task, and recovery; None: a crash."""
    if isinstance(move, Fail):
        return None
    return "recovery" if isinstance(move, Recover) else move.task


def is_failure(move: Any) -> bool:
    """Is it a crash? An execution has finitely many."""
    return isinstance(move, Fail)
