"""Random flows on the real-time engine with a JVM, side by side, against the simulator.

The first run loses an operator while records come in, and is stopped. The second goes on from its
snapshots, in Spark batches of five seconds; the third closes the input. The plans say which
records each tick had: with the ticks as epochs the simulator has the same rows in the same order.
"""

import os
import random
import signal
import subprocess
import sys

import pytest
from support.faults.realtime_tasks import operator_of
from support.faults.victims import with_tests
from support.spark.realtime_flows import STOP, flow_of, kept, names_of, write_items
from support.spark.tick_agreement import assert_ticks_agree, inputs_of

import cutwater as cw
from cutwater.flow.steps import Sink, Source
from cutwater.spark.realtime.opening import newest_opening
from cutwater.spark.realtime.plan_log import read_plan
from cutwater.testing.connectors.processes import kill_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEEDS = range(int(os.environ.get("CUTWATER_SEEDS", "20")))
PACK = 20
PACKS = [SEEDS[n : n + PACK] for n in range(0, len(SEEDS), PACK)]


def start(root, batch_s, ending, seeds):
    command = [sys.executable, "-m", "support.spark.realtime_flows", str(root), batch_s, ending]
    return subprocess.Popen(
        [*command, *map(str, seeds)],
        env={**os.environ, **with_tests()},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process):
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr


def planned(checkpoint):
    """What each source planned for each tick that the newest plans still have."""
    opening = newest_opening(checkpoint)
    found = {}
    for source in opening.sources:
        for tick in read_plan(opening.plan_path(source)).ticks:
            if tick.chunks:
                found.setdefault(tick.tick, {})[source] = tick.chunks
    return found


def lose_an_operator(process, checkpoint):
    before = newest_opening(checkpoint).generation
    os.kill(operator_of(checkpoint), signal.SIGKILL)
    wait_until(process, lambda: newest_opening(checkpoint).generation > before)


def put(process, root, flow, rng, number):
    """One more file for each source, and what comes of it."""

    def ticks():
        return sum(len(kept(root / "out" / sink)) for sink in names_of(flow, Sink))

    before = ticks()
    for source in names_of(flow, Source):
        write_items(root / "in" / source, rng, number)
    wait_until(process, lambda: ticks() > before)


def run_and_lose_an_operator(root, seeds, flow, rng):
    """Returns once it was stopped; nothing of its plans is gone, since it had no snapshot."""
    process = start(root, "600", "stop", seeds)
    try:
        for number in range(12):
            put(process, root, flow, rng, number)
            if number == 6:
                lose_an_operator(process, root / "checkpoint")
        (root / STOP).touch()
        ended(process)
        (root / STOP).unlink()
    finally:
        kill_all(process)


def run_to_its_end(root, batch_s, ending, seeds):
    process = start(root, batch_s, ending, seeds)
    try:
        ended(process)
    finally:
        kill_all(process)


@pytest.mark.parametrize("seeds", PACKS, ids=lambda seeds: f"seeds {seeds[0]}-{seeds[-1]}")
def test_random_flows_release_in_every_tick_what_the_simulator_says(tmp_path, seeds):
    flow, rng = flow_of(seeds), random.Random(seeds[0])
    run_and_lose_an_operator(tmp_path, seeds, flow, rng)
    checkpoint = tmp_path / "checkpoint"
    ticks = planned(checkpoint)
    for number in range(12, 150):
        for source in names_of(flow, Source):
            write_items(tmp_path / "in" / source, rng, number)
    run_to_its_end(tmp_path, "5", "caught-up", seeds)
    ticks |= planned(checkpoint)
    run_to_its_end(tmp_path, "600", "close", seeds)
    result = cw.simulate(flow, inputs_of(flow, ticks))
    released = {sink: kept(tmp_path / "out" / sink) for sink in names_of(flow, Sink)}
    assert_ticks_agree(result, ticks, released, is_closed=True)
