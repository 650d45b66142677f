"""The machine dies at 200 random moments, with any subset of what was not synced lost."""

import pytest
from support.faults.power import lose_power
from support.spark.embedded_spark import shared_session

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.usefixtures("rebooted")
@pytest.mark.parametrize("case", range(10))
@pytest.mark.parametrize("pair", ["jsonl-commit", "delta-commit"])
def test_twenty_power_losses(make_victim, tmp_path, seed, pair, case):
    victim = make_victim(pair, tmp_path / "victim")
    assert lose_power(victim, tmp_path, seed, 20, shared_session()) > 0
