"""What the agents of drifting state tell each other (P2, sections V.A and V.B).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
V.A.1, snapshotting                    `TakeSnapshot`, `Store`, `Stored`, `Accepted`, `Commit`
V.A.2, last output element             `Bundle`, `Received`, `AskLast`, `Last`
V.B, recovery                          `Claim`, `Claimed`, `Start`, `Fetch`, `Fetched`, `Ready`,
                                       `Replay`
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
    "Body",
    "Bound",
    "Bundle",
    "Claim",
    "Claimed",
    "Commit",
    "Fetch",
    "Fetched",
    "Groups",
    "Last",
    "Name",
    "Passed",
    "Ready",
    "Received",
    "Replay",
    "Report",
    "Sends",
    "Start",
    "Store",
    "Stored",
    "TakeSnapshot",
    "Work",
]

Name = tuple[Root, tuple[str, int]]
"""A message as the acker knows it: the input it descends from, its sender and its number there."""
Groups = tuple[tuple[tuple[int, int], Group], ...]
"""The groups of a node by step and key, in order."""


class _Body(msgspec.Struct, frozen=True, cache_hash=True):
    """What a message says."""


class Claim(_Body, frozen=True):
    """Coordinator to cluster state: I recover in this generation."""


class Claimed(_Body, frozen=True):
    """Cluster state to coordinator: do, from this snapshot."""

    snapshot: Root


class Start(_Body, frozen=True):
    """Coordinator to nodes and barriers: begin anew from this snapshot."""

    snapshot: Root


class Fetch(_Body, frozen=True):
    """Node to storage: what was my state?"""

    snapshot: Root


class Fetched(_Body, frozen=True):
    """Storage to node: this was it."""

    groups: Groups


class AskLast(_Body, frozen=True):
    """Barrier to consumer: what have you got last? And from no older barrier from now on."""


class Last(_Body, frozen=True):
    """Consumer to barrier: the last bundle."""

    bundle: Element | None


class Ready(_Body, frozen=True):
    """Node or barrier to coordinator: the work may begin."""


class Replay(_Body, frozen=True):
    """Coordinator to producers: send what is not before the snapshot."""

    snapshot: Root


class Work(_Body, frozen=True):
    """Producer or node to node or barrier: an element or a retraction."""

    number: int
    """Different for all that one sender sends in a generation."""
    step: int
    """The operation that it is for; the barrier comes behind the last one."""
    change: Change


class Report(_Body, frozen=True):
    """Node or barrier to the acker: this was worked on, and that was sent meanwhile."""

    done: Name
    sent: tuple[Name, ...] = ()


class Bound(_Body, frozen=True):
    """Producer to the acker: all that was sent, and that nothing before the bound will be."""

    bound: Root
    sent: tuple[Name, ...]


class Passed(_Body, frozen=True):
    """Acker to barriers: everything before the frontier is done."""

    frontier: Root


class TakeSnapshot(_Body, frozen=True):
    """Coordinator to nodes and barriers: make everything before this recoverable."""

    at: Root


class Store(_Body, frozen=True):
    """Node to storage: my state before this."""

    at: Root
    groups: Groups


class Stored(_Body, frozen=True):
    """Storage to node: it is safe."""

    at: Root


class Accepted(_Body, frozen=True):
    """Node to coordinator: my state is recoverable. Barrier: my outputs have left."""

    at: Root


class Commit(_Body, frozen=True):
    """Coordinator to cluster state: the snapshot to recover from."""

    at: Root


class Bundle(_Body, frozen=True):
    """Barrier to consumer: an output with its t, which is t_last from now on."""

    number: int
    """Counted from 1 in each generation."""
    output: Element


class Received(_Body, frozen=True):
    """Consumer to barrier: I have the bundle with this number."""

    number: int


Body = (
    Claim | Claimed | Start | Fetch | Fetched | AskLast | Last | Ready | Replay | Work | Report
    | Bound | Passed | TakeSnapshot | Store | Stored | Accepted | Commit | Bundle | Received
)  # fmt: skip
Sends = Sequence[tuple[str, Body]]
"""Messages to be sent: to whom, and what they say."""
