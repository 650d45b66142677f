"""How a source derives its watermarks, and the policy for late events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cutwater.times import just_before

__all__ = ["BoundedDelay", "LatePolicy", "bounded_delay"]

LatePolicy = Literal["keep", "drop", "fail"]


@dataclass(frozen=True, slots=True)
class BoundedDelay:
    """Events arrive at most `delay` behind the newest."""

    delay: Any

    def watermark(self, newest: Any) -> Any:
        """The watermark when this is the newest time.

        >>> BoundedDelay(5).watermark(10)
        4
        """
        return just_before(newest - self.delay)


def bounded_delay(delay: Any) -> BoundedDelay:
    """Treat an event up to `delay` behind the newest as on time, and any other as late.

    `delay` is in the unit of the times: a number for numbers, a timedelta for datetimes.
    """
    return BoundedDelay(delay)
