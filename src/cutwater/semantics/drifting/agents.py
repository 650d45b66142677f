"""The agents of drifting state and what each of them knows (P2, section V).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
Coordinator, and the Acker             `Coordinator`: they run, and fail, together
Cluster state manager                  `ClusterState`
Persistent storage                     `Storage`
Data producer, which replays           `Producer`
Node                                   `Node`
Barrier                                `Barrier`
Data consumer                          `Consumer`
=====================================  =====================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from cutwater.semantics.drifting.elements import (
    BEGIN,
    Acker,
    Element,
    Grouping,
    Root,
    Time,
    fold,
    in_order,
)
from cutwater.semantics.drifting.messages import Groups

__all__ = [
    "Barrier",
    "ClusterState",
    "Consumer",
    "Coordinator",
    "Deployment",
    "Down",
    "Node",
    "Process",
    "Producer",
    "Storage",
]


class ClusterState(msgspec.Struct, frozen=True, cache_hash=True):
    """What a recovery has to know; durable."""

    generation: int = 0
    """The newest one that was claimed."""
    snapshot: Root = BEGIN
    """The last complete one."""


class Storage(msgspec.Struct, frozen=True, cache_hash=True):
    """The states in snapshots; durable."""

    states: frozenset[tuple[Root, str, Groups]] = frozenset()
    """By snapshot and node."""


class Consumer(msgspec.Struct, frozen=True, cache_hash=True):
    """Whoever gets the outputs of a barrier; durable."""

    generation: int = 0
    """Bundles of older ones are refused."""
    number: int = 0
    """The last bundle of this generation."""
    received: tuple[Element, ...] = ()


class Producer(msgspec.Struct, frozen=True, cache_hash=True):
    """Sends its log in order; the log itself is outside."""

    first: int
    """Where the replay began."""
    next: int
    """Where it is now."""


class Node(msgspec.Struct, frozen=True, cache_hash=True):
    """Executes operations on its keys."""

    groups: Groups | None = None
    """None until its state was fetched."""
    sent: int = 0
    """How many elements and retractions it has sent in this generation."""
    seen: frozenset[tuple[str, int]] = frozenset()
    """Those it has worked on, by sender and number: a copy is ignored."""


class Barrier(msgspec.Struct, frozen=True, cache_hash=True):
    """Releases outputs in order of t."""

    last: Time | None = None
    """t_last: nothing up to it is released again."""
    is_ready: bool = False
    """Does it know t_last?"""
    outputs: frozenset[tuple[Element, int]] = frozenset()
    """Elements less retractions, behind t_last."""
    frontier: Root = BEGIN
    """As far as it has heard from the acker."""
    number: int = 0
    """Of the newest bundle."""
    unacknowledged: tuple[tuple[int, Root], ...] = ()
    """Bundles that the consumer may not have: their numbers and inputs."""
    promised: Root | None = None
    """The snapshot to accept when all before it has left."""
    seen: frozenset[tuple[str, int]] = frozenset()
    """As at a node."""


class Coordinator(msgspec.Struct, frozen=True, cache_hash=True):
    """Leads recovery and snapshots, and runs the acker."""

    acker: Acker | None = None
    """None until the generation was granted."""
    snapshot: Root = BEGIN
    """The newest that was begun, or the one recovered from."""
    ready: frozenset[str] = frozenset()
    """Nodes and barriers that may begin."""
    accepted: frozenset[str] | None = None
    """Who has accepted the snapshot that is being taken; None if there is none."""


class Down(msgspec.Struct, frozen=True):
    """An agent that has crashed."""


Process = (
    ClusterState | Storage | Consumer | Producer | Node | Barrier | Coordinator | Down
)  # fmt: skip


@dataclass(frozen=True)
class Deployment:
    """What runs where."""

    flow: tuple[Grouping, ...]
    """The operations; the outputs of the last one leave."""
    inputs: tuple[tuple[Element, ...], ...]
    """The log of each producer, in order of t."""
    nodes: int = 1
    """Each with a barrier, and that with a consumer."""
    snapshots: tuple[Root, ...] = ()
    """Frontiers at which a snapshot is taken, in order."""

    def names(self, kind: str) -> list[str]:
        """The agents of a kind of which each node has one."""
        return [f"{kind} {n}" for n in range(self.nodes)]

    @property
    def workers(self) -> list[str]:
        """Nodes and barriers."""
        return [*self.names("node"), *self.names("barrier")]

    @property
    def producers(self) -> list[str]:
        """One for each log."""
        return [f"producer {n}" for n in range(len(self.inputs))]

    def node_of(self, step: int, value: Any) -> str:
        """Where a value is worked on."""
        return f"node {self.flow[step].key(value) % self.nodes}"

    def expected(self) -> list[tuple[Element, ...]]:
        """What each consumer is to get: the in-order fold."""
        last = len(self.flow) - 1
        elements = in_order(self.flow[:-1], (e for log in self.inputs for e in log))
        return [
            tuple(
                fold(
                    self.flow[last],
                    last,
                    (e for e in elements if self.node_of(last, e.value) == node),
                )
            )
            for node in self.names("node")
        ]
