"""A session that is resumed runs what has not passed yet with the code as it is."""

import pytest
from faults.soak import Minute, verdicts
from support.faults.resuming import Resuming, spread

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

    def run(version, minutes=None):
        ran.write_text("")
        plugin = Resuming(pytester.path / "state" / "passed.json", version, minutes)
        code = pytester.inline_run("-p", "no:cacheprovider", plugins=[plugin]).ret
        return code, ran.read_text().split()

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


def test_what_is_drawn_is_spread_over_all_kinds():
    class Item:
        def __init__(self, nodeid):
            self.nodeid = nodeid

    names = [f"a.py::test_many[{n}]" for n in range(5)] + ["b.py::test_one", "b.py::test_two[x]"]
    drawn = [item.nodeid.partition("[")[0] for item in spread(map(Item, names), seed=1)]
    assert sorted(drawn[:3]) == ["a.py::test_many", "b.py::test_one", "b.py::test_two"]
    assert len(drawn) == 7


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
