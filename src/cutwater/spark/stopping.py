"""Stop a run between two epochs.

Stopping the query would cut off the running epoch. So the run first makes a request, as a file in
its checkpoint: from then on no source plans anything new, and each acknowledges the request. Spark
plans an epoch only when the one before is finished, and asks all sources for it; once all of them
have acknowledged, nothing runs and nothing will.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["StopRequest"]


class StopRequest:
    """The request, stored in a checkpoint, that a run should stop."""

    def __init__(self, checkpoint: str | Path) -> None:
        self._folder = Path(checkpoint) / "stop"
        self._withdrawn = Path(checkpoint) / "stop-withdrawn"
        self._seen = self._folder / "seen"

    def make(self) -> None:
        """Request a stop."""
        self._seen.mkdir(parents=True, exist_ok=True)

    def withdraw(self) -> None:
        """Withdraw any request that was made to an earlier run.

        A rename removes it in one step: a source of that run that is still alive cannot add to it.
        """
        shutil.rmtree(self._withdrawn, ignore_errors=True)
        with suppress(OSError):
            self._folder.rename(self._withdrawn)
        shutil.rmtree(self._withdrawn, ignore_errors=True)

    def is_made(self) -> bool:
        """Must sources plan nothing new?"""
        return self._seen.exists()

    def see(self, source: str) -> None:
        """Record that a source plans nothing from now on; no effect on a withdrawn request."""
        with suppress(FileNotFoundError):
            (self._seen / source).touch()

    def is_seen_by(self, sources: Iterable[str]) -> bool:
        """Have all of these sources stopped planning?"""
        return all((self._seen / source).exists() for source in sources)
