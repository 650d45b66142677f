"""Finds what a power loss tore of a table's log, and what is damaged in another way.

deltalake syncs nothing: a version becomes visible first, and we sync it after that. So a machine
that dies may leave the newest versions empty, cut or zeroed, without a name, or whole after one
that is torn. The same holds for the newest checkpoint of the log. These files may be set aside,
since nothing relies on them yet:

- a run begins the next epoch only when the version of this one is synced; else Spark replays it
- the log before a checkpoint is deleted only when that checkpoint is synced

All else that cannot be read is damage: garbage, a missing version, a torn one after which an epoch
was published.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cutwater.spark.storage.durable import parse_json

__all__ = [
    "LAST_CHECKPOINT",
    "Compaction",
    "DamagedLog",
    "is_parquet",
    "newest_compaction",
    "torn_files",
]

LAST_CHECKPOINT = "_last_checkpoint"
_VERSION = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(\.\d+\.\d+)?\.parquet")

_Actions = list[dict[str, Any]]


class DamagedLog(Exception):
    """A log cannot be read, and no power loss explains it."""


class _Torn(Exception):
    """A version looks as a power loss leaves it."""


@dataclass(frozen=True)
class Compaction:
    """A version that replaced small files by larger ones."""

    version: int
    names: list[str]
    """The files that it added."""


def torn_files(log: Path) -> list[str]:
    """The files of a log to set aside after a power loss; mostly none.

    Raises `DamagedLog` if the log is damaged beyond that.
    """
    versions, checkpoints = _versions(log), _checkpoints(log)
    base = _base(log, versions, checkpoints)
    first = _first_torn(log, versions, base)
    if first and not _is_ours(log, versions, first, checkpoints.get(base, [])):
        raise DamagedLog(
            f"version {first} is torn or missing, and the table has other writers only"
        )
    late = [name for at, name in versions.items() if first is not None and at >= first]
    unusable = [
        name
        for at, names in checkpoints.items()
        for name in names
        if at > base or (first is not None and at >= first)
    ]
    return [*late, *unusable, *_stale_hint(log, base)]


def newest_compaction(log: Path) -> Compaction | None:
    """Our compaction if it is the newest version and has no checkpoint, so nothing followed it."""
    versions = _versions(log)
    newest = max(versions, default=-1)
    if newest < 0 or max(_checkpoints(log), default=-1) >= newest:
        return None
    actions = _actions(log / versions[newest])
    if "compacted" not in _ours(_about(actions)):
        return None
    added = (action.get("add") for action in actions)
    names = [add["path"] for add in added if isinstance(add, dict) and "path" in add]
    return Compaction(newest, [str(name) for name in names])


def _stale_hint(log: Path, base: int) -> list[str]:
    """The file that names the newest checkpoint, if it names another than the one to rely on."""
    try:
        named = parse_json((log / LAST_CHECKPOINT).read_bytes())
    except FileNotFoundError:
        return []
    except ValueError:
        return [LAST_CHECKPOINT]
    is_right = isinstance(named, dict) and named.get("version") == base
    return [] if is_right else [LAST_CHECKPOINT]


def _versions(log: Path) -> dict[int, str]:
    """The file of each version, by number."""
    found = (_VERSION.fullmatch(path.name) for path in log.glob("*.json"))
    return {int(match[1]): match[0] for match in found if match}


def _checkpoints(log: Path) -> dict[int, list[str]]:
    checkpoints: dict[int, list[str]] = {}
    for path in log.glob("*.parquet"):
        if match := _CHECKPOINT.fullmatch(path.name):
            checkpoints.setdefault(int(match[1]), []).append(path.name)
    return checkpoints


def _base(log: Path, versions: Mapping[int, str], checkpoints: Mapping[int, list[str]]) -> int:
    """The newest checkpoint that can be relied on; -1: the log is read from its beginning."""
    for version in sorted(checkpoints, reverse=True):
        name = versions.get(version)
        is_named = name is None or _is_whole(log / name)
        if is_named and all(is_parquet(log / part) for part in checkpoints[version]):
            return version
    if versions and min(versions) > 0:
        what = "its checkpoint is damaged" if checkpoints else "versions before it are missing"
        raise DamagedLog(f"the log begins with version {min(versions)}, and {what}")
    return -1


def _first_torn(log: Path, versions: Mapping[int, str], base: int) -> int | None:
    """The first version that is torn or missing; raises if something relies on it."""
    newest = max(versions, default=-1)
    for version in range(base + 1, newest + 1):
        if version not in versions or not _is_whole(log / versions[version]):
            behind = range(version + 1, newest + 1)
            _refuse_published(log, version, [versions[at] for at in behind if at in versions])
            return version
    return None


def _is_ours(log: Path, versions: Mapping[int, str], first: int, base: list[str]) -> bool:
    """Has a run of ours made or claimed the table, by what is before its first torn version?"""
    before = [log / name for at, name in versions.items() if at < first]
    for path in before:
        if _is_whole(path) and any("cutwater" in str(action) for action in _actions(path)):
            return True
    tables = (pq.read_table(log / name, columns=["metaData"]) for name in base)
    return any("cutwater.ledger" in str(table.to_pylist()) for table in tables)


def _refuse_published(log: Path, version: int, behind: list[str]) -> None:
    for name in behind:
        if _is_whole(log / name) and not _is_redone(_actions(log / name)):
            raise DamagedLog(f"version {version} is torn or missing, and {name} relies on it")


def _is_redone(actions: _Actions) -> bool:
    """Would a start repeat what the version did: a claim, or maintenance? It has no rows."""
    about = _about(actions)
    return (
        str(about.get("operation", "")).startswith("VACUUM")
        or "compacted" in _ours(about)
        or (about.get("operation") == "SET TBLPROPERTIES" and "cutwater.ledger" in str(about))
    )


def _is_whole(path: Path) -> bool:
    try:
        _actions(path)
    except _Torn:
        return False
    return True


def _actions(path: Path) -> _Actions:
    """The actions of a version; raises if it is torn or damaged."""
    data = path.read_bytes()
    if not data.strip() or b"\0" in data:
        raise _Torn
    actions = list(_parsed(path.name, data.splitlines()))
    if _are_missing(actions):
        raise _Torn
    return actions


def _parsed(name: str, lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            action = parse_json(line)
        except ValueError as error:
            if number == len(lines) and line.startswith(b"{"):
                raise _Torn from None
            raise DamagedLog(f"line {number} of {name} is not JSON: {error}") from None
        if not isinstance(action, dict):
            raise DamagedLog(f"line {number} of {name} is not an action: {json.dumps(action):.60}")
        yield action


def _are_missing(actions: _Actions) -> bool:
    """Was a version cut between two lines? Ours say how many files they add."""
    about = _about(actions)
    if len(actions) == 1 and about:
        return not str(about.get("operation", "")).startswith("VACUUM")
    files = _ours(about).get("files")
    kinds = [next(iter(action), "") for action in actions]
    return isinstance(files, int) and (kinds.count("add"), kinds.count("txn")) != (files, 2)


def _about(actions: _Actions) -> dict[str, Any]:
    found: Any = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    return found if isinstance(found, dict) else {}


def _ours(about: Mapping[str, Any]) -> dict[str, Any]:
    found = about.get("cutwater")
    return found if isinstance(found, dict) else {}


def is_parquet(path: Path) -> bool:
    """Is it a Parquet file that can be read to its end?"""
    what = path.stat() if path.exists() else None
    return what is not None and _is_read(path, what.st_ino, what.st_size, what.st_mtime_ns)


@lru_cache(maxsize=64)
def _is_read(path: Path, *_state: int) -> bool:
    """Read a file once for each state of it."""
    try:
        pq.read_table(path)
    except (pa.ArrowException, OSError):
        return False
    return True
