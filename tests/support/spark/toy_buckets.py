"""Buckets over fake state, with constants so small that few changes make many entries."""

from contextlib import contextmanager

import msgspec
import pytest

from cutwater.spark.state import bucket as buckets
from cutwater.spark.state import changelog
from cutwater.spark.state.bucket import BucketStates, StateStore
from cutwater.spark.state.cache import COPIES_LIMIT
from cutwater.spark.state.table import StateColumn

PLACE = ("query", 0, 7)
COLUMNS = {
    "count": StateColumn("int"),
    "sum": StateColumn("float"),
    "seen": StateColumn("bool"),
    "names": StateColumn("object", msgspec.msgpack.encode, msgspec.msgpack.decode),
}


@contextmanager
def constants(**values):
    """Small logs and entries, so that few changes make many entries and cleanings."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(buckets if hasattr(buckets, name) else changelog, name, value)
            if name == "ENTRY_COST":
                patch.setattr(changelog, name, value)
        yield


def bucket(group, place=PLACE, limit=COPIES_LIMIT):
    return BucketStates(StateStore(group), *place, limit)


def head(group):
    return StateStore(group).head()


def entries(group):
    return {key: value for (key,), (value,) in group.log.items.items() if key >= 0}


def epoch(group, *changes, place=PLACE, limit=COPIES_LIMIT, copies=None):
    if copies is not None:
        buckets._cache = copies
    states = bucket(group, place, limit)
    for change in changes:
        states.put(*change)
    states.save()
    return states


def calls(group, *changes, **settings):
    group.log.calls.clear()
    epoch(group, *changes, **settings)
    return group.log.calls
