"""The world misbehaves: one process pauses, a link is bad, backups come back, faults combine."""

import os
import random
import shutil
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.connectors.cutting_proxy import cutting_proxy
from support.faults.counting_victims import CountingVictim
from support.faults.pairs import PAIRS, make_pair

from cutwater.testing.connectors.processes import descendants, kill_all, signal_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAUSE_SECONDS = 3
PROGRAMS = {"JVM": "java", "planner": "source_runner"}
"""What processes are called in lists of them."""
POINTS = ("before-the-batch", "in-the-batch", "some-buckets", "before-publish", "after-publish")


def processes(process, program):
    """The processes of a run that run a program."""
    named = []
    for pid in descendants(process.pid):
        name = Path(f"/proc/{pid}/comm")
        if name.exists() and program in name.read_text():
            named.append(pid)
    return named


@pytest.mark.parametrize("pair", ["jsonl-commit", "postgres-early"])
@pytest.mark.parametrize("who", [*PROGRAMS, "worker that is about to write"])
def test_one_process_pauses_alone(make_victim, pair, who):
    victim = make_victim(pair)
    victim.feed(6)
    trap = None if who in PROGRAMS else victim.trap("before-write")
    process = victim.start(trap=trap)
    try:
        wait_until(process, lambda: trap.is_reached if trap else len(victim.commits()) >= 2)
        paused = [trap.pid] if trap else processes(process, PROGRAMS[who])
        assert paused
        for pid in paused:
            os.kill(pid, signal.SIGSTOP)
        if trap:
            trap.let_go()
        time.sleep(PAUSE_SECONDS)
        victim.check_prefix()
        for pid in paused:
            os.kill(pid, signal.SIGCONT)
        wait_until(process, lambda: victim.rows() == victim.fed)
    finally:
        kill_all(process)
    victim.finish()
    victim.check_whole()


@pytest.mark.parametrize("release", ["early", "commit"])
@pytest.mark.parametrize("link", ["swallows everything", "is slow"])
def test_the_link_to_a_database_is_bad(request, postgres, tmp_path, release, link):
    pair = make_pair(f"postgres-{release}", tmp_path, request.getfixturevalue)
    with cutting_proxy(postgres.port) as proxy:
        through = pair.binding["dsn"].replace(f"port={postgres.port}", f"port={proxy.port}")
        victim = CountingVictim(tmp_path, replace(pair, binding={**pair.binding, "dsn": through}))
        victim.feed(6)
        process = victim.start()
        try:
            wait_until(process, lambda: len(victim.commits()) >= 2)
            if link == "is slow":
                proxy.delay_seconds = 0.02
            else:
                proxy.swallow()
                time.sleep(PAUSE_SECONDS)
                victim.check_prefix()
                proxy.let_through()
            wait_until(process, lambda: victim.rows() == victim.fed)
        finally:
            kill_all(process)
        victim.finish()
    victim.check_whole()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_backup_comes_back(make_victim, tmp_path, pair):
    """Of the checkpoint alone or of the output alone it is refused; of both it goes on.

    Outputs on servers are restored in `test_strange_outputs`.
    """
    victim = make_victim(pair, tmp_path / "victim")
    places = {"checkpoint": victim.checkpoint, "output": victim.folder / "out"}
    is_on_a_server = pair.startswith(("postgres", "kafka"))
    if is_on_a_server:
        del places["output"]
    victim.feed(2)
    victim.finish()
    kept(places, tmp_path / "old")
    victim.feed(2)
    victim.finish()
    kept(places, tmp_path / "new")
    for what, code in (("checkpoint", "output-ahead"), ("output", "output-behind")):
        if what in places:
            restored({what: places[what]}, tmp_path / "old")
            assert code in victim.refusal()
            restored(places, tmp_path / "new")
    if not is_on_a_server:
        restored(places, tmp_path / "old")
    victim.finish()
    victim.check_whole()


def kept(places, folder):
    for name, place in places.items():
        shutil.copytree(place, folder / name, symlinks=True)


def restored(places, folder):
    for name, place in places.items():
        shutil.rmtree(place)
        shutil.copytree(folder / name, place, symlinks=True)


@pytest.mark.parametrize("case", range(6))
def test_faults_follow_one_another(make_victim, request, seed, case):
    rng = random.Random(seed)
    pair = rng.choice(PAIRS)
    victim = make_victim(pair)
    faults = [kill_at_random, kill_at_a_point, pause, lose_the_commit]
    if pair.startswith("postgres"):
        faults.append(partial(restart_the_server, request.getfixturevalue("postgres")))
    for _ in range(4):
        fault = rng.choice(faults)
        print(pair, getattr(fault, "__name__", "restart_the_server"), flush=True)
        fault(victim, rng)
        victim.check_prefix()
    victim.finish()
    victim.check_whole()


def kill_at_random(victim, rng):
    victim.kill_at_random(rng)


def kill_at_a_point(victim, rng):
    victim.kill_at(rng.choice(POINTS))


def pause(victim, rng):
    victim.feed_ahead(4)
    process = victim.start()
    try:
        goal = victim.next_epoch() + rng.randrange(1, 3)
        wait_until(process, lambda: victim.next_epoch() >= goal)
        signal_all(process, signal.SIGSTOP)
        time.sleep(rng.random())
        signal_all(process, signal.SIGCONT)
        wait_until(process, lambda: victim.next_epoch() > goal)
    finally:
        kill_all(process)


def lose_the_commit(victim, _rng):
    """The machine dies before Spark's last commit is on disk; no later epoch has begun."""
    victim.feed(1)
    victim.finish()
    commits = victim.checkpoint / "spark" / "commits"
    (commits / str(victim.commits()[-1])).unlink()
    for checksum in commits.glob(".*.crc"):
        checksum.unlink()


def restart_the_server(server, victim, rng):
    victim.feed_ahead(4)
    process = victim.start()
    try:
        goal = victim.next_epoch() + 1
        wait_until(process, lambda: victim.next_epoch() >= goal)
        server.restart(rng.choice(["immediate", "fast"]))
        wait_until(process, lambda: victim.next_epoch() > goal)
    finally:
        kill_all(process)
