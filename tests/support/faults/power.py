"""Power losses without a special file system: what was not synced is dropped, cut or emptied.

A run notes every sync (`cutwater.spark.storage.durable.SYNC_LOG`). It is frozen at some moment, and
its files are copied with what the kernel says of them; then the copy is made what a disk could
hold if the machine had died at that moment.
"""

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from support.faults import own_flow
from support.faults.counting_victims import CountingVictim
from support.faults.pairs import Pair, make_pair

import cutwater.spark
from cutwater.spark.storage.durable import SYNC_LOG
from cutwater.testing.connectors.counting import SOURCE, expected
from cutwater.testing.connectors.processes import kill_all, signal_all, wait_until

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
        said = subprocess.check_output(["stat", "-c", "%.9W", str(path)], text=True)
        named = int(float(said) * 1e9)
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


def frozen_copies(
    victim: CountingVictim, folder: Path, rng: random.Random, count: int
) -> Iterator[tuple[Path, list[str]]]:
    """Run, and freeze at random moments; each is copied as a power loss would leave it."""
    log = folder / "syncs"
    victim.feed(4)
    process = victim.start(environment={SYNC_LOG: str(log)})
    try:
        wait_until(process, log.exists)
        for number in range(count):
            victim.feed_ahead(4)
            begun = victim.next_epoch()
            wait_until(process, lambda begun=begun: victim.next_epoch() > begun)
            time.sleep(rng.random())
            signal_all(process, signal.SIGSTOP)
            target = folder / f"loss-{number}"
            lost = copy_with_losses(victim.checkpoint, target / "checkpoint", Synced(log), rng)
            lost += copy_with_losses(victim.folder / "out", target / "out", Synced(log), rng)
            signal_all(process, signal.SIGCONT)
            yield target, lost
    finally:
        kill_all(process)


def recovered(copy: Path, victim: CountingVictim, spark: SparkSession) -> Pair:
    """Run on from a copy until all is read; what a reader sees then."""
    pair = make_pair("jsonl-commit", copy, lambda name: name)
    cutwater.spark.run(
        own_flow.flow_to(["counts"]),
        spark,
        sources={SOURCE: cutwater.spark.json_lines(str(victim.folder / "in"))},
        sinks={"counts": cutwater.spark.folder(str(copy / "out"))},
        checkpoint=copy / "checkpoint",
    )
    return pair


def lose_power(
    victim: CountingVictim, folder: Path, seed: int, count: int, spark: SparkSession
) -> int:
    """Every copy is gone on with and shows all rows once and in order; how much was lost."""
    losses = 0
    for copy, lost in frozen_copies(victim, folder, random.Random(seed), count):
        losses += len(lost)
        assert recovered(copy, victim, spark).seen() == expected(victim.fed), lost
        shutil.rmtree(copy)
    return losses
