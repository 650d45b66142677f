"""Aligns ticks: which have arrived completely from all senders (rule 8).

A sender's row for a tick holds everything that it has for the receiver in that tick, and promises
that nothing more comes from it up to there. Ticks between two rows of a sender are empty.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["Alignment"]


class Alignment:
    """The rows of each sender, and up to which tick they are complete."""

    def __init__(self, senders: int, before: int) -> None:
        """Begin after the tick `before`."""
        self._through = [before] * senders
        self._waiting: dict[int, list[bytes]] = {}

    @property
    def frontier(self) -> int:
        """Everything up to this tick has arrived."""
        return min(self._through)

    def receive(self, sender: int, tick: int, body: bytes) -> bool:
        """Accept a row; False for a duplicate, which a replay sends again and which is dropped."""
        if tick <= self._through[sender]:
            return False
        self._through[sender] = tick
        if body:
            self._waiting.setdefault(tick, []).append(body)
        return True

    def aligned(self) -> Iterator[tuple[int, list[bytes]]]:
        """The non-empty ticks that have arrived completely, in order; each once."""
        for tick in sorted(self._waiting):
            if tick > self.frontier:
                return
            yield tick, self._waiting.pop(tick)
