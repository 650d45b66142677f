"""Kills at random moments and at every named point, for every pair of sink and release."""

import random
import shutil

import pytest
from support.faults.pairs import PAIRS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = 10
"""In each case; the pairs have so many cases:"""
CASES = [(pair, n) for pair in PAIRS for n in range(5 if pair == "postgres-early" else 1)]
POINTS = ("before-the-batch", "in-the-batch", "some-buckets", "before-publish", "after-publish")


@pytest.mark.parametrize(("pair", "case"), CASES)
def test_kills_at_random(make_victim, seed, pair, case):
    rng = random.Random(seed)
    victim = make_victim(pair)
    for kill in range(KILLS):
        print(f"kill {kill + 1} after {victim.kill_at_random(rng)}", flush=True)
        victim.check_prefix()
    assert victim.finish()["generation"] == KILLS + 1
    victim.check_whole()


@pytest.mark.parametrize("pair", PAIRS)
def test_kills_at_every_named_point(make_victim, pair):
    victim = make_victim(pair)
    for point in POINTS:
        victim.kill_at(point)
        victim.check_prefix()
    assert victim.finish()["generation"] == len(POINTS) + 1
    victim.check_whole()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_lost_commit_shows_nothing_twice_and_a_lost_checkpoint_is_refused(make_victim, pair):
    victim = make_victim(pair)
    victim.feed(3)
    victim.finish()
    victim.check_whole()
    commits = victim.checkpoint / "spark" / "commits"
    (commits / str(victim.commits()[-1])).unlink()
    for checksum in commits.glob(".*.crc"):
        checksum.unlink()
    victim.finish()
    victim.check_whole()
    shutil.rmtree(victim.checkpoint)
    assert "another-checkpoint" in victim.refusal()
    victim.check_whole()
    assert not victim.checkpoint.exists()
