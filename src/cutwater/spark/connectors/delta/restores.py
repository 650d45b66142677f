"""Finds what a RESTORE of a table undid: it does not roll back application transactions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

__all__ = ["KeptEpochs", "kept_epochs"]

_LOOKS = (1, 8, 128, None)
"""How many of the newest versions to search, step by step; mostly the first one suffices."""


@dataclass(frozen=True)
class KeptEpochs:
    """The epochs of a checkpoint that a table still has."""

    epoch: int
    """The newest of them; -1: none."""
    lost_rows: int = 0
    """Rows of epochs that were undone."""


def kept_epochs(table: DeltaTable, query_id: str, committed: int) -> KeptEpochs:
    """What a table still has of a checkpoint whose newest committed epoch is `committed`."""
    if committed < 0:
        return KeptEpochs(committed)
    for limit in _LOOKS:
        history = table.history(limit)
        found = _by_newest_kept(history, query_id)
        if found is not None:
            return found
        if limit is None or len(history) < limit:
            return _after_the_log(history, query_id, committed)
    raise AssertionError("the last search covers the whole log")


def _by_newest_kept(history: Sequence[Mapping[str, Any]], query_id: str) -> KeptEpochs | None:
    """By the newest version with an epoch that was not undone; None if there is none."""
    lost, undone_above = 0, None
    for commit in history:
        info = _commit_info(commit, query_id)
        if undone_above is not None and commit["version"] > undone_above:
            lost += info.get("rows", 0)
        elif "epoch" in info:
            return KeptEpochs(info["epoch"], lost)
        elif commit.get("operation") == "RESTORE":
            undone_above = _target(commit, history)
    return None


def _after_the_log(
    history: Sequence[Mapping[str, Any]], query_id: str, committed: int
) -> KeptEpochs:
    """If the log no longer has the restored version: all epochs in the log were undone."""
    undone = [info for commit in history if "epoch" in (info := _commit_info(commit, query_id))]
    oldest = min((info["epoch"] for info in undone), default=committed + 1)
    return KeptEpochs(oldest - 1, sum(info.get("rows", 0) for info in undone))


def _commit_info(commit: Mapping[str, Any], query_id: str) -> dict[str, int]:
    """The epoch and rows that a version records of a checkpoint; ignores damaged entries."""
    info = commit.get("cutwater")
    if not isinstance(info, Mapping) or info.get("query_id") != query_id:
        return {}
    return {name: info[name] for name in ("epoch", "rows") if isinstance(info.get(name), int)}


def _target(commit: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> int:
    """The version that a RESTORE returned to; -1 if the log does not say."""
    asked = commit.get("operationParameters") or {}
    if asked.get("version") not in (None, "null"):
        return int(asked["version"])
    until = _milliseconds(asked.get("datetime") or asked.get("timestamp"))
    before = [other for other in history if other["version"] < commit["version"]]
    return max((each["version"] for each in before if each["timestamp"] <= until), default=-1)


def _milliseconds(text: Any) -> float:
    """A time in milliseconds, from a number or ISO 8601; minus infinity if it cannot be parsed."""
    try:
        return int(text)
    except (TypeError, ValueError):
        pass
    try:
        return dt.datetime.fromisoformat(str(text)).timestamp() * 1000
    except ValueError:
        return float("-inf")
