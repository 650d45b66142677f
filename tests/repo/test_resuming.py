"""A session that is resumed runs what has not passed yet with the code as it is."""

import itertools
import time

import pytest
from faults.soak import Minute, verdicts
from support.faults.resuming import MINUTES, Resuming, spread

TESTS = """
import pathlib

def test_good():
    with open("ran", "a") as file:
        file.write("good ")

def test_bad():
    with open("ran", "a") as file:
        file.write("bad ")
    assert pathlib.Path("mended").exists()
"""


@pytest.fixture
def session(pytester):
    pytester.makepyfile(TESTS)
    ran = pytester.path / "ran"

    def run(version, minutes=MINUTES, clock=time.monotonic):
        ran.write_text("")
        plugin = Resuming(pytester.path / "state" / "passed.json", version, minutes, clock)
        options = ("-p", "no:cacheprovider")
        code = pytester.inline_run(*options, plugins=[plugin], no_reraise_ctrlc=True).ret
        return code, sorted(ran.read_text().split(), reverse=True)  # their order is drawn

    return run


def test_what_has_passed_is_left_out_and_what_failed_is_run_again(pytester, session):
    assert session("1") == (pytest.ExitCode.TESTS_FAILED, ["good", "bad"])
    assert session("1") == (pytest.ExitCode.TESTS_FAILED, ["bad"])
    (pytester.path / "mended").touch()
    assert session("1") == (pytest.ExitCode.OK, ["bad"])
    assert session("1") == (pytest.ExitCode.OK, [])


def test_with_other_code_everything_is_run_again(session):
    session("1")
    assert session("2") == (pytest.ExitCode.TESTS_FAILED, ["good", "bad"])


def test_when_the_time_that_was_given_is_over_nothing_more_begins(pytester, session):
    (pytester.path / "mended").touch()
    code, ran = session("1", minutes=0)
    assert (code, len(ran)) == (pytest.ExitCode.OK, 1)  # what has begun is finished
    assert session("1", minutes=5)[0] == pytest.ExitCode.OK


def test_who_interrupts_a_session_does_not_hear_that_all_is_well(pytester, session):
    pytester.makepyfile("def test_bad():\n    raise KeyboardInterrupt")
    assert session("1") == (pytest.ExitCode.INTERRUPTED, [])


KINDS = """
import pytest

@pytest.mark.parametrize("n", range(9))
def test_many(n):
    with open("ran", "a") as file:
        file.write("many ")

def test_one():
    with open("ran", "a") as file:
        file.write("one ")
"""


def test_what_is_not_reached_is_spread_over_all_kinds_and_comes_in_the_next_session(
    pytester, session
):
    """A minute for each test and two in a session: of each kind one, whatever the order of files.

    Each runs once until the code changes.
    """
    pytester.makepyfile(KINDS)
    seconds = itertools.count(step=60)

    def ran_in(minutes):
        code, ran = session("1", minutes, seconds.__next__)
        assert code == pytest.ExitCode.OK
        return ran

    assert ran_in(minutes=2) == ["one", "many"]
    assert ran_in(minutes=4) == ["many"] * 4
    assert ran_in(minutes=MINUTES) == ["many"] * 4
    assert ran_in(minutes=MINUTES) == []


class Item:
    def __init__(self, nodeid):
        self.nodeid = nodeid


NAMES = [f"a.py::test_many[{n}]" for n in range(5)] + ["b.py::test_one", "b.py::test_two[x]"]


@pytest.mark.parametrize("seed", range(10))
def test_what_is_drawn_is_spread_over_all_kinds(seed):
    drawn = [item.nodeid.partition("[")[0] for item in spread(map(Item, NAMES), seed)]
    assert sorted(drawn[:3]) == ["a.py::test_many", "b.py::test_one", "b.py::test_two"]
    assert len(drawn) == 7


@pytest.mark.parametrize("seed", range(10))
def test_kinds_of_which_fewer_passed_come_first(seed):
    left = [name for name in NAMES if name != "a.py::test_many[3]"]
    drawn = [item.nodeid for item in spread(map(Item, left), seed, ["a.py::test_many[3]"])]
    assert set(drawn[:2]) == {"b.py::test_one", "b.py::test_two[x]"}


def test_a_soak_tells_what_is_flat_from_what_grows():
    minutes = [Minute({"MiB": 100 + n % 3}, {"files": 100 + 10 * n}) for n in range(9)]
    found = verdicts(minutes)
    assert found["MiB"]["verdict"] == "flat"
    assert found["files"] == {"first third": 120, "last third": 180, "verdict": "grows"}


def test_a_soak_judges_memory_by_the_usual_minute_and_files_by_the_most_of_them():
    """A number of files that rises until the next compaction is flat, wherever it is looked at."""
    peaks, files = (100, 900, 100, 100, 100, 100, 100, 900, 100), (40, 1, 1, 5, 5, 5, 1, 40, 40)
    found = verdicts([Minute({"MiB": m}, {"files": f}) for m, f in zip(peaks, files, strict=True)])
    assert {figures["verdict"] for figures in found.values()} == {"flat"}
