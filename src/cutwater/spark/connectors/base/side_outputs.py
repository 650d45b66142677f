"""Sinks that no flow declares: bad records and late events of each source, logs of loops."""

from __future__ import annotations

__all__ = ["bad_records_sink", "is_side_output", "late_events_sink", "side_output_folder"]

_BAD = "bad records: "
_LATE = "late events: "
_LOGS = ("fed back: ", "left: ")


def bad_records_sink(source: str) -> str:
    """The name of the sink that keeps the bad records of a source."""
    return f"{_BAD}{source}"


def late_events_sink(source: str) -> str:
    """The name of the sink that keeps the late events of a source."""
    return f"{_LATE}{source}"


def is_side_output(sink: str) -> bool:
    """Does the name denote a sink that no flow declares?"""
    return sink.startswith((_BAD, _LATE, *_LOGS))


def side_output_folder(sink: str) -> str:
    """The folder of a side output, relative to its checkpoint."""
    kind, _, source = sink.partition(": ")
    return f"{kind.replace(' ', '-')}/{source}"
