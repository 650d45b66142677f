"""The agents of drifting state together, and what becomes of them (P2, section V).

A `System` is every process and every message at a moment, and what may still go wrong; a `Move` is
what may happen next. The functions say what a step of one process, a recovery, a crash or any other
fault changes; `model` says when they happen.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from cutwater.semantics.drifting.agents import Coordinator, Down, Process
from cutwater.semantics.drifting.messages import Body, Claim, Sends

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
    """Something on its way."""

    generation: int
    source: str
    target: str
    body: Body


class Faults(msgspec.Struct, frozen=True, cache_hash=True):
    """What may go wrong, and how often."""

    crashes: int = 0
    losses: int = 0
    """Messages that never arrive."""
    duplicates: int = 0
    """Messages that arrive and are still on their way."""
    suspicions: int = 0
    """Recoveries for no reason; the agent that was suspected lives on beside its successor."""
    partitions: int = 0
    """Agents that nothing reaches or leaves until the partition heals."""


class Produce(msgspec.Struct, frozen=True):
    """A producer sends its next input."""

    agent: str
    generation: int


class Deliver(msgspec.Struct, frozen=True, cache_hash=True):
    """A message arrives."""

    message: Message


class Duplicate(msgspec.Struct, frozen=True, cache_hash=True):
    """A message arrives, and a copy of it is still on its way."""

    message: Message


class Lose(msgspec.Struct, frozen=True, cache_hash=True):
    """A message never arrives."""

    message: Message


class Crash(msgspec.Struct, frozen=True):
    """An agent loses what is not durable, and the requests that it had not answered."""

    agent: str
    generation: int


class CutOff(msgspec.Struct, frozen=True):
    """An agent cannot be reached, and reaches nobody."""

    agent: str


class Heal(msgspec.Struct, frozen=True):
    """The agent that was cut off is there again, as it was."""


class Suspect(msgspec.Struct, frozen=True):
    """A recovery begins, because an agent is suspected to have failed."""

    agent: str | None = None
    """An agent that lives, and goes on beside its successor; None if something went wrong."""


Move = Produce | Deliver | Duplicate | Lose | Crash | CutOff | Heal | Suspect

Key = tuple[str, int]
"""An agent and the generation it runs in; durable agents run in all, which is called 0."""


class System(msgspec.Struct, frozen=True, cache_hash=True):
    """Everything at a moment."""

    processes: tuple[tuple[Key, Process], ...]
    """Agents at work, or down, by name and generation."""
    network: frozenset[Message]
    """What is on its way."""
    faults: Faults
    """What may still go wrong."""
    attempts: int = 0
    """Recoveries so far; each is a generation."""
    reasons: int = 1
    """Recoveries that are called for: one to begin with, one more for whatever goes wrong."""
    spared: frozenset[Key] = frozenset()
    """Processes that were suspected and go on beside their successors."""
    cut_off: str | None = None
    """The agent beyond the partition."""


def by_key(entry: tuple[Key, Process]) -> Key:
    """The order of processes."""
    return entry[0]


def newest(known: Iterable[Key], agent: str) -> int:
    """The newest generation in which an agent was started; 0 if in none."""
    return max((generation for name, generation in known if name == agent), default=0)


def put(state: System, key: Key, process: Process, sends: Sends, *, generation: int) -> System:
    """A process has a new state and has sent something."""
    known = dict(state.processes) | {key: process}
    sent = {Message(generation, key[0], target, body) for target, body in sends}
    return replace(
        state,
        processes=tuple(sorted(known.items(), key=by_key)),
        network=state.network | sent,
    )


def replaced(state: System, key: Key) -> System:
    """The process that begins ends its predecessors, but for those that were suspected."""
    kept = tuple(
        entry for entry in state.processes if entry[0][0] != key[0] or entry[0] in state.spared
    )
    return replace(state, processes=kept)


def suspected(state: System, agent: str | None) -> System:
    """A coordinator begins a recovery in a generation of its own."""
    key = ("coordinator", state.attempts + 1)
    if agent is None:
        after = replace(state, reasons=state.reasons - 1)
    else:
        after = spent(state, "suspicions", is_reason=False)
        after = replace(after, spared=after.spared | {(agent, state.attempts)})
    after = replace(replaced(after, key), attempts=key[1])
    return put(after, key, Coordinator(), [("cluster state", Claim())], generation=key[1])


def crashed(state: System, key: Key) -> System:
    """What is durable stays; requests to it that were not answered are lost."""
    if key[1]:
        return put(state, key, Down(), (), generation=key[1])
    left = frozenset(message for message in state.network if message.target != key[0])
    return replace(state, network=left)


def spent(state: System, fault: str, *, is_reason: bool = True) -> System:
    """One fault less that may still happen, and a reason more to recover."""
    left = replace(state.faults, **{fault: getattr(state.faults, fault) - 1})
    return replace(state, faults=left, reasons=state.reasons + is_reason)
