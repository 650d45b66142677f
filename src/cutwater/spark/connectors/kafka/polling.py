"""Taking messages from a consumer."""

from __future__ import annotations

from typing import Any

__all__ = ["polled"]


def polled(consumer: Any, timeout_s: float, count: int = 10_000) -> list[Any]:
    """The messages that are there; waits for the first, if there is none.

    `Consumer.consume` alone would wait for as many as it is asked for.
    """
    first = consumer.poll(timeout_s)
    return [] if first is None else [first, *consumer.consume(count, 0)]
