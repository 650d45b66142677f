"""Three ways to take a snapshot of communicating processes and to restore it (P1, Fig. 3).

=====================================  =====================================================
P1, section 3.2                        here
=====================================  =====================================================
processes p1 → p2 → p3                 `PIPELINE`; `MEETING` has two sources
a snapshot without coordination (3a)   `Uncoordinated`; not consistent
Chandy and Lamport's snapshot (3b)     `ChandyLamport`; with messages in flight
asynchronous barriers (3c)             `Barriers`; without
m sent, but not received               ``Process.under_way``
causally consistent                    `is_consistent`
recovery from a snapshot               ``CutModel.step`` of a `Crash`
=====================================  =====================================================

Every process keeps what it received, in order, and forwards it; a source sends its log. Channels
are FIFO. One snapshot is taken, and one more after a crash, from which all processes recover at
once; in `one_by_one` they recover one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

__all__ = [
    "MARKER",
    "MEETING",
    "PIPELINE",
    "Barriers",
    "ChandyLamport",
    "Crash",
    "CutModel",
    "Mark",
    "Move",
    "Process",
    "Received",
    "Snapshotting",
    "System",
    "Take",
    "Uncoordinated",
    "World",
    "has_each_once",
    "has_messages_under_way",
    "has_only_what_was_sent",
    "is_consistent",
]

MARKER = "|"
"""The marker between the messages before a snapshot and those after it."""


class System(msgspec.Struct, frozen=True):
    """The processes, and the channels between them."""

    logs: tuple[tuple[str, ...], ...]
    """The log of each source; sources are the first processes."""
    channels: tuple[tuple[int, int], ...]
    """For each channel its sender and its receiver."""

    @property
    def size(self) -> int:
        """The number of processes; the last one is the sink."""
        return 1 + max(receiver for _, receiver in self.channels)

    def into(self, process: int) -> list[int]:
        """The channels that a process reads."""
        return [n for n, (_, receiver) in enumerate(self.channels) if receiver == process]

    def out_of(self, process: int) -> list[int]:
        """The channels that a process writes."""
        return [n for n, (sender, _) in enumerate(self.channels) if sender == process]


PIPELINE = System((("a", "b", "c"),), ((0, 1), (1, 2)))
"""P1's three processes."""
MEETING = System((("a", "b"), ("x", "y")), ((0, 2), (1, 2), (2, 3)))
"""Two sources with one reader, so that one marker arrives before the other."""

Received = tuple[tuple[int, str], ...]
"""Messages with the channels they arrived on, in order."""


class Process(msgspec.Struct, frozen=True):
    """A process, and its part of the snapshot."""

    received: Received = ()
    """Its state: everything it received; for a source, everything it sent."""
    recorded: Received | None = None
    """Its state in the snapshot; None: not yet taken."""
    marked: tuple[int, ...] = ()
    """The channels whose marker has arrived."""
    under_way: Received = ()
    """Messages in flight: sent before the sender's snapshot, received after the receiver's."""


class World(msgspec.Struct, frozen=True):
    """All processes, and the messages in flight."""

    processes: tuple[Process, ...]
    channels: tuple[tuple[str, ...], ...]
    """For each channel the messages in flight, oldest first."""
    crashes: int
    """How many more crashes are allowed."""


class Take(msgspec.Struct, frozen=True):
    """A source sends its next message, or a process takes the next one of a channel."""

    process: int
    channel: int = -1

    def __str__(self) -> str:
        if self.channel < 0:
            return f"p{self.process + 1} sends"
        return f"p{self.process + 1} takes from channel {self.channel}"


class Mark(msgspec.Struct, frozen=True):
    """A process takes its snapshot without a marker."""

    process: int

    def __str__(self) -> str:
        return f"p{self.process + 1} takes its snapshot"


class Crash(msgspec.Struct, frozen=True):
    """All processes lose their states and restore the snapshot, or their initial states."""

    def __str__(self) -> str:
        return "a crash; all recover"


Move = Take | Mark | Crash


class Snapshotting:
    """The rules of a way to take snapshots; override a method to break one."""

    sends_markers = True

    def starts(self, system: System, process: int) -> bool:
        """May a process begin a snapshot by itself?"""
        return process < len(system.logs)

    def is_blocked(self, process: Process, channel: int) -> bool:
        """Is a channel blocked, so that its next message stays on it?"""
        return False

    def is_due(self, system: System, number: int, process: Process) -> bool:
        """Given a marker: does the process take its snapshot now?"""
        raise NotImplementedError

    def keeps(self, process: Process, channel: int) -> bool:
        """Does a message received now belong to the snapshot, as one in flight?"""
        return False

    def is_whole(self, system: System, world: World) -> bool:
        """Is the snapshot complete, so that a recovery restores it?"""
        return all(
            process.recorded is not None and set(process.marked) == set(system.into(number))
            for number, process in enumerate(world.processes)
        )


class ChandyLamport(Snapshotting):
    """The first marker triggers the snapshot; messages join it until the last marker arrives.

    Any process may begin, as in the figure, where p3 is ahead of p2.
    """

    def starts(self, system: System, process: int) -> bool:
        """Any process may."""
        return True

    def is_due(self, system: System, number: int, process: Process) -> bool:
        """At the first marker."""
        return process.recorded is None

    def keeps(self, process: Process, channel: int) -> bool:
        """A message between the snapshot and the marker of its channel was in flight."""
        return process.recorded is not None and channel not in process.marked


class Barriers(Snapshotting):
    """The last marker triggers the snapshot; a channel is blocked after its marker."""

    def is_blocked(self, process: Process, channel: int) -> bool:
        """After its marker, until the snapshot is taken."""
        return channel in process.marked and process.recorded is None

    def is_due(self, system: System, number: int, process: Process) -> bool:
        """At the last marker."""
        return set(process.marked) == set(system.into(number))


class Uncoordinated(Snapshotting):
    """Every process takes its snapshot at any time."""

    sends_markers = False

    def starts(self, system: System, process: int) -> bool:
        """Any process may."""
        return True

    def is_whole(self, system: System, world: World) -> bool:
        """Once all have taken one."""
        return all(process.recorded is not None for process in world.processes)


class CutModel:
    """All executions with a snapshot, as a `Model`.

    Examples
    --------
    >>> model = CutModel(Barriers())
    >>> (world,) = model.initial_states()
    >>> [str(move) for move in model.actions(world)]
    ['p1 sends', 'p1 takes its snapshot', 'a crash; all recover']
    """

    def __init__(self, way: Snapshotting, system: System = PIPELINE, crashes: int = 1) -> None:
        self.way, self.system, self.crashes = way, system, crashes

    def initial_states(self) -> Iterable[World]:
        """Nothing is sent."""
        processes = (Process(),) * self.system.size
        return (World(processes, ((),) * len(self.system.channels), self.crashes),)

    def actions(self, state: World) -> list[Move]:
        """The possible moves: send, take, begin a snapshot, crash."""
        moves: list[Move] = []
        for number, process in enumerate(state.processes):
            if number < len(self.system.logs):
                moves += [Take(number)] * self._has_more(number, process)
            moves += [
                Take(number, channel)
                for channel in self.system.into(number)
                if state.channels[channel] and not self.way.is_blocked(process, channel)
            ]
            if process.recorded is None and self.way.starts(self.system, number):
                moves.append(Mark(number))
        return [*moves, Crash()] if state.crashes else moves

    def _has_more(self, number: int, process: Process) -> bool:
        return len(process.received) < len(self.system.logs[number])

    def step(self, state: World, action: Move) -> World:
        """The world after a move."""
        match action:
            case Crash():
                return self._recovered(state)
            case Mark():
                return self._recording(state, action.process)
            case Take(number, -1):
                word = self.system.logs[number][len(state.processes[number].received)]
                return self._received(state, number, -1, word)
        word, rest = state.channels[action.channel][0], state.channels[action.channel][1:]
        state = replace(state, channels=_with(state.channels, action.channel, rest))
        if word == MARKER:
            return self._marked(state, action.process, action.channel)
        return self._received(state, action.process, action.channel, word)

    def _received(self, state: World, number: int, channel: int, word: str) -> World:
        process = state.processes[number]
        if channel >= 0 and self.way.keeps(process, channel):
            process = replace(process, under_way=(*process.under_way, (channel, word)))
        process = replace(process, received=(*process.received, (channel, word)))
        state = replace(state, processes=_with(state.processes, number, process))
        return self._sent(state, number, word)

    def _sent(self, state: World, number: int, word: str) -> World:
        for channel in self.system.out_of(number):
            longer = (*state.channels[channel], word)
            state = replace(state, channels=_with(state.channels, channel, longer))
        return state

    def _marked(self, state: World, number: int, channel: int) -> World:
        process = state.processes[number]
        process = replace(process, marked=tuple(sorted({*process.marked, channel})))
        state = replace(state, processes=_with(state.processes, number, process))
        if process.recorded is None and self.way.is_due(self.system, number, process):
            return self._recording(state, number)
        return state

    def _recording(self, state: World, number: int) -> World:
        process = state.processes[number]
        process = replace(process, recorded=process.received)
        state = replace(state, processes=_with(state.processes, number, process))
        return self._sent(state, number, MARKER) if self.way.sends_markers else state

    def _recovered(self, state: World) -> World:
        """Restore the snapshot if complete, else the initial states; another may be taken."""
        is_whole = self.way.is_whole(self.system, state)
        processes: list[Process] = []
        channels: list[tuple[str, ...]] = [()] * len(self.system.channels)
        for process in state.processes:
            back = (process.recorded or ()) if is_whole else ()
            processes.append(Process(back))
            for channel, word in process.under_way if is_whole else ():
                channels[channel] = (*channels[channel], word)
        return World(tuple(processes), tuple(channels), state.crashes - 1)

    def observation(self, state: World) -> tuple[str, ...]:
        """What the sink has received."""
        return tuple(word for _, word in state.processes[-1].received)


def is_consistent(model: CutModel, state: World) -> bool:
    """Was everything received in a complete snapshot also sent in it, and is nothing lost?"""
    if not model.way.is_whole(model.system, state):
        return True
    return all(
        _sent_by(state.processes[sender]) == _received_by(state.processes[receiver], channel)
        for channel, (sender, receiver) in enumerate(model.system.channels)
    )


def has_only_what_was_sent(model: CutModel, state: World) -> bool:
    """Was everything received in a complete snapshot also sent in it (P1, Fig. 3a)?"""
    if not model.way.is_whole(model.system, state):
        return True
    return all(
        len(_received_by(state.processes[receiver], channel))
        <= len(_sent_by(state.processes[sender]))
        for channel, (sender, receiver) in enumerate(model.system.channels)
    )


def has_messages_under_way(state: World) -> bool:
    """Does the snapshot contain messages in flight (P1, Fig. 3b)?"""
    return any(process.under_way for process in state.processes)


def has_each_once(model: CutModel, state: World) -> bool:
    """At rest: does the sink have everything exactly once?"""
    if any(not isinstance(move, Crash) for move in model.actions(state)):
        return True
    return sorted(model.observation(state)) == sorted(w for log in model.system.logs for w in log)


def _sent_by(process: Process) -> list[str]:
    return [word for _, word in process.recorded or ()]


def _received_by(process: Process, channel: int) -> list[str]:
    """The messages received on a channel in the snapshot, and those in flight on it."""
    every = [*(process.recorded or ()), *process.under_way]
    return [word for by, word in every if by == channel]


def _with(parts: Sequence[Any], number: int, part: Any) -> tuple[Any, ...]:
    return (*parts[:number], part, *parts[number + 1 :])
