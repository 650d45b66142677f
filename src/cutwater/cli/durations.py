"""Durations as people say them."""

from __future__ import annotations

__all__ = ["duration"]

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """A duration in its two largest units.

    >>> duration(0.25), duration(59.4), duration(2400), duration(3 * 86400 + 7250)
    ('0.2 s', '59 s', '40 min', '3 d 2 h')
    """
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    rest, words = round(seconds), []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        words += [f"{count} {unit}"] if count else []
    return " ".join(words[:2])
