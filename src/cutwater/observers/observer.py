"""The interface of every observer."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Observer"]


class Observer(Protocol):
    """Reads what a sink shows; knows nothing of the flow, of its checkpoint or of Spark."""

    def rows(self) -> list[dict[str, Any]]:
        """All rows that a reader sees now, in the order in which it sees them."""
