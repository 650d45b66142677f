"""Sinks that no flow declares: bad records and late events of each source, logs of loops."""

from __future__ import annotations

from cutwater.flow.timely.own_names import BAD_RECORDS, LATE_EVENTS, own_prefix

__all__ = ["bad_records_sink", "is_side_output", "late_events_sink", "side_output_folder"]


def bad_records_sink(source: str) -> str:
    """The name of the sink that keeps the bad records of a source."""
    return f"{BAD_RECORDS}{source}"


def late_events_sink(source: str) -> str:
    """The name of the sink that keeps the late events of a source."""
    return f"{LATE_EVENTS}{source}"


def is_side_output(sink: str) -> bool:
    """Does the name denote a sink that no flow declares?"""
    return own_prefix(sink) is not None


def side_output_folder(sink: str) -> str:
    """The folder of a side output, relative to its checkpoint."""
    kind, _, source = sink.partition(": ")
    return f"{kind.replace(' ', '-')}/{source}"
