"""Durations as people write them."""

from __future__ import annotations

__all__ = ["duration"]


def duration(seconds: float) -> str:
    """A duration in the unit that people would choose.

    >>> [duration(s) for s in (1.26, 59.96, 600, 5_400, 86_400 * 400)]
    ['1.3 s', '60 s', '10 min', '90 min', '400 days']
    """
    for unit, size, most in (("s", 1, 120), ("min", 60, 7_200), ("h", 3600, 172_800)):
        if abs(seconds) < most:
            return f"{_rounded(seconds / size)} {unit}"
    return f"{_rounded(seconds / 86_400)} days"


def _rounded(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")
