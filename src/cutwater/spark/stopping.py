"""Stopping a run between two epochs.

Stopping the query cuts the epoch that is running. So the run asks first, by a file in its
checkpoint: from then on no source plans anything new, and each says that it has seen the request.
Spark plans an epoch only when the one before is finished, and asks all sources for it; once all
have seen the request, nothing runs and nothing will.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["StopRequest"]


class StopRequest:
    """The request in a checkpoint that a run should stop."""

    def __init__(self, checkpoint: str | Path) -> None:
        self._folder = Path(checkpoint) / "stop"
        self._withdrawn = Path(checkpoint) / "stop-withdrawn"
        self._seen = self._folder / "seen"

    def make(self) -> None:
        """Ask."""
        self._seen.mkdir(parents=True, exist_ok=True)

    def withdraw(self) -> None:
        """Whatever was asked of an earlier run is no more.

        It goes in one step: a source of that run that still lives can add nothing to it then.
        """
        shutil.rmtree(self._withdrawn, ignore_errors=True)
        with suppress(OSError):
            self._folder.rename(self._withdrawn)
        shutil.rmtree(self._withdrawn, ignore_errors=True)

    def is_made(self) -> bool:
        """Is a source to plan nothing new?"""
        return self._seen.exists()

    def see(self, source: str) -> None:
        """A source plans nothing from now on; of a request that is withdrawn nothing is left."""
        with suppress(FileNotFoundError):
            (self._seen / source).touch()

    def is_seen_by(self, sources: Iterable[str]) -> bool:
        """Do none of them plan anything any more?"""
        return all((self._seen / source).exists() for source in sources)
