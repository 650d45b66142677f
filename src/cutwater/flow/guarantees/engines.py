"""The engines that run a flow on Spark, as pictures, guarantees and runs name them.

The option ``mode`` of a run selects one; this says which one it was, and what follows from that.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ENGINES", "EngineWords"]


class EngineWords(NamedTuple):
    """What people read of an engine."""

    name: str
    release: str
    """When rows become visible."""


ENGINES = {
    "microbatch": EngineWords(
        "micro-batch", "rows are released with their epoch, or before its end if a sink says so"
    ),
    "realtime": EngineWords(
        "real-time", "rows are released with their tick, about every 10 ms, before a snapshot"
    ),
}
"""By the value of ``mode``."""
