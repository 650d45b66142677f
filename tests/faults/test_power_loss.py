"""The machine dies: any writes that were not synced are lost, and the same command goes on."""

import pytest
from support.faults.power import lose_power
from support.spark.embedded_spark import shared_session

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.usefixtures("rebooted")
@pytest.mark.parametrize("pair", ["jsonl-commit", "delta-commit"])
def test_nothing_is_lost_or_doubled_when_the_machine_dies(make_victim, tmp_path, seed, pair):
    victim = make_victim(pair, tmp_path / "victim")
    assert lose_power(victim, tmp_path, seed, 3, shared_session()) > 0
