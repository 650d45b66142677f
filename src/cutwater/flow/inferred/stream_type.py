"""The type of a stream: what type inference knows of its values, times and key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["StreamType"]


@dataclass(frozen=True, slots=True)
class StreamType:
    """What a stream carries; `Any` where unknown."""

    value: Any = Any
    time: Any = Any
    key: tuple[tuple[str, Any], ...] | None = None
    """The name and type of each part of the key; None: not keyed."""
    is_numbered: bool = False
    """Do any of its times come from numbering values?"""

    @property
    def declared_time(self) -> Any:
        """The annotated type of its times; `Any` if numbered, as events may carry other times."""
        return Any if self.is_numbered else self.time

    @property
    def key_type(self) -> Any:
        """The type of a key: that of its one part, or a tuple of several; None: not keyed."""
        parts = [tp for _, tp in self.key or ()]
        if len(parts) == 1:
            return parts[0]
        return tuple[tuple(parts)] if parts else None  # type: ignore[misc]
