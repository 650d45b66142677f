"""The world misbehaves: one process pauses, a link is bad, backups come back."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from support.faults.counting_victims import CountingVictim
from support.faults.links import linked_pair
from support.faults.pairs import ON_SERVERS, PAIRS

from cutwater.testing.connectors.processes import descendants, kill_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAUSE_SECONDS = 3
PROGRAMS = {"JVM": "java", "planner": "source_runner"}
"""What processes are called in lists of them."""


def processes(process, program):
    """The processes of a run that run a program."""
    named = []
    for pid in descendants(process.pid):
        name = Path(f"/proc/{pid}/comm")
        if name.exists() and program in name.read_text():
            named.append(pid)
    return named


@pytest.mark.parametrize("pair", ["jsonl-commit", "delta-commit", "postgres-early", "kafka-early"])
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


@pytest.mark.parametrize("pair", ON_SERVERS)
@pytest.mark.parametrize("state", ["swallows everything", "is slow"])
def test_the_link_to_a_server_is_bad(request, tmp_path, pair, state):
    with linked_pair(pair, tmp_path, request.getfixturevalue) as (linked, link):
        victim = CountingVictim(tmp_path, linked)
        victim.feed(6)
        process = victim.start()
        try:
            wait_until(process, lambda: len(victim.commits()) >= 2)
            if state == "is slow":
                link.delay_seconds = 0.02
            else:
                link.swallow()
                time.sleep(PAUSE_SECONDS)
                victim.check_prefix()
                link.let_through()
            wait_until(process, lambda: victim.rows() == victim.fed)
        finally:
            kill_all(process)
        victim.finish()
    victim.check_whole()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_backup_comes_back(make_victim, tmp_path, pair):
    """Of the checkpoint alone or of the output alone it is refused; of both it goes on.

    Outputs on servers are restored in `test_changed_outputs`.
    """
    victim = make_victim(pair, tmp_path / "victim")
    places = {"checkpoint": victim.checkpoint, "output": victim.folder / "out"}
    if pair in ON_SERVERS:
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
    if pair not in ON_SERVERS:
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
