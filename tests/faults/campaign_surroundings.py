"""Zombies, a disk that is full, servers that are started again under load."""

import contextlib
import os
import signal
import subprocess

import pytest
from support.faults.pairs import PAIRS
from support.faults.takeovers import paused, take_over
from support.repo.not_run import need

from cutwater.testing.connectors.counting import expected
from cutwater.testing.connectors.processes import kill_all, refusal_of, signal_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_paused_run_keeps_its_checkpoint(make_victim):
    victim = make_victim("jsonl-commit")
    victim.feed(4)
    trap = victim.trap("before-publish")
    process = paused(victim, trap)
    try:
        before = victim.pair.seen()
        assert "checkpoint-in-use" in victim.refusal()
        assert victim.pair.seen() == before
        trap.let_go()
        signal_all(process, signal.SIGCONT)
        wait_until(process, lambda: victim.rows() == victim.fed)
    finally:
        kill_all(process)
    victim.finish()
    victim.check_whole()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_zombie_that_another_took_over_from_shows_nothing(make_victim, pair):
    victim = make_victim(pair)
    victim.feed(4)
    take_over(victim)
    victim.feed(2)
    victim.finish()
    victim.check_whole()


@contextlib.contextmanager
def small_disk(folder, megabytes):
    """A file system of its own; without the right to make one the test is not run."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    done = subprocess.run(["mount", *options], capture_output=True, text=True)
    if done.returncode:
        need(f"no tmpfs can be mounted ({done.stderr.strip()})", provided_by="root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path):
    """Take all room that is left."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 16)):
            pass
    assert os.statvfs(path).f_bavail == 0


@pytest.mark.parametrize("pair", ["jsonl-commit", "delta-commit", "kafka-commit"])
def test_a_full_disk_ends_the_run_and_loses_nothing(make_victim, tmp_path, pair):
    with small_disk(tmp_path / "small", megabytes=64) as disk:
        victim = make_victim(pair, folder=disk)
        victim.feed(12)
        process = victim.start()
        try:
            wait_until(process, lambda: len(victim.commits()) >= 2)
            fill(disk / "ballast")
            sentence = refusal_of(process)
        finally:
            kill_all(process)
        print(sentence)
        victim.check_prefix()
        assert victim.rows() < victim.fed
        (disk / "ballast").unlink()
        victim.finish()
        victim.check_whole()


@pytest.mark.parametrize(
    ("pair", "ways"),
    [
        ("postgres-early", ("immediate", "fast")),
        ("postgres-commit", ("immediate", "fast")),
        ("kafka-early", ("kill", "stop")),
        ("kafka-commit", ("kill", "stop")),
    ],
)
def test_a_server_is_restarted_under_load(make_victim, request, pair, ways):
    victim = make_victim(pair)
    victim.feed(4)
    process = victim.start()
    try:
        for way in ways:
            goal = victim.next_epoch() + 1
            wait_until(process, lambda goal=goal: victim.next_epoch() > goal)
            restart(request, pair, way)
            victim.check_prefix()
            victim.feed_ahead(4)
        wait_until(process, lambda: victim.pair.seen() == expected(victim.fed))
    finally:
        kill_all(process)
    victim.finish()
    victim.check_whole()


def restart(request, pair, way):
    if pair.startswith("postgres"):
        request.getfixturevalue("postgres").restart(way)
        return
    broker = request.getfixturevalue("broker")
    getattr(broker, way)()
    broker.start()
