"""Computes the table of systems and recoveries in the documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cutwater.checking.guarantees.classify import classify
from cutwater.checking.guarantees.determinism import deterministic, order_sensitive
from cutwater.checking.guarantees.release import recovers_from_storage, waits_for
from cutwater.semantics.delivery.epochs import drifting_state, flink_epochs
from cutwater.semantics.delivery.histories import letters
from cutwater.semantics.delivery.published import (
    all_idempotent,
    micro_batches,
    released_at_once,
    strong_productions,
)
from cutwater.semantics.delivery.system import System

__all__ = ["VARIANTS", "TableRow", "Variants", "as_markdown", "rows", "runs_as_markdown"]


@dataclass(frozen=True)
class Variants:
    """A system with several recoveries."""

    make: Callable[[str], System]
    """Given the name of a recovery, the system with it."""
    inputs: str
    """The letters it is run on: the fewest that distinguish its recoveries."""
    recoveries: tuple[str, ...]
    """Names of its recoveries, its own first."""


VARIANTS = (
    Variants(
        strong_productions,
        "ab",
        (
            "resend what is not recorded",
            "resend without removing duplicates",
            "resend nothing",
            "release before the write",
        ),
    ),
    Variants(
        micro_batches,
        "ab",
        (
            "rerun the batch that did not finish",
            "rerun the newest batch too",
            "skip the batch that did not finish",
            "state stored apart from outputs",
        ),
    ),
    Variants(
        flink_epochs,
        "ab",
        (
            "newest checkpoint, replay behind it",
            "replay from an older offset",
            "replay from a newer offset",
            "waiting outputs are not saved",
            "release before the commit",
        ),
    ),
    Variants(
        drifting_state,
        "ab",
        (
            "newest snapshot, replay behind t",
            "replay begins one too late",
            "last output is not asked for",
            "waiting outputs are not saved",
            "snapshot holds speculation",
        ),
    ),
    Variants(all_idempotent, "ab", ("replay everything", "appending sink", "no replay")),
    Variants(
        released_at_once,
        "abc",
        (
            "replay in any order",
            "replay and release again",
            "last snapshot, no replay",
            "replay in the order that outputs show",
        ),
    ),
)
"""The systems that the table compares."""


@dataclass(frozen=True)
class TableRow:
    """The result for one system with one recovery and one failure."""

    system: str
    recovery: str
    is_deterministic: bool
    """Definition 10."""
    is_order_sensitive: bool
    """Definition 9."""
    is_restricted: bool
    """Does F restore only what is in A ∪ B?"""
    guarantee: str
    """The strongest that hold, or ``"none"``."""
    snapshots: tuple[str, ...]
    """The kinds of snapshots that an output waits for."""
    run: str
    """A run that refutes exactly-once; empty if it holds."""

    @property
    def waits_for(self) -> str:
        """What an output waits for, as a phrase."""
        if self.snapshots:
            return " or ".join(f"the {kind} that holds its state" for kind in self.snapshots)
        return "its turn" if self.is_deterministic else "nothing"


def rows(variants: Sequence[Variants] = VARIANTS) -> Iterator[TableRow]:
    """Each system with each of its recoveries, checked."""
    for variant in variants:
        for recovery in variant.recoveries:
            yield _row(variant.make(recovery), variant.inputs)


def _row(system: System, text: str) -> TableRow:
    inputs = letters(text)
    found = classify(system, inputs)
    witness = found.verdicts["exactly-once"].by_run.witness
    return TableRow(
        system.name,
        system.recovery,
        deterministic(system, inputs).holds,
        order_sensitive(system, inputs) is not None,
        recovers_from_storage(system, inputs).holds,
        str(found),
        waits_for(system, inputs),
        "; ".join(map(str, witness.actions)) if witness else "",
    )


def as_markdown(found: Sequence[TableRow]) -> str:
    """The table as it appears in the documentation."""
    head = "| system | recovery | order matters | deterministic | guarantee | an output waits for |"
    lines = [head, "|---|---|---|---|---|---|"]
    for row in found:
        recovery = row.recovery if row.is_restricted else f"{row.recovery} ¹"
        answers = (_yes(row.is_order_sensitive), _yes(row.is_deterministic))
        cells = (row.system, recovery, *answers, row.guarantee, row.waits_for)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def runs_as_markdown(found: Sequence[TableRow]) -> str:
    """For each recovery that is not exactly-once, the run that refutes it, as a list."""
    return "\n".join(f"- {row.system}, {row.recovery}: {row.run}." for row in found if row.run)
