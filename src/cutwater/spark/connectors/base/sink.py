"""The contract of a sink connector: fenced by generation, idempotent by a ledger.

A sink belongs to one checkpoint at a time. Its ledger records which one, which generation of its
runs may write, and how far each bucket is. The rows of a bucket have a total order. They are
released in one of two ways:

``commit``
    Tasks stage rows where no reader looks; the driver publishes the whole epoch at once when every
    task is done. An observer sees finished epochs only.
``early``
    Tasks make rows visible at once, each bucket atomically with its ledger entry. Of each bucket,
    an observer sees a prefix of the rows of a run without failures.

`write` runs in tasks: more than once if a task is retried, concurrently if Spark speculates or a
zombie driver wakes up. `publish` runs in the driver, and again if a crash came before Spark
committed the epoch. The ledger makes both idempotent; `cutwater.testing.connectors` tests that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cutwater.errors import FencedError, Problem
from cutwater.flow.guarantees.end_to_end import AT_LEAST_ONCE, EXACTLY_ONCE

__all__ = [
    "AT_LEAST_ONCE",
    "EXACTLY_ONCE",
    "BucketRows",
    "Claim",
    "Guarantee",
    "Receipt",
    "Release",
    "SinkConnector",
    "already_claimed",
    "fenced",
    "refuse_if_claimed",
]

Release = Literal["commit", "early"]


@dataclass(frozen=True)
class Guarantee:
    """What an observer may rely on, and why."""

    kind: str
    """`EXACTLY_ONCE` or `AT_LEAST_ONCE`."""
    because: str
    """Completes "exactly-once: ``postgres`` …", as in "commits rows and ledger together"."""
    provided: str = ""
    """A condition that the user must ensure, as in "readers use read_committed"."""


@dataclass(frozen=True)
class Claim:
    """The ownership of a sink by one generation of the runs of a checkpoint."""

    flow: str
    sink: str
    query_id: str
    generation: int
    checkpoint: str
    """The folder of the checkpoint."""
    is_bulk_synchronous: bool = True
    """Does an epoch begin only when all tasks have finished the previous one? Ticks do not."""

    def as_ledger(self, format: int) -> dict[str, Any]:
        """The claim as the ledgers of folders and tables store it."""
        return {
            "format": format,
            "flow": self.flow,
            "sink": self.sink,
            "query_id": self.query_id,
            "generation": self.generation,
        }

    @property
    def staging(self) -> Path:
        """A folder for staged rows, for sinks that have no place of their own to stage them."""
        return Path(self.checkpoint) / "staging" / self.sink


@dataclass(frozen=True)
class BucketRows:
    """The rows of one bucket for a sink in one epoch, in order."""

    label: int
    """Identifies the bucket: all rows of a key have the same label, in every epoch."""
    orders: list[bytes]
    """The position of each row in the total order of the epoch."""
    values: Sequence[Any]
    """Lines of JSON or `Records`, whichever the sink accepts."""

    @property
    def last_order(self) -> bytes:
        """The order of the last row."""
        return self.orders[-1]


@dataclass(frozen=True)
class Receipt:
    """What a task attempt reports to the driver (Spark: the commit message)."""

    sink: str


class SinkConnector(ABC):
    """Where the rows of a sink go; a subclass is a frozen dataclass of its settings.

    It is serialised to every worker, so it holds no connection and no secret.
    """

    accepts: Literal["lines", "records"]
    """Are the values of a bucket lines of JSON, or `Records`?"""
    release: Release

    @property
    def releases(self) -> tuple[Release, ...]:
        """The ways of release that it supports."""
        return (self.release,)

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What the sink guarantees, provided its input is replayed unchanged."""

    def problems(self, name: str, record: Any) -> Iterator[Problem]:
        """Why the settings cannot work with records of a type; makes no connection."""
        return iter(())

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the rows go, as a phrase; no two sinks of a flow may share it.

        Empty if it keeps no ledger there: then any number of sinks may write to it.
        """

    @property
    def ledger_location(self) -> str:
        """Where its ledger is, as a phrase; empty if the ledger is part of the output."""
        return ""

    @abstractmethod
    def newest_epoch(self, name: str, query_id: str) -> int | None:
        """The newest epoch that a checkpoint has published, by the ledger; -1: none.

        None if the ledger does not know the checkpoint. Epochs whose rows were deleted since then
        still count.
        """

    @abstractmethod
    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        """Why a checkpoint must not write to the sink; changes nothing.

        `query_id` is None for a checkpoint that does not exist yet; `next_epoch` is the first
        epoch that the checkpoint has not planned.
        """

    def schema_problems(self, name: str, record: Any) -> list[Problem]:
        """Why records of a type do not fit the existing output; may connect, changes nothing."""
        return []

    def prepare(self, name: str, record: Any) -> None:  # noqa: B027 (most have nothing to do)
        """Create what records of a type need, such as a table; called before `claim`."""

    @abstractmethod
    def generation(self, name: str) -> int:
        """The newest generation that claimed the sink; 0: none."""

    @abstractmethod
    def claim(self, claim: Claim) -> None:
        """Write a generation to the ledger, which fences earlier ones; delete what they staged.

        Raises `FencedError` if a newer generation has claimed the sink (`already_claimed`).
        """

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        """Take the sink from another checkpoint; called before `claim`.

        The other checkpoint is fenced for good. Its rows stay, or are deleted if not `keep`. After
        a crash halfway, `claim` finishes the takeover, or `check` still reports that the sink
        belongs to another checkpoint. Does nothing if the sink belongs to this one already.
        """
        raise NotImplementedError(f"{type(self).__name__} is never another checkpoint's")

    @abstractmethod
    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Receipt:
        """In a task: stage rows or make them visible, as `release` says; `record` is their type.

        Raises `FencedError` if a newer generation has claimed the sink (`fenced`).
        """

    @abstractmethod
    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        """In the driver, when all tasks of an epoch are done: make visible what they staged.

        Raises `FencedError` as `write` does.
        """

    def released(self, claim: Claim, epoch: int) -> str | None:
        """How much of an epoch observers may have seen, as a phrase; None: certainly nothing.

        Called after `claim`, so earlier generations can release nothing more. Rows whose fate is
        unknown count as released, and so does a call that has begun.
        """
        return "an unknown number of rows"

    @abstractmethod
    def row_count(self, claim: Claim) -> int:
        """The number of rows of this checkpoint that readers see."""


def refuse_if_claimed(location: str, claim: Claim, held: Mapping[str, Any]) -> None:
    """Raise `FencedError` if the ledger names another checkpoint or a newer generation."""
    is_anothers = held.get("query_id", claim.query_id) != claim.query_id
    if is_anothers or held.get("generation", 0) > claim.generation:
        raise already_claimed(location, claim, held["generation"])


def already_claimed(location: str, claim: Claim, newest: int) -> FencedError:
    """The error of a run that claims a sink after a newer run has claimed it."""
    return FencedError.because(
        f"sink '{claim.sink}': generation {claim.generation} cannot claim {location}: generation "
        f"{newest} has claimed it"
    )


def fenced(epoch: int, location: str, claim: Claim, newest: int | None) -> FencedError:
    """The error of a run that is fenced while it writes."""
    return FencedError.because(
        f"epoch {epoch} was not published to {location}: generation {newest} has taken over from "
        f"generation {claim.generation}"
    )
