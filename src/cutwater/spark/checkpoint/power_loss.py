"""Power loss: Spark syncs none of its checkpoint files, so we sync those that an epoch depends on.

The outputs and our own logs are synced when they are written. Spark's offsets, commits and state
are not: after a machine dies, an output could be ahead of its checkpoint. So:

before an epoch runs
    Its offsets are written, no task has started. `SparkFiles.sync` syncs these offsets, the commit
    and the state of the epoch before, and then writes ``synced-<generation>.json``: *epoch N can be
    replayed*. An output never shows an epoch that is not recorded there. Every start syncs what it
    finds, and so does a run that ends in an orderly way: a reboot after that discards nothing.
when a run starts after a reboot
    `SparkFiles.discard_unsynced` removes everything written after the last sync, whether intact,
    torn or empty: offsets after N, commits from N on, state snapshots that are not listed. Spark
    then replays epoch N, and the ledgers of the sinks drop the rows that they already have.

Each generation of runs has a record of its own, and the newest counts: the planner of a fenced run
may wake up in the middle of a sync, and must not take back what its successor has recorded.

A killed process loses nothing that the kernel has, so a start within the same boot discards
nothing. DataFrames are planned by Spark alone: a flow that reads one is not protected. Neither is a
run with ``fsync=False``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.checksums import are_sums, why_altered
from cutwater.spark.storage.durable import damaged, read_json, sync_folder, sync_path, write_json

__all__ = ["SparkFiles", "boot_id"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SYNCS_AT_ONCE = 8
"""Concurrent syncs share the journal commits of the file system."""


def boot_id() -> str:
    """The id of the machine's current boot; empty if the system does not provide one.

    Without an id every start counts as one after a power loss: it replays one epoch, which is
    harmless.
    """
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class SparkFiles:
    """Spark's part of a checkpoint, as far as it must survive a power loss."""

    def __init__(self, checkpoint: Path, generation: int = 0) -> None:
        """A run that syncs names its generation; a reader need not."""
        self._root = checkpoint / "spark"
        self._checkpoint = checkpoint
        self._generation = generation
        self._synced: set[Path] = set()
        """The files that this process has synced already."""

    def sync(self) -> None:
        """Make the newest planned epoch replayable after a power loss; a no-op if it is already."""
        marker = self._read()
        epoch = self._newest("offsets")
        if not (marker and marker["epoch"] == epoch and marker["boot"] == boot_id()):
            self.sync_all()

    def sync_all(self) -> None:
        """Sync every file, and record up to which epoch that is."""
        newest = {"epoch": self._newest("offsets"), "committed": self._newest("commits")}
        found = set(_files(self._root))
        fresh = found - self._synced
        folders = {folder for path in fresh for folder in _folders(path, self._root)}
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
            list(pool.map(sync_path, fresh))
            list(pool.map(sync_folder, folders))
        self._synced = found
        lasting = sorted(str(p.relative_to(self._root)) for p in found if _is_lasting(p))
        self._record({**newest, "boot": boot_id(), "lasting": lasting})

    def promise_nothing(self) -> None:
        """Record that nothing is synced from here on: sources are DataFrames, or fsync is off."""
        self._record({"epoch": None})

    def is_promised(self) -> bool:
        """Did the newest run sync what its epochs depend on?"""
        marker = self._read()
        return marker is not None and marker["epoch"] is not None

    def durable(self) -> dict[str, int] | None:
        """The newest durable offset and commit after a power loss, by log; -1: none.

        None if there was no power loss since the last sync, or if nothing is promised.
        """
        marker = self._read()
        if marker is None or marker["epoch"] is None:
            return None
        if marker["boot"] and marker["boot"] == boot_id():
            return None
        return {"offsets": int(marker["epoch"]), "commits": int(marker["committed"])}

    def discard_unsynced(self) -> list[Path]:
        """After a power loss, remove the files that may be torn; return what was removed."""
        durable, marker = self.durable(), self._read()
        if durable is None or marker is None or not self._root.exists():
            return []
        if durable["offsets"] < 0:
            shutil.rmtree(self._root)
            return [self._root]
        lasting = set(marker["lasting"])
        torn = [p for p in _files(self._root) if self._is_unsynced(p, durable, lasting)]
        torn += [p for p in self._root.rglob(".*.crc") if _is_wrong_sum(p, torn)]
        # Commits go first: without its commit an epoch is replayed, whatever else remains.
        for path in sorted(torn, key=lambda p: (p.parent.name != "commits", str(p))):
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in torn}:
            sync_folder(folder)
        return torn

    def _record(self, marker: dict[str, Any]) -> None:
        write_json(self._checkpoint / f"synced-{self._generation}.json", marker)
        for generation, path in self._markers().items():
            if generation < self._generation:
                path.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any] | None:
        """The record of the newest generation; None if there is none."""
        markers, what = self._markers(), "the record of what is synced"
        if not markers:
            return None
        path = markers[max(markers)]
        found = read_json(path, what)
        if found is not None and not _is_marker(found):
            raise damaged(path, what, ValueError("it has unexpected fields"))
        return found

    def _markers(self) -> dict[int, Path]:
        """The records, by generation."""
        paths = self._checkpoint.glob("synced-*.json")
        found = {path.stem.removeprefix("synced-"): path for path in paths}
        return {int(number): path for number, path in found.items() if number.isdecimal()}

    def _newest(self, log: str) -> int:
        numbers = [int(p.name) for p in (self._root / log).glob("*") if p.name.isdigit()]
        return max(numbers, default=-1)

    def _is_unsynced(self, path: Path, durable: dict[str, int], lasting: set[str]) -> bool:
        log = path.parent.name
        if path.parent.parent == self._root and log in durable:
            return not path.name.isdigit() or int(path.name) > durable[log]
        if _is_lasting(path):
            return str(path.relative_to(self._root)) not in lasting
        version = path.name.partition("_")[0]  # the state after a commit has its number plus one
        is_newer = version.isdigit() and int(version) > durable["commits"] + 1
        return is_newer and log != "SSTs"


def _is_marker(found: Any) -> bool:
    if not isinstance(found, dict) or "epoch" not in found:
        return False
    if found["epoch"] is None:
        return True
    kinds = {"epoch": int, "committed": int, "boot": str, "lasting": list}
    return all(isinstance(found.get(name), kind) for name, kind in kinds.items())


def _files(root: Path) -> Iterator[Path]:
    """The files of Spark's below a folder; checksums, which begin with a dot, are dispensable."""
    for folder, _, names in os.walk(root):
        place = Path(folder)
        yield from (place / name for name in names if not name.startswith("."))


def _folders(path: Path, root: Path) -> Iterator[Path]:
    """The folders from a file up to the checkpoint's: each new folder is an entry in its parent."""
    for folder in path.parents:
        yield folder
        if folder == root.parent:
            return


def _is_lasting(path: Path) -> bool:
    """Is it needed by more than one epoch? A snapshot, a state schema, the query's id."""
    in_metadata = any(part.startswith("_") for part in path.parts[-3:-1])
    return ".zip" in path.name or in_metadata or path.name == "metadata"


def _is_wrong_sum(sums: Path, torn: list[Path]) -> bool:
    """Are these checksums of a file that is gone, or do they not match it?"""
    path = sums.with_name(sums.name[1:].removesuffix(".crc"))
    if not path.exists() or path in torn:
        return True
    return not are_sums(sums.read_bytes()) or why_altered(path) is not None
