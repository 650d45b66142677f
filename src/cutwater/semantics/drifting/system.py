"""The whole system of drifting state, and its transitions (P2, section V).

A `System` is every process and message at one moment, and the faults still allowed; a `Move` is a
possible next event. The functions define what a step of one process, a recovery, a crash or any
other fault changes; `model` defines when they happen.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from cutwater.semantics.drifting.agents import Coordinator, Down, Process
from cutwater.semantics.drifting.messages import ClaimGeneration, MessageBody, Sends

__all__ = [
    "Crash",
    "CutOff",
    "Deliver",
    "Duplicate",
    "Faults",
    "Heal",
    "Key",
    "Lose",
    "Message",
    "Move",
    "Produce",
    "Suspect",
    "System",
    "by_key",
    "crashed",
    "newest",
    "put",
    "replaced",
    "spent",
    "suspected",
]


class Message(msgspec.Struct, frozen=True, cache_hash=True):
    """A message in flight."""

    generation: int
    source: str
    target: str
    body: MessageBody


class Faults(msgspec.Struct, frozen=True, cache_hash=True):
    """The faults allowed, and how many of each."""

    crashes: int = 0
    losses: int = 0
    """Messages that never arrive."""
    duplicates: int = 0
    """Messages that arrive while a copy stays in flight."""
    suspicions: int = 0
    """Recoveries without reason; the suspected agent lives on as a zombie beside its successor."""
    partitions: int = 0
    """Agents cut off in both directions until the partition heals."""


class Produce(msgspec.Struct, frozen=True):
    """A producer sends its next input."""

    agent: str
    generation: int


class Deliver(msgspec.Struct, frozen=True, cache_hash=True):
    """A message arrives."""

    message: Message


class Duplicate(msgspec.Struct, frozen=True, cache_hash=True):
    """A message arrives, and a copy of it stays in flight."""

    message: Message


class Lose(msgspec.Struct, frozen=True, cache_hash=True):
    """A message never arrives."""

    message: Message


class Crash(msgspec.Struct, frozen=True):
    """An agent loses its volatile state; a durable one loses its unanswered requests."""

    agent: str
    generation: int


class CutOff(msgspec.Struct, frozen=True):
    """An agent is partitioned from all others."""

    agent: str


class Heal(msgspec.Struct, frozen=True):
    """The partition heals; the agent's state is unchanged."""


class Suspect(msgspec.Struct, frozen=True):
    """A recovery begins because an agent is suspected to have failed."""

    agent: str | None = None
    """A live agent that continues beside its successor; None if there was a real fault."""


Move = Produce | Deliver | Duplicate | Lose | Crash | CutOff | Heal | Suspect

Key = tuple[str, int]
"""An agent and its generation; durable agents run in all generations, written as 0."""


class System(msgspec.Struct, frozen=True, cache_hash=True):
    """The whole state at one moment."""

    processes: tuple[tuple[Key, Process], ...]
    """Running and crashed agents, by name and generation."""
    network: frozenset[Message]
    """The messages in flight."""
    faults: Faults
    """The faults still allowed."""
    attempts: int = 0
    """Recoveries so far; each has its own generation."""
    reasons: int = 1
    """Recoveries due: one for the first start, and one more for each real fault."""
    spared: frozenset[Key] = frozenset()
    """Zombies: processes that were suspected and continue beside their successors."""
    cut_off: str | None = None
    """The agent cut off by a partition; None: there is no partition."""


def by_key(entry: tuple[Key, Process]) -> Key:
    """The sort key of processes."""
    return entry[0]


def newest(known: Iterable[Key], agent: str) -> int:
    """The newest generation in which an agent was started; 0 if none."""
    return max((generation for name, generation in known if name == agent), default=0)


def put(state: System, key: Key, process: Process, sends: Sends, *, generation: int) -> System:
    """The system after a process changed its state and sent messages."""
    known = dict(state.processes) | {key: process}
    sent = {Message(generation, key[0], target, body) for target, body in sends}
    return replace(
        state,
        processes=tuple(sorted(known.items(), key=by_key)),
        network=state.network | sent,
    )


def replaced(state: System, key: Key) -> System:
    """The system after a starting process ends its predecessors, except zombies."""
    kept = tuple(
        entry for entry in state.processes if entry[0][0] != key[0] or entry[0] in state.spared
    )
    return replace(state, processes=kept)


def suspected(state: System, agent: str | None) -> System:
    """The system after a coordinator starts a recovery in a new generation."""
    key = ("coordinator", state.attempts + 1)
    if agent is None:
        after = replace(state, reasons=state.reasons - 1)
    else:
        after = spent(state, "suspicions", is_reason=False)
        after = replace(after, spared=after.spared | {(agent, state.attempts)})
    after = replace(replaced(after, key), attempts=key[1])
    return put(after, key, Coordinator(), [("cluster state", ClaimGeneration())], generation=key[1])


def crashed(state: System, key: Key) -> System:
    """The system after a crash; durable agents keep their state but lose unanswered requests."""
    if key[1]:
        return put(state, key, Down(), (), generation=key[1])
    left = frozenset(message for message in state.network if message.target != key[0])
    return replace(state, network=left)


def spent(state: System, fault: str, *, is_reason: bool = True) -> System:
    """The system with one fault fewer allowed and, if `is_reason`, one more recovery due."""
    left = replace(state.faults, **{fault: getattr(state.faults, fault) - 1})
    return replace(state, faults=left, reasons=state.reasons + is_reason)
