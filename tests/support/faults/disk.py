"""What a disk may hold when the machine dies under a run in this process.

Each sync is noted with what it made durable: the content of a file, the names in a folder. What has
changed since may be there or not, name by name and file by file; what was removed may be back.
"""

import os
import random
import shutil
import stat
from pathlib import Path

import pytest

from cutwater.spark.storage import durable

Names = dict[str, int]


class Disk:
    """What is durable of the files that this process syncs."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, Names] = {}
        self._held: dict[int, int] = {}
        """Descriptors of what was synced: no other file gets its inode meanwhile."""
        real = durable._sync

        def sync(descriptor: int, path: str | int | Path) -> None:
            real(descriptor, path)
            self._note(descriptor)

        patch.setattr(durable, "_sync", sync)

    def _note(self, descriptor: int) -> None:
        what = os.fstat(descriptor)
        if what.st_ino not in self._held:
            self._held[what.st_ino] = os.dup(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}")
        if stat.S_ISDIR(what.st_mode):
            self._names[what.st_ino] = _names_in(path)
        else:
            self._contents[what.st_ino] = path.read_bytes()

    def lose_power(self, root: Path, rng: random.Random) -> list[str]:
        """Make a folder what the disk may hold; what was lost or came back, in words."""
        copy = root.with_name(f"{root.name}.copy")
        lost: list[str] = []
        self._copy_folder(root.stat().st_ino, root, copy, rng, lost)
        self.close()
        shutil.rmtree(root)
        copy.rename(root)
        for path in [root, *root.rglob("*")]:  # what the disk has held so far stays
            durable.sync_path(path)
        return lost

    def close(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        for known in (self._held, self._names, self._contents):
            known.clear()

    def _copy_folder(
        self, inode: int, path: Path | None, target: Path, rng: random.Random, lost: list[str]
    ) -> None:
        target.mkdir()
        now, then = _names_in(path) if path else {}, self._names.get(inode, {})
        for name in sorted(now | then):
            before, after = then.get(name), now.get(name)
            found = after if before == after else rng.choice([before, after])
            if found != after:
                lost.append(f"{name}: {'dropped' if found is None else 'back'}")
            if found is not None:
                there = path / name if path and found == after else None
                self._copy(found, there, target / name, rng, lost)

    def _copy(
        self, inode: int, path: Path | None, target: Path, rng: random.Random, lost: list[str]
    ) -> None:
        source = path or Path(f"/proc/self/fd/{self._held[inode]}")
        if inode in self._names or (path and path.is_dir()):
            self._copy_folder(inode, path, target, rng, lost)
            return
        now, then = source.read_bytes(), self._contents.get(inode, b"")
        held = now if now == then else _torn(now, then, rng)
        if held != now:
            lost.append(f"{target.name}: torn")
        target.write_bytes(held)


def _names_in(path: Path) -> Names:
    with os.scandir(path) as entries:
        return {entry.name: entry.inode() for entry in entries}


def _torn(now: bytes, then: bytes, rng: random.Random) -> bytes:
    """Of what was written since the sync, any part is there, or its length alone."""
    cut = rng.randrange(len(now) + 1)
    if now.startswith(then):
        cut = max(cut, len(then))
    return rng.choice([now, then, now[:cut], now[:cut] + bytes(len(now) - cut)])
