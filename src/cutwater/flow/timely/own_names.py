"""Prefixes of the names that a run gives to sinks and logs of its own, which no step may have.

A run adds sinks for the bad records and late events of each source, and logs for a loop that is cut
at its back edge. They share folders, ledgers and bindings with what the flow declares.
"""

from __future__ import annotations

__all__ = ["BAD_RECORDS", "FED_BACK", "LATE_EVENTS", "LEFT", "OWN_PREFIXES", "own_prefix"]

BAD_RECORDS = "bad records: "
LATE_EVENTS = "late events: "
FED_BACK = "fed back: "
LEFT = "left: "

OWN_PREFIXES = (BAD_RECORDS, LATE_EVENTS, FED_BACK, LEFT)


def own_prefix(name: str) -> str | None:
    """The prefix of a name that only a run gives; None if a user's step may have the name.

    >>> own_prefix("late events: clicks"), own_prefix("late events")
    ('late events: ', None)
    """
    return next((prefix for prefix in OWN_PREFIXES if name.startswith(prefix)), None)
