"""Why a sink must not be written to: the problems that all sinks report alike.

`noun` is what the sink is bound to: a folder, a table.
"""

from __future__ import annotations

from pathlib import Path

from cutwater.errors import Problem, ResourceError

__all__ = [
    "ANOTHER_CHECKPOINT",
    "OUTPUT_AHEAD",
    "TAKE_OVER",
    "ahead",
    "damaged_staging",
    "other_checkpoint",
    "other_format",
    "other_sink",
    "unwritable",
]

ANOTHER_CHECKPOINT = "another-checkpoint"
OUTPUT_AHEAD = "output-ahead"
TAKE_OVER = "take it over: --adopt keeps what is there, --fresh deletes it"


def unwritable(sink: str, root: Path, why: str) -> Problem:
    """A path that this user may not write to."""
    return Problem(
        "unwritable-output",
        f"sink '{sink}' cannot write to {root}: {why}",
        "choose a folder that you may write to",
    )


def other_format(
    sink: str, ledger: str, found: object, known: int, noun: str = "folder"
) -> Problem:
    """A ledger written in another format, by another version."""
    return Problem(
        "ledger-format",
        f"sink '{sink}': {ledger} has format {found}; this version writes format {known}",
        f"use the version that wrote it, or another {noun}",
    )


def damaged_staging(sink: str, path: object, error: Exception) -> ResourceError:
    """Staged rows that were damaged after a task wrote them; a start stages them again."""
    return ResourceError(
        Problem(
            "damaged-staging",
            f"sink '{sink}': the staged rows in {path} are damaged: {error}",
            "check the disk and run again: the epoch is staged again",
        )
    )


def other_checkpoint(sink: str, location: str, shows: str, noun: str = "folder") -> Problem:
    """An output that belongs to another checkpoint, so its epochs mean something else."""
    return Problem(
        ANOTHER_CHECKPOINT,
        f"sink '{sink}' goes to {location}, which belongs to another checkpoint and {shows}; this "
        "checkpoint counts epochs from the start, so its rows would be dropped or duplicated",
        f"run with the checkpoint that wrote it; or, if that was deleted, choose an empty {noun}, "
        f"or {TAKE_OVER}",
    )


def other_sink(sink: str, location: str, owner: str, noun: str = "folder") -> Problem:
    """An output that belongs to another sink of the same flow."""
    return Problem(
        "another-sink",
        f"sink '{sink}' goes to {location}, which belongs to sink '{owner}' of the same checkpoint",
        f"bind '{sink}' to the {noun} it had before, or to an empty one",
    )


def ahead(sink: str, location: str, newest: int, next_epoch: int) -> Problem:
    """An output with epochs that its checkpoint has not planned yet."""
    return Problem(
        OUTPUT_AHEAD,
        f"sink '{sink}': {location} has epoch {newest}, but the checkpoint knows only the epochs "
        f"before {next_epoch}; the checkpoint is older than its output",
        "restore the newest checkpoint, or move the output away and start with a new checkpoint",
    )
