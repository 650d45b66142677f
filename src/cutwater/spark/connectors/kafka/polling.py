"""Polls messages from a consumer."""

from __future__ import annotations

from typing import Any

__all__ = ["polled"]


def polled(consumer: Any, timeout_s: float, count: int = 10_000) -> list[Any]:
    """The messages that are available; waits up to the timeout for the first, then for no more.

    `Consumer.consume` alone would wait until it has `count` messages.
    """
    first = consumer.poll(timeout_s)
    return [] if first is None else [first, *consumer.consume(count, 0)]
