"""Random bodies of loops, explored whole with a crash anywhere."""

import pytest
from support.flows.random_loops import STAGES, Hop, random_loop

import cutwater as cw

HOPS = [Hop("a", 0, "x", 1), Hop("b", 1, "y", 0), cw.BARRIER, Hop("a", 1, "z", 1)]
SEEDS = (0, 3, 4, 7, 8, 11, 12, 15)
"""Every stage is in one of them; half of them reset their states with each input epoch."""


@pytest.mark.parametrize("seed", SEEDS)
def test_every_interleaving_with_a_crash_is_explained(seed):
    report = cw.check(random_loop(seed), {"hops": HOPS}, crashes=1, walks=1)
    assert report.holds, report
    found = {finding.check: finding for finding in report.findings}
    assert "explored all" in found["failure transparency, all runs"].extent


def test_the_seeds_have_every_stage():
    loops = [step for seed in SEEDS for step in random_loop(seed).steps if step.name == "loop"]
    assert STAGES.keys() <= {step.name[:-2] for loop in loops for step in loop.body}
    assert {loop.state_per_epoch for loop in loops} == {True, False}
