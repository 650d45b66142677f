"""Fences planners: one that plans epochs for a run that was overtaken must stop."""

from __future__ import annotations

from pathlib import Path

from cutwater.errors import FencedError
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.job.spec import Job

__all__ = ["refuse_overtaken"]


def refuse_overtaken(job: Job) -> None:
    """A fenced planner must not append to the log of a source, nor plan a round."""
    newest = Checkpoint(Path(job.checkpoint)).generation()
    if newest > job.generation:
        raise FencedError.because(
            f"generation {newest} has taken the checkpoint {job.checkpoint} over from "
            f"generation {job.generation}"
        )
