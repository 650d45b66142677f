"""The slots of a session: executors of a cluster register late."""

import pytest
from support.spark.toy_counting import flow
from support.spark.toy_realtime import toy_job

from cutwater.spark import runner
from cutwater.spark.realtime import requirements
from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint
from cutwater.spark.realtime.requirements import (
    SLOTS_POLL_S,
    SLOTS_WAIT_S,
    slots_of_master,
    slots_of_session,
)
from cutwater.spark.recovery import Resumption


class Session:
    """A session whose executors register after some looks."""

    def __init__(self, master, *slots):
        self.sparkContext = self._jsc = self
        self.master, self._slots, self.clock = master, list(slots), 0.0

    def sc(self):
        return self

    resourceProfileManager = defaultResourceProfile = sc

    def maxNumConcurrentTasks(self, _profile):
        return self._slots.pop(0) if len(self._slots) > 1 else self._slots[0]

    def monotonic(self):
        return self.clock

    def sleep(self, seconds):
        self.clock += seconds


@pytest.fixture
def waiting_in(monkeypatch):
    def wait(session):
        monkeypatch.setattr(requirements, "time", session)
        return slots_of_session(session, 3)

    return wait


@pytest.mark.parametrize("partitions", [None, 1])
def test_executors_of_a_session_of_ones_own_are_waited_for(monkeypatch, tmp_path, partitions):
    """For a reader and a partition, be their number known or still to be chosen."""
    session = Session("spark://somewhere:7077", 0, 0, 2)
    monkeypatch.setattr(requirements, "time", session)
    store = RealTimeCheckpoint(tmp_path / "checkpoint")
    asked = Resumption(partitions=partitions)
    engine = runner._Engine(is_real_time=True, readers=1)
    _, sized = engine.sized(toy_job(flow(), tmp_path), store, asked, "", session)
    assert (sized.partitions, session.clock) == (1, 2 * SLOTS_POLL_S)


CLUSTERS = ["spark://somewhere:7077", "spark://127.0.0.1:7077", "local-cluster[2,2,1024]", "yarn"]


@pytest.mark.parametrize("master", CLUSTERS)
def test_executors_that_register_late_are_waited_for(waiting_in, master):
    assert waiting_in(Session(master, 2, 2, 4)) == 4


def test_executors_that_never_register_are_waited_for_that_long_and_no_longer(waiting_in):
    session = Session("spark://somewhere:7077", 2)
    assert waiting_in(session) == 2
    assert session.clock == SLOTS_WAIT_S


@pytest.mark.parametrize("master", ["local", "local[2]", "local[2,4]"])
def test_nothing_is_waited_for_where_there_are_no_executors(waiting_in, master):
    session = Session(master, 2)
    assert waiting_in(session) == 2
    assert session.clock == 0


@pytest.mark.spark
def test_the_slots_are_those_that_spark_counts(spark):
    assert slots_of_session(spark, 1) == slots_of_master(spark.sparkContext.master)
