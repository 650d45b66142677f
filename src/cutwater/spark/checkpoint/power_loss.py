"""Power loss: Spark syncs none of its checkpoint files, so we sync what an epoch rests on.

The outputs and our own logs are synced when they are written. Spark's offsets, commits and state
are not: after a machine dies, an output could be ahead of its checkpoint. So:

before an epoch runs
    Its offsets are written, no task has started. `SparkFiles.sync` syncs these offsets, the commit
    and the state of the epoch before, and then writes ``synced.json``: *epoch N can be run again*.
    An output never shows an epoch that is not in there. Every start syncs what it finds.
when a run starts on a machine that was booted meanwhile
    `SparkFiles.discard_unsynced` removes what was written after the last sync, whether it is
    whole, torn or empty: offsets after N, commits from N on, state snapshots that are not listed.
    Spark then runs epoch N again, and the ledgers of the sinks drop what they have.

A process that is killed loses nothing that the kernel has, so the same boot keeps everything.
DataFrames are planned by Spark alone: a flow that reads one is not protected. Neither is a run
with ``fsync=False``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.checksums import are_sums, why_altered
from cutwater.spark.storage.durable import read_json, sync_folder, sync_path, write_json

__all__ = ["SparkFiles", "boot_id"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SYNCS_AT_ONCE = 8
"""Syncs that are asked for together share the file system's journal commits."""


def boot_id() -> str:
    """Which boot of the machine this is; nothing if the system does not tell.

    Then every start counts as one after a power loss: it runs one epoch again, which is harmless.
    """
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class SparkFiles:
    """Spark's part of a checkpoint, as far as it must survive a power loss."""

    def __init__(self, checkpoint: Path) -> None:
        self._root = checkpoint / "spark"
        self._marker = checkpoint / "synced.json"
        self._synced: set[Path] = set()
        """What this process has synced already."""

    def sync(self) -> None:
        """Make the newest planned epoch one that can be run again after a power loss, once."""
        marker = self._read()
        epoch = self._newest("offsets")
        if not (marker and marker["epoch"] == epoch and marker["boot"] == boot_id()):
            self.sync_all()

    def sync_all(self) -> None:
        """Make all that is there durable, and note how far that is."""
        newest = {"epoch": self._newest("offsets"), "committed": self._newest("commits")}
        found = set(_files(self._root))
        fresh = found - self._synced
        folders = {folder for path in fresh for folder in _folders(path, self._root)}
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
            list(pool.map(sync_path, fresh))
            list(pool.map(sync_folder, folders))
        self._synced = found
        lasting = sorted(str(p.relative_to(self._root)) for p in found if _is_lasting(p))
        write_json(self._marker, {**newest, "boot": boot_id(), "lasting": lasting})

    def promise_nothing(self) -> None:
        """Note that from here on nothing is synced: for DataFrames, or since nobody wants it."""
        write_json(self._marker, {"epoch": None})

    def durable(self) -> dict[str, int] | None:
        """The newest offset and the newest commit that survived a power loss, by log; -1: none.

        None if there was no power loss since the last sync, or nothing is promised.
        """
        marker = self._read()
        if marker is None or marker["epoch"] is None:
            return None
        if marker["boot"] and marker["boot"] == boot_id():
            return None
        return {"offsets": int(marker["epoch"]), "commits": int(marker["committed"])}

    def discard_unsynced(self) -> list[Path]:
        """After a power loss, remove what may be torn; what was removed."""
        durable, marker = self.durable(), self._read()
        if durable is None or marker is None or not self._root.exists():
            return []
        if durable["offsets"] < 0:
            shutil.rmtree(self._root)
            return [self._root]
        lasting = set(marker["lasting"])
        torn = [p for p in _files(self._root) if self._is_unsynced(p, durable, lasting)]
        torn += [p for p in self._root.rglob(".*.crc") if _is_wrong_sum(p, torn)]
        # Commits go first: with a commit gone its epoch is run again, whatever else remains.
        for path in sorted(torn, key=lambda p: (p.parent.name != "commits", str(p))):
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in torn}:
            sync_folder(folder)
        return torn

    def _read(self) -> dict[str, Any] | None:
        return read_json(self._marker, "the note of what is synced")

    def _newest(self, log: str) -> int:
        numbers = [int(p.name) for p in (self._root / log).glob("*") if p.name.isdigit()]
        return max(numbers, default=-1)

    def _is_unsynced(self, path: Path, durable: dict[str, int], lasting: set[str]) -> bool:
        log = path.parent.name
        if path.parent.parent == self._root and log in durable:
            return not path.name.isdigit() or int(path.name) > durable[log]
        if _is_lasting(path):
            return str(path.relative_to(self._root)) not in lasting
        version = path.name.partition("_")[0]  # of the state behind a commit: one more than it
        is_newer = version.isdigit() and int(version) > durable["commits"] + 1
        return is_newer and log != "SSTs"


def _files(root: Path) -> Iterator[Path]:
    """The files of Spark's below a folder; sums that begin with a dot can be done without."""
    for folder, _, names in os.walk(root):
        place = Path(folder)
        yield from (place / name for name in names if not name.startswith("."))


def _folders(path: Path, root: Path) -> Iterator[Path]:
    """The folders from a file up to the checkpoint: a new one is an entry of that above it."""
    for folder in path.parents:
        yield folder
        if folder == root.parent:
            return


def _is_lasting(path: Path) -> bool:
    """Is it of no one epoch? A snapshot of the state, a schema, who the query is."""
    in_metadata = any(part.startswith("_") for part in path.parts[-3:-1])
    return ".zip" in path.name or in_metadata or path.name == "metadata"


def _is_wrong_sum(sums: Path, torn: list[Path]) -> bool:
    """Are these sums of a file that is gone, or of other bytes than the file has?"""
    path = sums.with_name(sums.name[1:].removesuffix(".crc"))
    if not path.exists() or path in torn:
        return True
    return not are_sums(sums.read_bytes()) or why_altered(path) is not None
