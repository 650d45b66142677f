"""The agents of drifting state and the state of each (P2, section V).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
Coordinator, and the Acker             `Coordinator`: they run, and fail, together
Cluster state manager                  `ClusterState`
Persistent storage                     `SnapshotStorage`
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
    outputs_in_order,
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
    "SnapshotStorage",
]


class ClusterState(msgspec.Struct, frozen=True, cache_hash=True):
    """What a recovery needs to know; durable."""

    generation: int = 0
    """The newest generation claimed."""
    snapshot: Root = BEGIN
    """The last complete snapshot."""


class SnapshotStorage(msgspec.Struct, frozen=True, cache_hash=True):
    """The states of all snapshots; durable."""

    states: frozenset[tuple[Root, str, Groups]] = frozenset()
    """By snapshot and node: (snapshot, node, groups)."""


class Consumer(msgspec.Struct, frozen=True, cache_hash=True):
    """Receives the outputs of a barrier; durable."""

    generation: int = 0
    """Bundles of older generations are rejected."""
    number: int = 0
    """The number of the last bundle of this generation."""
    received: tuple[Element, ...] = ()


class Producer(msgspec.Struct, frozen=True, cache_hash=True):
    """Sends its log in order; the log itself is external."""

    first: int
    """The offset where the replay began."""
    next: int
    """The next offset to send."""


class Node(msgspec.Struct, frozen=True, cache_hash=True):
    """Runs operations on its keys."""

    groups: Groups | None = None
    """None until its state has been fetched."""
    sent: int = 0
    """The number of elements and retractions it has sent in this generation."""
    seen: frozenset[tuple[str, int]] = frozenset()
    """Those it has processed, by sender and number: duplicates are ignored."""


class Barrier(msgspec.Struct, frozen=True, cache_hash=True):
    """Releases outputs in order of t."""

    last: Time | None = None
    """t_last: nothing at or before it is released again."""
    is_ready: bool = False
    """Does it know t_last?"""
    outputs: frozenset[tuple[Element, int]] = frozenset()
    """Elements minus retractions, after t_last."""
    frontier: Root = BEGIN
    """The last frontier received from the acker."""
    number: int = 0
    """The number of the newest bundle."""
    unacknowledged: tuple[tuple[int, Root], ...] = ()
    """Bundles that the consumer may not have yet: their numbers and inputs."""
    promised: Root | None = None
    """The snapshot to accept when everything before it has been released; None: no snapshot."""
    seen: frozenset[tuple[str, int]] = frozenset()
    """As at a node."""


class Coordinator(msgspec.Struct, frozen=True, cache_hash=True):
    """Leads recovery and snapshots, and runs the acker."""

    acker: Acker | None = None
    """None until the generation has been granted."""
    snapshot: Root = BEGIN
    """The newest snapshot begun, or the one recovered from."""
    ready: frozenset[str] = frozenset()
    """Nodes and barriers that are ready to start."""
    accepted: frozenset[str] | None = None
    """The workers that have accepted the snapshot in progress; None if there is none."""


class Down(msgspec.Struct, frozen=True):
    """An agent that has crashed."""


Process = (
    ClusterState | SnapshotStorage | Consumer | Producer | Node | Barrier | Coordinator | Down
)  # fmt: skip


@dataclass(frozen=True)
class Deployment:
    """What runs where."""

    flow: tuple[Grouping, ...]
    """The operations; the outputs of the last one are released."""
    inputs: tuple[tuple[Element, ...], ...]
    """The log of each producer, in order of t."""
    nodes: int = 1
    """The number of nodes, each with a barrier and a consumer."""
    snapshots: tuple[Root, ...] = ()
    """Frontiers at which a snapshot is taken, in order."""

    def names(self, kind: str) -> list[str]:
        """The agents of a kind, one for each node."""
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
        """The node that processes a value."""
        return f"node {self.flow[step].key(value) % self.nodes}"

    def expected(self) -> list[tuple[Element, ...]]:
        """What each consumer must receive: the in-order fold."""
        last = len(self.flow) - 1
        elements = outputs_in_order(self.flow[:-1], (e for log in self.inputs for e in log))
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
