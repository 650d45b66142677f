"""One random and two named kills of a run that writes early; `make faults` has the others."""

import random

import pytest

import cutwater as cw
from cutwater.testing.connectors.counting import SOURCE, Counted, click, expected, flow_to


def test_what_is_expected_is_what_the_simulator_says():
    simulated = cw.simulate(flow_to(["counts"]), {SOURCE: [click(n) for n in range(500)]})
    rows = simulated["counts"]
    for key, of_key in expected(500).items():
        assert [row for row in rows if row.key == key] == [Counted(key, n, at) for n, at in of_key]


@pytest.mark.spark
@pytest.mark.slow
def test_kills_of_a_run_that_shows_rows_before_the_epoch_is_over(make_victim, seed):
    victim = make_victim("postgres-early")
    victim.kill_at("some-buckets")
    victim.check_prefix()
    victim.kill_at("after-publish")
    victim.check_prefix()
    victim.kill_at_random(random.Random(seed))
    victim.check_prefix()
    victim.finish()
    victim.check_whole()
