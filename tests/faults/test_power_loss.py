"""The machine dies: any writes that were not synced are lost, and the same command goes on."""

import random
import shutil

import pytest
from support.faults.counting import expected
from support.faults.power import frozen_copies, recovered
from support.spark.embedded_spark import shared_session

from cutwater.spark.checkpoint import power_loss

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def rebooted(monkeypatch):
    """Starts in this process are on a machine that was booted meanwhile."""
    monkeypatch.setattr(power_loss, "boot_id", lambda: "another boot")


def lose_power(make_victim, tmp_path, seed, count):
    """Every copy is gone on with and shows all rows once and in order; how much was lost."""
    rng = random.Random(seed)
    victim = make_victim("jsonl-commit", tmp_path / "victim")
    losses = 0
    for copy, lost in frozen_copies(victim, tmp_path, rng, count):
        losses += len(lost)
        seen = recovered(copy, victim, shared_session()).seen()
        assert seen == expected(victim.fed), lost
        shutil.rmtree(copy)
    return losses


@pytest.mark.usefixtures("rebooted")
def test_nothing_is_lost_or_doubled_when_the_machine_dies(make_victim, tmp_path, seed):
    assert lose_power(make_victim, tmp_path, seed, 5) > 0
