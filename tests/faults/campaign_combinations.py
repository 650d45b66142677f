"""Faults of all kinds follow one another, on a schedule that one seed draws."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.connectors.cutting_proxy import CuttingProxy
from support.faults.counting_victims import CountingVictim
from support.faults.links import linked_pair
from support.faults.pairs import ON_SERVERS, PAIRS, make_pair
from support.faults.power import lose_unsynced
from support.faults.takeovers import take_over

from cutwater.spark.storage.durable import SYNC_LOG
from cutwater.testing.connectors.processes import kill_all, signal_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FAULTS = 5
"""In each case, of those that are drawn from."""
POINTS = ("before-the-batch", "in-the-batch", "some-buckets", "before-publish", "after-publish")


@dataclass(frozen=True)
class World:
    """A victim with what is around it."""

    victim: CountingVictim
    rng: random.Random
    link: CuttingProxy | None = None
    """To its server, if it has one."""
    restart_server: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def running(self):
        """A run in the middle of its epochs, that must go on after the block; then it is killed."""
        victim = self.victim
        victim.feed_ahead(4)
        process = victim.start()
        try:
            goal = victim.next_epoch() + self.rng.randrange(1, 3)
            wait_until(process, lambda: victim.next_epoch() >= goal)
            yield process
            victim.check_prefix()
            begun = victim.next_epoch()
            victim.feed(2)
            wait_until(process, lambda: victim.next_epoch() > begun)
        finally:
            kill_all(process)


# --- whatever the sink is


def kill_at_random(world):
    world.victim.kill_at_random(world.rng)


def kill_at_a_point(world):
    world.victim.kill_at(world.rng.choice(POINTS))


def pause(world):
    with world.running() as process:
        signal_all(process, signal.SIGSTOP)
        time.sleep(world.rng.random())
        signal_all(process, signal.SIGCONT)


def lose_the_commit(world):
    """The machine dies before Spark's last commit is on disk; no later epoch has begun."""
    victim = world.victim
    victim.feed(1)
    victim.finish()
    commits = victim.checkpoint / "spark" / "commits"
    (commits / str(victim.commits()[-1])).unlink()
    for checksum in commits.glob(".*.crc"):
        checksum.unlink()


def lose_power(world):
    """The machine dies at a random moment, with any part of what was not synced.

    What a folder shows before the next start is not promised.
    """
    world.victim.kill_at_random(world.rng)
    lost = lose_unsynced(world.victim, Path(os.environ[SYNC_LOG]), world.rng)
    print(f"{len(lost)} files lost")
    world.victim.finish()


def be_taken_over(world):
    """A second run claims all while the first is paused, and the first wakes."""
    world.victim.feed_ahead(4)
    take_over(world.victim)


# --- where the sink is on a server


def restart_the_server(world):
    with world.running():
        world.restart_server()


def lose_the_link(world):
    with world.running():
        world.link.swallow()
        time.sleep(2 * world.rng.random())
        world.link.let_through()


def slow_the_link(world):
    world.link.delay_seconds = 0.02 * world.rng.random()
    try:
        with world.running():
            pass
    finally:
        world.link.delay_seconds = 0.0


ANYWHERE = (kill_at_random, kill_at_a_point, pause, lose_the_commit, lose_power, be_taken_over)
WITH_A_SERVER = (restart_the_server, lose_the_link, slow_the_link)


@pytest.fixture
def make_world(tmp_path, request, monkeypatch):
    """Make a world for a pair; all its syncs are noted, for when it loses power."""
    monkeypatch.setenv(SYNC_LOG, str(tmp_path / "syncs"))
    with contextlib.ExitStack() as links:

        def make(pair, rng):
            service = request.getfixturevalue
            if pair not in ON_SERVERS:
                return World(CountingVictim(tmp_path, make_pair(pair, tmp_path, service)), rng)
            linked, link = links.enter_context(linked_pair(pair, tmp_path, service))
            victim = CountingVictim(tmp_path, linked)
            if pair.startswith("kafka"):
                return World(victim, rng, link, service("broker").restart)
            postgres = service("postgres")
            how = rng.choice(["immediate", "fast"])
            return World(victim, rng, link, lambda: postgres.restart(how))

        yield make


@pytest.mark.parametrize("pair", PAIRS)
def test_faults_follow_one_another(make_world, seed, pair):
    rng = random.Random(seed)
    world = make_world(pair, rng)
    faults = [*ANYWHERE, *(WITH_A_SERVER if pair in ON_SERVERS else ())]
    for fault in rng.sample(faults, FAULTS):
        print(pair, fault.__name__, flush=True)
        fault(world)
        world.victim.check_prefix()
    world.victim.finish()
    world.victim.check_whole()
