"""A hundred kills of real-time runs: of everything and of each part, at random and at named points.

Each case is one checkpoint that is killed again and again while records come in and an onlooker
reads its output. Most kills leave the process: it starts its query again, so that a hundred of them
take minutes. Every fault is drawn with what comes after it, so that one may hit the recovery from
the one before.
"""

import os
import random
import signal
import time

import pytest
from support.faults.executors import executor_of
from support.faults.realtime_run import OPERATOR, READER
from support.faults.realtime_systems import make_run
from support.faults.realtime_tasks import batches
from support.spark.standalone_cluster import standalone_cluster

from cutwater.spark.realtime.drive import SETTINGS
from cutwater.testing.connectors.processes import kill_all, signal_all

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = 20
"""In each case, at least; some more are those of executors."""
EXECUTORS = 3
CASES = {"postgres": 2, "two-sources": 1, "kafka": 2}
"""How many runs of each kind share the faults."""
SHORT_BATCH_S = 5.0
"""With two sources batches end often, also while a replay waits for its sinks."""
FREEZE_SECONDS = 3

# --- a kill of one process, from which the run recovers by itself


def a_task_at_random(run, _server, rng):
    time.sleep(0.2 * rng.random())
    run.kill_task(rng.choice([OPERATOR, READER]), rng)


def a_task_while_the_run_recovers(run, _server, rng):
    """Once the next generation is open, and once when a reader has its plan open."""
    for _ in range(2):
        before = run.opened()
        run.kill_task(rng.choice([OPERATOR, READER]), rng)
        run.wait_until(lambda before=before: run.opened() > before)
    run.kill_task(READER, rng)


def a_task_with_a_snapshot_half_written(run, _server, rng):
    """A task is stopped; if a file of it has not got its name yet, it is killed."""
    partition = rng.randrange(2)

    def is_writing():
        folder = run.checkpoint / "realtime" / str(run.opened()) / "snapshots" / f"0.{partition}"
        return any(folder.glob(".*.new"))

    while True:
        run.wait_until(is_writing)
        pid = run.signal_task(f"/positions/snapshot-0.{partition}", rng, signal.SIGSTOP)
        if is_writing():
            return run.kill(pid)
        os.kill(pid, signal.SIGCONT)


def a_task_at_the_end_of_a_batch(run, _server, rng):
    ended = batches(run.checkpoint)
    run.wait_until(lambda: batches(run.checkpoint) != ended)
    run.kill_task(rng.choice([OPERATOR, READER]), rng)


# --- the end of all of it


def everything_at_random(run, _server, rng):
    time.sleep(0.2 * rng.random())
    run.kill_group()


def everything_while_it_recovers(run, _server, rng):
    before = run.opened()
    run.kill_task(rng.choice([OPERATOR, READER]), rng)
    run.wait_until(lambda: run.opened() > before)
    run.kill_group()


def everything_at_the_end_of_a_batch(run, _server, _rng):
    ended = batches(run.checkpoint)
    run.wait_until(lambda: batches(run.checkpoint) != ended)
    run.kill_group()


def the_jvm(run, _server, _rng):
    """The process says so in a sentence, and ends."""
    for pid in run.processes("java"):
        os.kill(pid, signal.SIGKILL)
    _, stderr = run.process.communicate(timeout=600)
    assert "[jvm-died]" in stderr
    assert "Traceback" not in stderr
    run.kill_group()


def the_driver(run, _server, _rng):
    """Its JVM and its tasks live on for a moment, while the next one starts."""
    orphans = run.process
    os.kill(orphans.pid, signal.SIGKILL)
    orphans.wait()
    run.process = run.trap = None
    run.kills += 1
    for pipe in (orphans.stdout, orphans.stderr):
        pipe.close()


# --- at named points: a trap is laid at the start of the next process


def in_a_trap(point):
    def kill(run, _server, rng):
        if run.process:
            run.kill_group()
        trap = run.lay(point)
        run.process = run.victim.start(trap=trap)
        run.wait_until(lambda: trap.is_reached)
        if rng.random() < 0.5:
            run.kill(trap.pid)
        else:
            run.kill_group()

    kill.__name__ = f"in_a_trap_{point.replace('-', '_')}"
    return kill


# --- what is no kill


def the_server_restarts(run, server, _rng):
    server.restart()
    run.go_on()


def the_server_freezes(run, server, _rng):
    server.pause()
    time.sleep(FREEZE_SECONDS)
    server.resume()
    run.go_on()


def everything_pauses(run, _server, rng):
    signal_all(run.process, signal.SIGSTOP)
    time.sleep(rng.random())
    signal_all(run.process, signal.SIGCONT)


def a_zombie_reader_wakes(run, _server, rng):
    """A reader sleeps while its successor is already further."""
    sleeping = run.signal_task(READER, rng, signal.SIGSTOP)
    before = run.opened()
    run.kill_task(OPERATOR, rng)
    run.wait_until(lambda: run.opened() > before)
    run.go_on()
    try:
        os.kill(sleeping, signal.SIGCONT)
    except ProcessLookupError:
        return  # Spark has killed it, asleep as it was
    run.go_on()


def a_zombie_run_wakes(run, _server, _rng):
    """All of a run sleeps, past its lock, while another takes over."""
    zombie = run.process
    signal_all(zombie, signal.SIGSTOP)
    try:
        (run.checkpoint / "lock").unlink()
        run.process = run.trap = None
        run.go_on()
        signal_all(zombie, signal.SIGCONT)
        _, stderr = zombie.communicate(timeout=600)
        # What a producer waited for when it fell asleep may time out before it is fenced.
        assert "[fenced]" in stderr or "[kafka-unreachable]" in stderr
        assert "Traceback" not in stderr
    finally:
        kill_all(zombie)


OF_ONE_PROCESS = (
    a_task_at_random,
    a_task_while_the_run_recovers,
    a_task_with_a_snapshot_half_written,
    a_task_at_the_end_of_a_batch,
)
OF_EVERYTHING = (
    everything_at_random,
    everything_while_it_recovers,
    everything_at_the_end_of_a_batch,
    the_jvm,
    the_driver,
    in_a_trap("before-the-batch"),  # planned and not sent
    in_a_trap("in-the-batch"),
    in_a_trap("some-buckets"),  # half the tasks committed a tick
    in_a_trap("before-write"),
    the_server_restarts,
    the_server_freezes,
    everything_pauses,
    a_zombie_reader_wakes,
    a_zombie_run_wakes,
)
"""These take longer, and are dealt to the cases of a kind."""


def drawn(kind, case, rng):
    """Faults in an order that is drawn; over the cases of a kind each is there."""
    dealt = [*OF_EVERYTHING[case :: CASES[kind]], *OF_ONE_PROCESS * 2]
    return rng.sample(dealt, len(dealt))


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind, count in CASES.items() for case in range(count)]
)
def test_kills_of_one_run(tmp_path, request, seed, kind, case):
    """Faults one after another, and then kills at random until there were enough."""
    rng = random.Random(seed)
    asked = {"batch_interval": SHORT_BATCH_S} if kind == "two-sources" else {}
    run, server = make_run(tmp_path, request, kind, **asked)
    faults = drawn(kind, case, rng)
    with run.fed():
        while faults or run.kills < KILLS:
            fault = faults.pop() if faults else a_task_at_random
            run.go_on()
            print(f"kill {run.kills + 1}: {fault.__name__}", flush=True)
            fault(run, server, rng)
        run.go_on()
        run.kill_group()
    run.victim.finish()
    run.victim.check_whole()


def test_executors_of_a_cluster_are_killed(tmp_path, request):
    """The driver claims a new generation, and the query starts on what is left or comes anew."""
    rng = random.Random(0)
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster", slots=3) as master:
        conf = {"spark.ui.enabled": "false", **SETTINGS}
        run, _ = make_run(tmp_path, request, "postgres", master=master, conf=conf)
        with run.fed():
            for _ in range(EXECUTORS):
                run.go_on()
                before = run.opened()
                run.kill(executor_of(run.task(OPERATOR, rng)))
                run.wait_until(lambda before=before: run.opened() > before)
                print(f"generation {run.opened()} after kill {run.kills}", flush=True)
            run.go_on()
            run.kill_group()
        run.victim.finish()
    run.victim.check_whole()
