"""The sinks of what does not go through a flow: bad records and late events of each source."""

from __future__ import annotations

__all__ = ["bad_records_sink", "late_events_sink"]


def bad_records_sink(source: str) -> str:
    """The name of the sink that keeps the bad records of a source."""
    return f"bad records: {source}"


def late_events_sink(source: str) -> str:
    """The name of the sink that keeps the late events of a source."""
    return f"late events: {source}"
