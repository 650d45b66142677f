"""The world of a loop that feeds back through a log: durable state, a run, and the bounds.

The body of the loop appends the name of each event to a state, and emits the whole state. So any
event that is lost, duplicated, reordered or processed on a wrong state shows in the output.
"""

from __future__ import annotations

import msgspec

__all__ = [
    "FedBack",
    "LoopCase",
    "LoopOutput",
    "LoopRun",
    "LoopWorld",
    "Released",
    "RoundPlan",
    "RoundWork",
    "States",
    "Token",
    "WrittenRows",
]

States = tuple[tuple[int, str], ...]
"""The state of each input epoch in the loop, by its number; a shared state has the number -1."""
Released = tuple[tuple[int, tuple[str, ...]], ...]
"""What readers see: input epochs, in order, each with its outputs."""


class Token(msgspec.Struct, frozen=True, order=True):
    """An event in the loop."""

    name: str
    rounds: int = 0
    """How many more times it is fed back."""


class FedBack(msgspec.Struct, frozen=True, order=True):
    """A row of the log: an event for the next round of its input epoch."""

    input: int
    order: int
    """The rank of its cause among the events of its round."""
    token: Token


class LoopOutput(msgspec.Struct, frozen=True, order=True):
    """A row of the log of results: it waits until its input epoch is released."""

    input: int
    order: int
    """The rank of its cause among the events of its round."""
    value: str


class WrittenRows(msgspec.Struct, frozen=True):
    """What an epoch published to a log; its rows are in the order in which they were written."""

    epoch: int
    rows: tuple[FedBack, ...] | tuple[LoopOutput, ...]


class RoundPlan(msgspec.Struct, frozen=True):
    """An entry of Spark's offset log."""

    reads: int
    """The input epoch that enters; -1: none."""
    start: int
    """The first epoch whose feedback it reads."""
    end: int
    """The first epoch after those."""
    leaves: int
    """The input epoch that is released; -1: none."""
    inside: tuple[int, ...]
    """The input epochs in the loop, oldest first, without the one that enters."""


class RoundWork(msgspec.Struct, frozen=True):
    """What the tasks of an epoch have staged."""

    fed_back: tuple[FedBack, ...]
    outputs: tuple[LoopOutput, ...]
    released: Released


class LoopRun(msgspec.Struct, frozen=True):
    """One start of the flow."""

    number: int
    first: int
    """The number of epochs that were planned before it started."""
    epoch: int = -1
    """The epoch whose tasks it has run; -1: none."""
    work: RoundWork | None = None
    """What they staged."""
    done: int = 0
    """How many steps of `order_of_an_epoch` are done."""


class LoopWorld(msgspec.Struct, frozen=True, cache_hash=True):
    """All durable state, and the run."""

    plans: tuple[RoundPlan, ...]
    """Spark's offset log."""
    finished: int
    """Length of Spark's commit log."""
    synced: int
    """The number of epochs whose offsets were synced to disk, as their tasks began."""
    log: tuple[WrittenRows, ...]
    """What epochs fed back, as far as it was not removed."""
    results: tuple[WrittenRows, ...]
    """What left the body, as far as it was not removed."""
    states: tuple[States, ...]
    """For each epoch whose tasks have run, the states after it."""
    shown: Released
    """What readers of the sink see."""
    released: int
    """The sink's ledger: the first epoch that it has not published."""
    starts: int
    run: LoopRun | None
    crashes: int
    """How many more runs may be killed."""
    losses: int
    """How many more times the machine may lose power."""


class LoopCase(msgspec.Struct, frozen=True):
    """The bounds of an exploration."""

    inputs: tuple[tuple[Token, ...], ...] = (
        (Token("a", 1), Token("b", 1)),
        (Token("c", 1),),
    )
    """The events of each input epoch, in order."""
    room: int = 2
    """How many input epochs may overlap if their states are separate."""
    is_state_shared: bool = False
    """Does the body keep its state from one input epoch to the next?"""
    crashes: int = 1
    losses: int = 0
