"""The length of a tick: short while sinks keep up, longer under load, so that there are fewer.

A tick has a fixed cost: a durable line of the plan, and a transaction per partition of a sink.
Under load a longer tick has more records for the same cost.
"""

from __future__ import annotations

import math

from cutwater.spark.realtime.protocol import AHEAD, LONGEST_TICK_S, TICK_S

__all__ = ["Pace"]

_GROWTH = 1.5
"""The factor by which a tick becomes longer under load, and shorter after it."""
_POLL_S = 0.002
"""How often a reader polls for input, if polling is cheap and there was input recently."""
_CHEAP_S = 0.0005
"""A poll that takes less is cheap: every 2 ms it takes at most a quarter of a core."""
_LIVELY_S = 1.0
"""Input within this many seconds counts as recent."""


class Pace:
    """When a reader may cut a tick, and how long it waits between polls."""

    def __init__(self) -> None:
        self.tick_s = TICK_S
        self._last_cut = -math.inf

    def is_due(self, now: float, *, has_number: bool) -> bool:
        """May a tick be cut? One of the shortest length may if the clock has a number for it."""
        since = now - self._last_cut
        is_over = since >= self.tick_s or since < 0  # the clock may be set back
        return is_over or (has_number and self.tick_s == TICK_S)

    def note_cut(self, now: float, in_flight: int) -> None:
        """Adapt the tick length, given how many ticks were in flight when one was cut."""
        self._last_cut = now
        if in_flight >= AHEAD - 1:
            self.tick_s = min(LONGEST_TICK_S, self.tick_s * _GROWTH)
        elif in_flight <= AHEAD // 2:
            self.tick_s = max(TICK_S, self.tick_s / _GROWTH)

    def wait_s(self, now: float, took_s: float) -> float:
        """How long to wait after a poll that took `took_s`."""
        is_lively = now - self._last_cut < _LIVELY_S
        every = _POLL_S if is_lively and took_s < _CHEAP_S else TICK_S
        return max(0.0, every - took_s)
