"""The messages between the agents of drifting state (P2, sections V.A and V.B).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
V.A.1, snapshotting                    `TakeSnapshot`, `Store`, `StateStored`, `Accepted`,
                                       `CommitSnapshot`
V.A.2, last output element             `Bundle`, `Received`, `AskLast`, `Last`
V.B, recovery                          `ClaimGeneration`, `Claimed`, `Start`, `Fetch`,
                                       `Fetched`, `Ready`, `ReplayInputs`
elements; notifications of the Acker   `Work`; `Report`, `Bound`, `Passed`
=====================================  =====================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cutwater.semantics.drifting.elements import Change, Element, Group, Root

__all__ = [
    "Accepted",
    "AskLast",
    "Bound",
    "Bundle",
    "ClaimGeneration",
    "Claimed",
    "CommitSnapshot",
    "Fetch",
    "Fetched",
    "Groups",
    "Last",
    "MessageBody",
    "Name",
    "Passed",
    "Ready",
    "Received",
    "ReplayInputs",
    "Report",
    "Sends",
    "Start",
    "StateStored",
    "Store",
    "TakeSnapshot",
    "Work",
]

Name = tuple[Root, tuple[str, int]]
"""The acker's name for a message: the input it descends from, its sender and its number there."""
Groups = tuple[tuple[tuple[int, int], Group], ...]
"""The groups of a node by step and key, sorted."""


class _Body(msgspec.Struct, frozen=True, cache_hash=True):
    """The body of a message."""


class ClaimGeneration(_Body, frozen=True):
    """Coordinator to cluster state: claim this generation for a recovery."""


class Claimed(_Body, frozen=True):
    """Cluster state to coordinator: granted; recover from this snapshot."""

    snapshot: Root


class Start(_Body, frozen=True):
    """Coordinator to nodes and barriers: restart from this snapshot."""

    snapshot: Root


class Fetch(_Body, frozen=True):
    """Node to storage: request for the node's state in a snapshot."""

    snapshot: Root


class Fetched(_Body, frozen=True):
    """Storage to node: the requested state."""

    groups: Groups


class AskLast(_Body, frozen=True):
    """Barrier to consumer: request for the last bundle; fences older barriers."""


class Last(_Body, frozen=True):
    """Consumer to barrier: the last bundle; None: there is none."""

    bundle: Element | None


class Ready(_Body, frozen=True):
    """Node or barrier to coordinator: ready to start."""


class ReplayInputs(_Body, frozen=True):
    """Coordinator to producers: replay everything that is not before the snapshot."""

    snapshot: Root


class Work(_Body, frozen=True):
    """Producer or node to node or barrier: an element or a retraction."""

    number: int
    """Unique per sender and generation."""
    step: int
    """The operation it is for; the barrier comes after the last one."""
    change: Change


class Report(_Body, frozen=True):
    """Node or barrier to the acker: what was processed, and what was sent meanwhile."""

    done: Name
    sent: tuple[Name, ...] = ()


class Bound(_Body, frozen=True):
    """Producer to the acker: everything sent so far; nothing before the bound will follow."""

    bound: Root
    sent: tuple[Name, ...]


class Passed(_Body, frozen=True):
    """Acker to barriers: everything before the frontier is done."""

    frontier: Root


class TakeSnapshot(_Body, frozen=True):
    """Coordinator to nodes and barriers: make everything before this recoverable."""

    at: Root


class Store(_Body, frozen=True):
    """Node to storage: the node's state before this frontier."""

    at: Root
    groups: Groups


class StateStored(_Body, frozen=True):
    """Storage to node: the state is durable."""

    at: Root


class Accepted(_Body, frozen=True):
    """To the coordinator; from a node: state is recoverable, from a barrier: outputs are out."""

    at: Root


class CommitSnapshot(_Body, frozen=True):
    """Coordinator to cluster state: the snapshot to recover from."""

    at: Root


class Bundle(_Body, frozen=True):
    """Barrier to consumer: an output with its t, which is t_last from now on."""

    number: int
    """Counted from 1 in each generation."""
    output: Element


class Received(_Body, frozen=True):
    """Consumer to barrier: acknowledges the bundle with this number."""

    number: int


MessageBody = (
    ClaimGeneration | Claimed | Start | Fetch | Fetched | AskLast | Last | Ready | ReplayInputs
    | Work | Report | Bound | Passed | TakeSnapshot | Store | StateStored | Accepted
    | CommitSnapshot | Bundle | Received
)  # fmt: skip
Sends = Sequence[tuple[str, MessageBody]]
"""Messages to be sent: target and body."""
