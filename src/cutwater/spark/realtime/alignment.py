"""Which ticks have come whole from all senders (rule 8).

A sender's row for a tick holds all that it has for the receiver in that tick, and says that
nothing more comes from it up to there. Ticks between two rows of a sender are empty.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["Alignment"]


class Alignment:
    """What has come from each sender, and up to which tick it is whole."""

    def __init__(self, senders: int, before: int) -> None:
        """Begin behind the tick `before`."""
        self._through = [before] * senders
        self._waiting: dict[int, list[bytes]] = {}

    @property
    def frontier(self) -> int:
        """All has come up to this tick."""
        return min(self._through)

    def receive(self, sender: int, tick: int, body: bytes) -> bool:
        """Take a row; one that came before, which a replay sends again, is left out: False."""
        if tick <= self._through[sender]:
            return False
        self._through[sender] = tick
        if body:
            self._waiting.setdefault(tick, []).append(body)
        return True

    def aligned(self) -> Iterator[tuple[int, list[bytes]]]:
        """The ticks with something in them that have come whole, in order; each once."""
        for tick in sorted(self._waiting):
            if tick > self.frontier:
                return
            yield tick, self._waiting.pop(tick)
