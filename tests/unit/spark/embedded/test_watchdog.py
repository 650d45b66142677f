"""A run that shows no sign of going on is cut off, and only then; ticks are counted by hand."""

import threading

import pytest

from cutwater.endings import exit_code
from cutwater.errors import ResourceError
from cutwater.spark.embedded.watchdog import Watchdog, ended_if_hung


class Ticks:
    """Stands for the event that ends a watch: so many ticks pass, with something before each."""

    def __init__(self, *before):
        self._before = list(before)

    def wait(self, _seconds):
        if not self._before:
            return True
        self._before.pop(0)()
        return False


def quiet():
    pass


def counted(watchdog, *before):
    watchdog._count(Ticks(*before))
    return watchdog.is_hung


@pytest.fixture
def watchdog():
    return Watchdog(20.0, quiet)  # a tick is a second


def test_it_is_cut_off_after_its_time_without_a_sign(watchdog):
    assert not counted(watchdog, *[quiet] * 19)
    assert watchdog.is_quiet()
    assert counted(watchdog, quiet)
    with pytest.raises(ResourceError) as caught:
        watchdog.refuse_hung()
    assert caught.value.problems[0].code == "hung"
    assert exit_code(caught.value) == 1


def test_a_sign_that_changes_starts_the_time_anew(watchdog):
    def finish_a_task():
        watchdog.note("tasks", (7, 3))

    assert not counted(watchdog, *[quiet] * 19, finish_a_task, *[quiet] * 18)
    assert counted(watchdog, quiet, quiet)


def test_a_sign_that_stays_the_same_is_none(watchdog):
    watchdog.note("tasks", (7, 3))
    assert counted(watchdog, *[lambda: watchdog.note("tasks", (7, 3))] * 20)


def test_what_spark_does_is_reported(watchdog):
    watchdog.note("status", "Processing new data")
    assert "(Spark: Processing new data)" in watchdog.problem().message


def test_it_may_wait_for_ever():
    assert not counted(Watchdog(float("inf"), quiet), *[quiet] * 1000)


def failing_when(is_cut_off, hung_after_s):
    cut = threading.Event()
    with ended_if_hung(hung_after_s, cut.set) as watchdog, watchdog.watching():
        assert cut.wait(60 if is_cut_off else 0) == is_cut_off
        raise ConnectionError("the JVM is gone")


def test_what_fails_since_it_was_cut_off_is_reported_in_its_sentence():
    with pytest.raises(ResourceError, match=r"\[hung\]"):
        failing_when(is_cut_off=True, hung_after_s=0.01)


def test_what_fails_otherwise_is_left_as_it_is():
    with pytest.raises(ConnectionError):
        failing_when(is_cut_off=False, hung_after_s=600.0)
