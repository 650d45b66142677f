"""What the runtime asks of a sink.

A sink belongs to one checkpoint at a time, by its ledger: who writes to it, and how far each lane
is. A lane is what one bucket has for the sink; its rows have a total order. Rows leave by one of
two ways:

``commit``
    Tasks stage rows where no reader looks; the driver shows the whole epoch at once when every
    task is done. An observer sees finished epochs.
``early``
    Tasks show rows at once, each lane together with its entry in the ledger. An observer sees, of
    each lane, a prefix of what a run without failures shows.

`write` runs in tasks, more than once if a task is tried again, and at the same time if Spark
speculates or a driver that was taken for dead wakes up. `publish` runs in the driver, again if a
crash came before Spark noted that the epoch was finished. The ledger makes both harmless.
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
    "Claim",
    "Guarantee",
    "Lane",
    "Receipt",
    "Release",
    "Sink",
    "fenced",
    "refuse_if_taken",
    "taken",
]

Release = Literal["commit", "early"]


@dataclass(frozen=True)
class Guarantee:
    """What an observer may rely on, and why."""

    level: str
    """`EXACTLY_ONCE` or `AT_LEAST_ONCE`."""
    because: str
    """Completes "exactly-once: ``postgres`` …": "commits rows and ledger together"."""
    provided: str = ""
    """A condition that the user has to see to: "readers use read_committed"."""


@dataclass(frozen=True)
class Claim:
    """Who writes to a sink: one generation of the runs of one checkpoint."""

    flow: str
    sink: str
    query_id: str
    generation: int
    checkpoint: str
    """The folder of the checkpoint."""
    is_in_lockstep: bool = True
    """Does an epoch begin only when all tasks have finished the one before? Ticks do not wait."""

    def as_ledger(self, format: int) -> dict[str, Any]:
        """Who writes, as the ledgers of folders and tables say it."""
        return {
            "format": format,
            "flow": self.flow,
            "sink": self.sink,
            "query_id": self.query_id,
            "generation": self.generation,
        }

    @property
    def staging(self) -> Path:
        """A folder for what is not shown yet, for sinks that have no such place themselves."""
        return Path(self.checkpoint) / "staging" / self.sink


@dataclass(frozen=True)
class Lane:
    """What one bucket has for a sink in one epoch, in order."""

    label: int
    orders: list[bytes]
    values: Sequence[Any]
    """Lines of JSON, or `Records`: as the sink takes them."""

    @property
    def last_order(self) -> bytes:
        """The place of the last row among all rows of the epoch."""
        return self.orders[-1]


@dataclass(frozen=True)
class Receipt:
    """What an attempt of a task tells the driver of what it wrote; sinks add to it."""

    sink: str


class Sink(ABC):
    """Where the rows of a sink go. Travels to every process: holds no connection and no secret."""

    takes: Literal["lines", "records"]
    """Are the values of a lane lines of JSON, or `Records`?"""
    release: Release

    @property
    def releases(self) -> tuple[Release, ...]:
        """The ways of release that it could be set to."""
        return (self.release,)

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What the sink promises, if its input is replayed as it was."""

    def problems(self, name: str, record: Any) -> Iterator[Problem]:
        """Settings that cannot work with records of a type, seen without a look at the sink."""
        return iter(())

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the rows go, in words; no two sinks of a flow go to the same place.

        Nothing, if it keeps no ledger there, and any number of sinks may go to it.
        """

    @property
    def ledger_place(self) -> str:
        """Where its ledger is, in words; nothing, if it lies in the output."""
        return ""

    @abstractmethod
    def newest_epoch(self, name: str, query_id: str) -> int | None:
        """The newest epoch of a checkpoint that the output has, by its ledger; -1: none.

        None, if the ledger knows nothing of the checkpoint. Epochs that readers have deleted since
        then count as there.
        """

    @abstractmethod
    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        """Why the sink must not be written to by a checkpoint; nothing is changed.

        `query_id` is None for a checkpoint that does not exist yet; `next_epoch` is the first
        epoch that the checkpoint knows nothing of.
        """

    def misfits(self, name: str, record: Any) -> list[Problem]:
        """Why records of a type cannot go to the sink, by a look at it; nothing is changed."""
        return []

    def make_ready(self, name: str, record: Any) -> None:  # noqa: B027 (most have nothing to do)
        """Make what records of a type need before the sink is taken."""

    @abstractmethod
    def generation(self, name: str) -> int:
        """The newest generation that took the sink; 0 if none did."""

    @abstractmethod
    def take(self, claim: Claim) -> None:
        """Write a generation into the ledger, which fences all earlier ones; sweep orphans."""

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        """Make the sink this checkpoint's that `check` says is another's; `take` comes next.

        The other one shows nothing more. What it has shown stays, or goes if not `keep`. If it is
        cut off, `take` finishes it, or `check` still says that the sink is another's. One that is
        this checkpoint's already is left as it is.
        """
        raise NotImplementedError(f"{type(self).__name__} is never another checkpoint's")

    @abstractmethod
    def write(self, claim: Claim, epoch: int, record: Any, lanes: Sequence[Lane]) -> Receipt:
        """In a task: stage rows or show them, as `release` says; `record` is their type."""

    @abstractmethod
    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        """In the driver, when all tasks of an epoch are done: show what they staged."""

    def shown(self, claim: Claim, epoch: int) -> str | None:
        """How much of an epoch observers may have seen, in words; None: nothing, for certain.

        Asked after `take`, so earlier generations show nothing more. What is not known counts as
        shown, and so does a call that began.
        """
        return "rows that it does not count"

    @abstractmethod
    def rows(self, claim: Claim) -> int:
        """How many rows of this checkpoint readers see."""


def refuse_if_taken(place: str, claim: Claim, held: Mapping[str, Any]) -> None:
    """A run that slept while another took the sink, by what the ledger holds, must not take it."""
    is_anothers = held.get("query_id", claim.query_id) != claim.query_id
    if is_anothers or held.get("generation", 0) > claim.generation:
        raise taken(place, claim, held["generation"])


def taken(place: str, claim: Claim, newest: int) -> FencedError:
    """What a run is told that comes too late to take a sink."""
    return FencedError.because(
        f"sink '{claim.sink}': generation {claim.generation} cannot take {place}: generation "
        f"{newest} has it now"
    )


def fenced(epoch: int, place: str, claim: Claim, newest: int | None) -> FencedError:
    """What a run is told that another has taken the sink from."""
    return FencedError.because(
        f"epoch {epoch} was not published to {place}: generation {newest} has taken over from "
        f"generation {claim.generation}"
    )
