"""An epoch of which rows have left is finished by the flow that began it, and by no other."""

from dataclasses import replace

import pytest
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.errors import RunError
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.recovery import Resumption, agree


def flow_of(f):
    flow = cw.Flow("flow")
    flow.sink("out", flow.source("items", int).map(f, name="mapped"))
    return flow


def more(n: int) -> int:
    return n + 1


def less(n: int) -> int:
    return n - 1


@pytest.fixture
def place(tmp_path):
    """A checkpoint of a flow whose sink released early, in mid-epoch."""
    made = Checkpoint(tmp_path / "checkpoint")
    for log, epochs in (("offsets", 2), ("commits", 1)):
        folder = made.spark / log
        folder.mkdir(parents=True)
        for epoch in range(epochs):
            (folder / str(epoch)).write_text('v1\n{"conf": {}}\n')
    made.save(replace(identity_of(make_job(flow_of(more), tmp_path), 2), early=["out"]))
    return made


def agreed(place, f):
    return agree(place, make_job(flow_of(f), place.root.parent), Resumption())


def test_another_flow_is_refused(place):
    with pytest.raises(RunError, match="may have left by 'out'"):
        agreed(place, less)


def test_the_same_flow_goes_on_and_what_left_early_is_not_forgotten(place):
    """Its sinks release with the epoch now; it may be cut off again before the epoch is over."""
    identity = agreed(place, more)
    assert identity.early == ["out"]
    place.save(identity)
    with pytest.raises(RunError, match="may have left by 'out'"):
        agreed(place, less)


def test_after_the_epoch_another_flow_goes_on_and_nothing_is_early_any_more(place):
    (place.spark / "commits" / "1").write_text("v1\n{}")
    assert agreed(place, less).early == []
