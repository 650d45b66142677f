"""Which times may be in which round of a loop that feeds back through a log.

The log of a source says what was complete and what was newest when an input epoch was read. So its
times lie between what was complete before it and the newest; no event of the loop is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cutwater.spark.checkpoint.loop_progress import LoopProgress

__all__ = ["IteratingInput", "iterating_inputs"]


@dataclass(frozen=True)
class IteratingInput:
    """An input epoch in a loop that feeds back through a log, and the times that it may have."""

    number: int
    """The epoch that read it."""
    round: int
    """Its newest round."""
    after: Any
    """What was complete before it: its times are later, but for late events; None: nothing, or it
    is not known."""
    newest: Any
    """The newest time when it was read: it has none later; None: not known."""

    def may_have(self, time: Any) -> bool:
        """May something of this time that was not late still iterate in it?"""
        return not self.was_complete(time) and (self.newest is None or time <= self.newest)

    def was_complete(self, time: Any) -> bool:
        """Would an event of this time have been late in it?"""
        return self.after is not None and bool(time <= self.after)


def iterating_inputs(
    loop: LoopProgress, entered: Callable[[Mapping[str, int]], tuple[Any, Any]]
) -> Iterator[IteratingInput]:
    """The input epochs in a loop, oldest first.

    `entered` returns what is complete where the loop begins, and the newest time there, when each
    source was read up to the given entry of its log.
    """
    after, _ = entered(loop.released)
    for each in loop.input_epochs:
        completed, newest = entered(each.entries)
        yield IteratingInput(each.number, each.round, after, newest)
        after = completed
