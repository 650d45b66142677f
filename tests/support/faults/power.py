"""Power losses without a special file system: what was not synced is dropped, cut or emptied.

A run notes every sync (`cutwater.spark.storage.durable.SYNC_LOG`). It is frozen at some moment, and
its files are copied with what the kernel says of them; then the copy is made what a disk could
hold if the machine had died at that moment.
"""

import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession
from support.faults import own_flow
from support.faults.counting_victims import CountingVictim, bound
from support.faults.losses import Synced, copy_with_losses, note_synced
from support.faults.pairs import Pair, make_pair

import cutwater.spark
from cutwater.spark.storage.durable import SYNC_LOG, read_json, write_json
from cutwater.testing.connectors.counting import SOURCE, expected
from cutwater.testing.connectors.processes import kill_all, signal_all, wait_until


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
    pair = make_pair(victim.pair.name, copy, lambda name: name)
    cutwater.spark.run(
        own_flow.flow_to(["counts"]),
        spark,
        sources={SOURCE: cutwater.spark.json_lines(str(victim.folder / "in"))},
        sinks={"counts": bound(pair.binding)},
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


def lose_unsynced(victim: CountingVictim, log: Path, rng: random.Random) -> list[str]:
    """Lose what a killed run has not synced, in place, and boot; what was lost.

    The log has the syncs of all its runs. What a server has is not lost: it is another machine.
    """
    places = list(filter(Path.exists, (victim.checkpoint, victim.folder / "out")))
    lost = [file for place in places for file in _lose(place, Synced(log), rng)]
    _boot(victim.checkpoint)
    for place in places:
        note_synced(place, log)
    return lost


def _lose(place: Path, synced: Synced, rng: random.Random) -> list[str]:
    disk = place.with_name(f"{place.name}.disk")
    lost = copy_with_losses(place, disk, synced, rng)
    shutil.rmtree(place)
    disk.rename(place)
    return lost


def _boot(checkpoint: Path) -> None:
    """The next start is on a machine that was booted since the last sync."""
    for marker in checkpoint.glob("synced-*.json"):
        found = read_json(marker, "the record of what is synced")
        write_json(marker, {**found, "boot": "another boot"})
