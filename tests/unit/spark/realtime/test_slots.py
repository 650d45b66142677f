"""The slots of a session: executors of a cluster register late."""

import pytest

from cutwater.spark.realtime import requirements
from cutwater.spark.realtime.requirements import SLOTS_WAIT_S, slots_of_session


class Session:
    """A session whose executors register after some looks."""

    def __init__(self, master, *slots):
        self.sparkContext = self
        self.master, self._slots, self.clock = master, list(slots), 0.0

    @property
    def defaultParallelism(self):
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
