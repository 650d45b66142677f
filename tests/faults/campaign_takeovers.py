"""Runs that are not the first: killed while they take over, with other code, with equal pids."""

import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support.faults import own_flow
from support.faults.pairs import PAIRS
from support.faults.realtime_systems import make_run
from support.repo.not_run import need

from cutwater.testing.connectors.counting import expected
from cutwater.testing.connectors.processes import kill_all, refusal_of, signal_all, wait_until
from cutwater.testing.connectors.traps import Trap

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TAKING_OVER = ("before-take-over", "after-take-over", "after-claim")
"""In this order: what is taken over is not taken over again."""


@pytest.mark.parametrize("way", ["adopt", "fresh"])
@pytest.mark.parametrize("pair", PAIRS)
def test_a_kill_while_an_output_is_taken_over(make_victim, seed, pair, way):
    """The same command goes on: what was there is there once more, or gone, whole."""
    victim = make_victim(pair)
    victim.feed(2)
    victim.finish()
    before = victim.pair.seen()
    shutil.rmtree(victim.checkpoint)
    assert "another-checkpoint" in victim.refusal()
    victim.asked = {way: True}
    points = random.Random(seed).sample(TAKING_OVER, 2)
    for number, point in enumerate(sorted(points, key=TAKING_OVER.index)):
        print(point)
        victim.kill_in(Trap(point, victim.folder / f"take-over-{number}", 0))
        if way == "adopt":
            assert victim.pair.seen() == before
    victim.finish()
    victim.pair.settle()
    again = expected(victim.fed)
    if way == "adopt":
        again = {key: kept(victim, rows) for key, rows in again.items()}
    assert victim.pair.seen() == again


def kept(victim, rows):
    """What an adopted output shows of a key: what was there, then all of it again."""
    return [*rows, *rows] if victim.pair.has_order else sorted([*rows, *rows])


@pytest.fixture
def changed(tmp_path):
    """The environment of a run whose code is not what it was, though it does the same."""
    folder = tmp_path / "changed"
    shutil.copytree(Path(own_flow.__file__).parents[1], folder / "support")
    with (folder / "support" / "faults" / "own_flow.py").open("a") as file:
        file.write("\nNEWER = True\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.parametrize("pair", ["postgres-early", "kafka-early"])
def test_code_changes_across_an_epoch_that_is_half_released(make_victim, changed, pair):
    """Other code is refused; it may finish the epoch if it is told to, and so may the old code."""
    victim = make_victim(pair)
    for is_told in (False, True):
        victim.kill_at("some-buckets")
        victim.pair.settle()
        sentence = victim.refusal(**changed)
        assert "[changed-flow]" in sentence
        assert "sink 'counts' has released" in sentence
        victim.asked = {"finish_with_this_flow": True} if is_told else {}
        victim.finish(**(changed if is_told else {}))
        victim.check_whole()


@pytest.mark.parametrize("pair", ["postgres-early", "jsonl-commit", "delta-commit"])
def test_code_changes_across_an_epoch_of_which_nothing_left(make_victim, changed, pair):
    victim = make_victim(pair)
    victim.kill_at("in-the-batch")
    victim.finish(**changed)
    victim.check_whole()


def test_code_changes_across_ticks_of_which_some_are_half_released(tmp_path, request, changed):
    """In real time: other code is refused; it may finish the ticks if it is told to."""
    run, _ = make_run(tmp_path, request, "postgres")
    victim = run.victim
    with run.fed():
        trap = run.lay("some-buckets")
        run.process = victim.start(trap=trap)
        run.wait_until(lambda: trap.is_reached)
        run.kill_group()
    sentence = victim.refusal(**changed)
    assert "[changed-flow]" in sentence
    assert "sink 'counts' has released" in sentence
    victim.check_prefix()
    victim.asked = {**victim.asked, "finish_with_this_flow": True}
    victim.finish(**changed)
    victim.check_whole()


def contained(victim, trap=None, until="caught-up"):
    """Start a run that is the first process of its container."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        need("no namespace of processes can be made", provided_by="root")
    return victim.start("stopped" if trap else until, trap, before=unshare)


@pytest.mark.parametrize("pair", ["jsonl-commit", "parquet-commit", "delta-commit"])
def test_two_runs_whose_processes_have_equal_pids(make_victim, pair):
    """As in two containers: one is paused, and another takes over that has its pids."""
    victim = make_victim(pair)
    victim.feed(4)
    trap = victim.trap("before-publish")
    zombie = contained(victim, trap)
    try:
        wait_until(zombie, lambda: trap.is_reached)
        signal_all(zombie, signal.SIGSTOP)
        (victim.checkpoint / "lock").unlink()
        other = contained(victim)
        try:
            _, stderr = other.communicate(timeout=600)
        finally:
            kill_all(other)
        assert other.returncode == 0, stderr
        victim.check_whole()
        trap.let_go()
        signal_all(zombie, signal.SIGCONT)
        assert "[fenced]" in refusal_of(zombie)
    finally:
        kill_all(zombie)
    victim.check_whole()


def test_two_runs_in_real_time_whose_processes_have_equal_pids(tmp_path, request):
    run, _ = make_run(tmp_path, request, "postgres")
    with run.fed():
        run.process = zombie = contained(run.victim, until="stopped")
        try:
            run.go_on()
            signal_all(zombie, signal.SIGSTOP)
            (run.checkpoint / "lock").unlink()
            run.process = contained(run.victim, until="stopped")
            run.go_on()
            signal_all(zombie, signal.SIGCONT)
            assert "[fenced]" in refusal_of(zombie)
        finally:
            kill_all(zombie)
        run.go_on()
        run.kill_group()
    run.victim.finish()
    run.victim.check_whole()
