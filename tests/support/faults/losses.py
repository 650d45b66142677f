"""What a disk may hold after a power loss: what was not synced is dropped, cut or zeroed."""

import json
import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

LEFT_OUT = ("scratch", "lock")
"""Of a checkpoint: what no start reads."""


@dataclass(frozen=True)
class Entry:
    """What the kernel says of a file or folder."""

    inode: int
    size: int
    changed: int
    """When its content was changed, in ns."""
    named: int
    """When it was given its name, in ns; of a folder that was never renamed, when it was made."""


def entry_of(path: Path) -> Entry:
    """Return what the kernel says; a folder's times change with what is in it, so ask for birth."""
    what = path.stat()
    named = what.st_ctime_ns
    if path.is_dir() and not path.name.startswith("epoch="):
        stamp = subprocess.check_output(["stat", "-c", "%.9W", str(path)], text=True)
        named = int(float(stamp) * 1e9)
    return Entry(what.st_ino, what.st_size, what.st_mtime_ns, named)


class Synced:
    """What a run has synced up to a moment."""

    def __init__(self, log: Path) -> None:
        self._contents: set[tuple[int, int, int]] = set()
        self._folders: dict[int, int] = {}
        for line in log.read_text().splitlines():
            when, _, inode, size, changed = json.loads(line)
            self._contents.add((inode, size, changed))
            self._folders[inode] = max(when, self._folders.get(inode, 0))

    def has_content(self, entry: Entry) -> bool:
        return (entry.inode, entry.size, entry.changed) in self._contents

    def has_name(self, entry: Entry, folder: Entry) -> bool:
        return self._folders.get(folder.inode, 0) > entry.named


def note_synced(folder: Path, log: Path) -> None:
    """Add a folder and all that is in it to a log of syncs: the machine was started again."""
    found = [(path, path.stat()) for path in (folder, *folder.rglob("*"))]
    now = time.time_ns()
    with log.open("a") as file:
        for path, what in found:
            entry = [now, str(path), what.st_ino, what.st_size, what.st_mtime_ns]
            file.write(json.dumps(entry) + "\n")


def copy_with_losses(source: Path, target: Path, synced: Synced, rng: random.Random) -> list[str]:
    """Copy a folder as a disk may hold it after a power loss; what was lost, in words."""
    lost: list[str] = []
    target.mkdir(parents=True, exist_ok=True)
    folder = entry_of(source)
    for path in sorted(source.iterdir()):
        if path.name in LEFT_OUT:
            continue
        entry = entry_of(path)
        if not synced.has_name(entry, folder) and rng.random() < 0.4:
            lost.append(f"{path.name}: dropped")
        elif path.is_dir():
            lost += copy_with_losses(path, target / path.name, synced, rng)
        else:
            lost += _copy_file(path, target / path.name, synced.has_content(entry), rng)
    return lost


def _copy_file(path: Path, target: Path, is_durable: bool, rng: random.Random) -> list[str]:
    data = path.read_bytes()
    fate = "kept" if is_durable else rng.choice(["kept", "cut", "emptied", "zeroed"])
    if fate == "cut":
        data = data[: rng.randrange(len(data) + 1)]
    elif fate == "emptied":
        data = b""
    elif fate == "zeroed":
        data = bytes(len(data))
    target.write_bytes(data)
    target.chmod(path.stat().st_mode)
    return [] if fate == "kept" else [f"{path.name}: {fate}"]
