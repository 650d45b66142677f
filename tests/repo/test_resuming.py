"""A session that is resumed runs what has not passed yet with the code as it is."""

import pytest
from faults.soak import Minute, verdicts
from support.faults.resuming import Resuming

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

    def run(version):
        ran.write_text("")
        plugin = Resuming(pytester.path / "state" / "passed.json", version)
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
