"""The list of tests that were not run, and what CUTWATER_REQUIRE_ALL makes of it."""

import pytest
from support.browser.chromium import find_chromium

HEADER = "from support.repo.not_run import need\nimport pytest\n"
PASSING = "def test_fine(): pass\n"
NEEDY = "def test_needy(): need('no anvil found', provided_by='make anvil')\n"
SKIPPED = "@pytest.mark.skip(reason='not today')\ndef test_lazy(): pass\n"
XFAILED = "@pytest.mark.xfail(strict=True)\ndef test_gap(): assert False\n"
FAILING = "def test_wrong(): assert False\n"
EMPTY_MODULE = "pytest.skip('nothing here', allow_module_level=True)\n"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    def run(source: str, *options: str, require_all: str = "") -> pytest.RunResult:
        monkeypatch.setenv("CUTWATER_REQUIRE_ALL", require_all)
        pytester.makepyfile(HEADER + source)
        return pytester.runpytest("-p", "support.repo.not_run", *options)

    return run


def test_a_needy_test_is_listed_with_the_command_that_provides_it(run):
    result = run(PASSING + NEEDY)
    result.stdout.fnmatch_lines(
        ["*= not run =*", "*.py::test_needy: no anvil found; `make anvil` provides it"]
    )
    assert result.ret == pytest.ExitCode.OK


def test_nothing_is_listed_when_everything_ran(run):
    result = run(PASSING + XFAILED, require_all="1")
    result.stdout.no_fnmatch_line("*not run*")
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("source", [NEEDY, SKIPPED, EMPTY_MODULE], ids=["needy", "skip", "module"])
def test_require_all_fails_a_session_that_left_something_out(run, source):
    result = run(PASSING + source, require_all="1")
    result.stdout.fnmatch_lines(["CUTWATER_REQUIRE_ALL=1 and 1 not run: the session fails"])
    assert result.ret != pytest.ExitCode.OK


def test_require_all_fails_a_session_with_deselected_tests(run):
    result = run(PASSING + XFAILED, "-k", "fine", require_all="1")
    result.stdout.fnmatch_lines(["1 deselected", "CUTWATER_REQUIRE_ALL=1 and 1 not run*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_failing_session_still_fails(run):
    assert run(FAILING + NEEDY).ret == pytest.ExitCode.TESTS_FAILED
    assert run(FAILING + NEEDY, require_all="1").ret == pytest.ExitCode.TESTS_FAILED


def test_chromium_is_needed_where_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUTWATER_CHROMIUM", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium found; `make services`"):
        find_chromium()


def test_chromium_is_taken_from_the_environment(monkeypatch, tmp_path):
    browser = tmp_path / "browser"
    browser.touch(mode=0o755)
    monkeypatch.setenv("CUTWATER_CHROMIUM", str(browser))
    assert find_chromium() == str(browser)
