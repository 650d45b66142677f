"""Fences a run that was overtaken: it plans nothing more, claims nothing more, and says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cutwater.errors import FencedError, RefusedError
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.job.spec import Job

__all__ = ["fenced_if_overtaken", "refuse_overtaken"]


def refuse_overtaken(job: Job) -> None:
    """A fenced run must not append to the log of a source, plan a round, or claim again."""
    newest = Checkpoint(Path(job.checkpoint)).generation()
    if newest > job.generation:
        raise FencedError.because(
            f"generation {newest} has taken the checkpoint {job.checkpoint} over from "
            f"generation {job.generation}"
        )


@contextmanager
def fenced_if_overtaken(job: Callable[[], Job]) -> Iterator[None]:
    """Around a query: whatever ends a run that was overtaken, it is fenced.

    Its successor moves and removes files that it still uses, so that it may fail in any way, also
    in one that tells the user to change something.
    """
    try:
        yield
    except Exception:
        with suppress(RefusedError, OSError):  # an identity that cannot be read explains nothing
            refuse_overtaken(job())
        raise
