"""Ctrl-C once and twice, and a stop with nothing to do: nothing is lost."""

import json
import os
import random
import signal
import subprocess

import pytest
from support.faults.stops import finishes_its_epoch
from support.faults.victims import Victim, write_inputs

from cutwater.testing.connectors.processes import kill_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    return write_inputs(tmp_path_factory.mktemp("inputs"), seed, epochs=12)


def test_a_run_that_is_interrupted_finishes_its_epoch(inputs, tmp_path):
    victim = Victim(tmp_path / "interrupted", inputs)
    finishes_its_epoch(victim, "Ctrl-C", interrupt_as_a_terminal, "caught-up")


def interrupt_as_a_terminal(process):
    os.killpg(process.pid, signal.SIGINT)


def test_a_run_with_nothing_to_do_stops_at_once(inputs, tmp_path):
    victim = Victim(tmp_path / "idle", inputs)
    victim.finish()
    before = victim.commits()
    process = victim.start("--until", "stopped")
    try:
        wait_until(process, lambda: generation(victim) == 2)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=600)
    finally:
        kill_all(process)
    assert process.returncode == 0, err
    assert victim.commits() == before


def generation(victim):
    return json.loads((victim.checkpoint / "cutwater.json").read_text())["generation"]


def test_a_second_interrupt_cuts_the_epoch_off_and_the_next_run_does_it_again(inputs, tmp_path):
    victim = Victim(tmp_path / "cut", inputs)
    process = victim.start()
    try:
        wait_until(process, lambda: len(victim.epochs()) >= 1)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        kill_all(process)
        raise
    assert process.returncode in (0, 130), err  # two signals may arrive as one
    assert "Traceback" not in err
    victim.finish()
    written = (inputs / "readings" / "1.jsonl").read_bytes().splitlines()
    assert sum(map(len, victim.seen().values())) == len(written)
