"""SIGTERM: the running epoch is finished, nothing is lost, and the exit code is 0."""

import random
import signal

import pytest
from support.faults.stops import finishes_its_epoch
from support.faults.victims import Victim, write_inputs

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_run_that_is_terminated_finishes_its_epoch(tmp_path):
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    victim = Victim(tmp_path / "terminated", write_inputs(tmp_path / "inputs", seed, epochs=12))
    finishes_its_epoch(
        victim, "SIGTERM", lambda process: process.send_signal(signal.SIGTERM), "stopped"
    )
