"""A pytest plugin for tests that need something this machine may not have.

Such a test calls `need` and is then listed as *not run*, with the command that provides what is
missing. With CUTWATER_REQUIRE_ALL=1 a session in which anything was not run fails.
"""

import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

PREFIX = "not run: "


def need(missing: str, provided_by: str) -> NoReturn:
    """Leave the current test out because something is missing; say which command provides it."""
    pytest.skip(f"{PREFIX}{missing}; `{provided_by}` provides it")


class NotRun:
    """Collects the tests that were not run and reports them at the end of the session."""

    def __init__(self) -> None:
        self.tests: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._add(report.nodeid, report.longrepr)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._add(report.nodeid, report.longrepr)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.tests += [(item.nodeid, "deselected") for item in items]

    def _add(self, nodeid: str, longrepr: object) -> None:
        reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        self.tests.append((nodeid, reason.removeprefix("Skipped: ").removeprefix(PREFIX)))

    def is_failure(self) -> bool:
        return bool(self.tests) and os.environ.get("CUTWATER_REQUIRE_ALL") == "1"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.is_failure() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.tests:
            return
        terminalreporter.section("not run")
        for line in self._lines():
            terminalreporter.line(line)
        if self.is_failure():
            terminalreporter.line(
                f"CUTWATER_REQUIRE_ALL=1 and {len(self.tests)} not run: the session fails", red=True
            )

    def _lines(self) -> Iterator[str]:
        for nodeid, reason in self.tests:
            if reason != "deselected":
                yield f"{nodeid}: {reason}"
        deselected = sum(reason == "deselected" for _, reason in self.tests)
        if deselected:
            yield f"{deselected} deselected"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(NotRun(), "cutwater-not-run")
