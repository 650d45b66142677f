"""The copies of states in a worker stay within their limit."""

import pytest
from support.spark.toy_buckets import bucket, calls, epoch
from support.spark.toy_spark import Group

from cutwater.spark.state import bucket as buckets
from cutwater.spark.state.cache import StateCache


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    monkeypatch.setattr(buckets, "_cache", StateCache())


def test_copies_stay_within_their_limit_and_what_went_is_read_again():
    groups = [Group() for _ in range(8)]
    one = epoch(groups[0], *(("one", b"%d" % key, bytes(100)) for key in range(100)))
    limit = 5 * one._copy.memory
    for turn in range(6):
        for label, group in enumerate(groups):
            key = b"%d" % turn
            epoch(
                group,
                *(("one", b"%d" % key, bytes(100)) for key in range(100)),
                ("two", key, b"%d" % label),
                place=("query", 0, label),
                limit=limit,
            )
            assert buckets._cache.bytes <= limit
    for label, group in enumerate(groups):
        assert dict(bucket(group, ("query", 0, label)).items("two")) == {
            b"%d" % turn: b"%d" % label for turn in range(6)
        }


def test_buckets_that_are_used_in_turns_do_not_drive_one_another_out():
    """One bucket too many: only a few are read again, not all of them."""
    groups = [Group() for _ in range(8)]
    for label, group in enumerate(groups):
        one = epoch(group, ("one", b"a", bytes(1000)), place=("query", 0, label))
    limit = 7 * one._copy.memory
    reads = 0
    for turn in range(30):
        for label, group in enumerate(groups):
            change = ("one", b"a", b"%01000d" % turn)
            reads += calls(group, change, place=("query", 0, label), limit=limit).count("iterator")
    assert reads < 0.4 * 30 * 8


def test_a_bucket_over_the_limit_is_worked_on_and_not_kept():
    group, other = Group(), Group()
    epoch(other, ("one", b"a", b"1"), place=("query", 0, 8))
    epoch(group, ("one", b"a", bytes(10_000)), limit=5_000)
    assert calls(group, ("one", b"a", bytes(9_999)), limit=5_000)[:2] == ["get", "iterator"]
    assert calls(other, ("one", b"a", b"2"), place=("query", 0, 8)) == ["get", "update", "update"]
