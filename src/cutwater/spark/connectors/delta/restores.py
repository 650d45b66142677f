"""What a RESTORE of a table undid: its application transactions do not go back with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

__all__ = ["Standing", "standing_of"]

_LOOKS = (1, 8, 128, None)
"""So many of the newest versions are looked at; mostly the epoch is among the first."""


@dataclass(frozen=True)
class Standing:
    """What of the epochs of a checkpoint a table still has."""

    epoch: int
    """The newest one; -1: none."""
    lost_rows: int = 0
    """Rows of epochs that were undone."""


def standing_of(table: DeltaTable, query_id: str, committed: int) -> Standing:
    """What a table has of a checkpoint that committed epochs up to one, as far as its log goes."""
    if committed < 0:
        return Standing(committed)
    for limit in _LOOKS:
        history = table.history(limit)
        found = _standing(history, query_id)
        if found is not None:
            return found
        if limit is None or len(history) < limit:
            return _after_the_log(history, query_id, committed)
    raise AssertionError("the last look is at all there is")


def _standing(history: Sequence[Mapping[str, Any]], query_id: str) -> Standing | None:
    """By the newest version that was not undone and tells of an epoch; None if there is none."""
    lost, undone_above = 0, None
    for commit in history:
        said = _said(commit, query_id)
        if undone_above is not None and commit["version"] > undone_above:
            lost += said.get("rows", 0)
        elif "epoch" in said:
            return Standing(said["epoch"], lost)
        elif commit.get("operation") == "RESTORE":
            undone_above = _target(commit, history)
    return None


def _after_the_log(history: Sequence[Mapping[str, Any]], query_id: str, committed: int) -> Standing:
    """Where the log no longer has what was gone back to: all epochs that it has were undone."""
    undone = [said for commit in history if "epoch" in (said := _said(commit, query_id))]
    oldest = min((said["epoch"] for said in undone), default=committed + 1)
    return Standing(oldest - 1, sum(said.get("rows", 0) for said in undone))


def _said(commit: Mapping[str, Any], query_id: str) -> dict[str, int]:
    """What a version tells of a checkpoint; what is damaged tells nothing."""
    said = commit.get("cutwater")
    if not isinstance(said, Mapping) or said.get("query_id") != query_id:
        return {}
    return {name: said[name] for name in ("epoch", "rows") if isinstance(said.get(name), int)}


def _target(commit: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> int:
    """The version that a RESTORE went back to; -1 if the log does not say."""
    asked = commit.get("operationParameters") or {}
    if asked.get("version") not in (None, "null"):
        return int(asked["version"])
    until = _milliseconds(asked.get("datetime") or asked.get("timestamp"))
    before = [other for other in history if other["version"] < commit["version"]]
    return max((each["version"] for each in before if each["timestamp"] <= until), default=-1)


def _milliseconds(text: Any) -> float:
    """A time as milliseconds, or as people write it; one that is not understood is before all."""
    try:
        return int(text)
    except (TypeError, ValueError):
        pass
    try:
        return dt.datetime.fromisoformat(str(text)).timestamp() * 1000
    except ValueError:
        return float("-inf")
