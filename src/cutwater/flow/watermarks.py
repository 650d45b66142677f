"""Where a source's watermarks come from, and what becomes of events behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cutwater.times import just_before

__all__ = ["BoundedDelay", "LatePolicy", "bounded_delay"]

LatePolicy = Literal["keep", "drop", "fail"]


@dataclass(frozen=True, slots=True)
class BoundedDelay:
    """Events come at most `delay` behind the newest."""

    delay: Any

    def watermark(self, newest: Any) -> Any:
        """What is complete when this is the newest time.

        >>> BoundedDelay(5).watermark(10)
        4
        """
        return just_before(newest - self.delay)


def bounded_delay(delay: Any) -> BoundedDelay:
    """An event up to `delay` behind the newest is on time; later ones are late.

    The unit is that of the times: a number for numbers, a timedelta for datetimes.
    """
    return BoundedDelay(delay)
