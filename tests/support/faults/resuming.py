"""A pytest plugin for a session that can be resumed: what has passed is not run again.

The file named by ``CUTWATER_PASSED`` says what has passed, with which code, and how long it took.
"""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIMIT_SECONDS = 2 * 60 * 60


def code_version() -> str:
    """Return a fingerprint of all code that a result depends on."""
    digest = hashlib.sha256()
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class Resuming:
    """Keeps what has passed, and leaves it out."""

    def __init__(self, path: Path, version: str) -> None:
        self._path = path
        self._version = version
        self._began = time.monotonic()
        found = json.loads(path.read_text()) if path.exists() else {}
        self._passed: dict[str, float] = found["passed"] if found.get("code") == version else {}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what has passed."""
        done = [item for item in items if item.nodeid in self._passed]
        items[:] = [item for item in items if item.nodeid not in self._passed]
        if done:
            config.hook.pytest_deselected(items=done)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what has passed, at once."""
        if report.when == "call" and report.passed:
            self._passed[report.nodeid] = round(report.duration, 1)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            said = {"code": self._version, "passed": self._passed}
            hidden = self._path.with_suffix(".new")
            hidden.write_text(json.dumps(said, indent=1) + "\n")
            hidden.rename(self._path)

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Begin nothing more when the time is over."""
        if time.monotonic() - self._began > LIMIT_SECONDS:
            item.session.shouldstop = "two hours are over; the same command goes on from here"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Where all has passed before, nothing to run is no failure."""
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._passed:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how much is done."""
        seconds = sum(self._passed.values())
        terminalreporter.line(
            f"{len(self._passed)} passed with this code so far, in {seconds / 60:.0f} minutes"
        )


def pytest_configure(config: pytest.Config) -> None:
    path = Path(os.environ["CUTWATER_PASSED"])
    config.pluginmanager.register(Resuming(path, code_version()), "cutwater-resuming")
