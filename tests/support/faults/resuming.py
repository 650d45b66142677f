"""A pytest plugin for a session that can be resumed: what has passed is not run again.

The file named by ``CUTWATER_PASSED`` says what has passed, with which code, and how long it took.
With ``CUTWATER_MINUTES`` it ends after so many: what it draws is spread over all kinds of faults, a
kind being a test without its parameters.
"""

import hashlib
import json
import os
import random
import time
from collections.abc import Iterable
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

    def __init__(self, path: Path, version: str, minutes: float | None = None) -> None:
        self._path = path
        self._version = version
        self._minutes = minutes
        self._began = time.monotonic()
        found = json.loads(path.read_text()) if path.exists() else {}
        self._passed: dict[str, float] = found["passed"] if found.get("code") == version else {}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what has passed."""
        done = [item for item in items if item.nodeid in self._passed]
        items[:] = [item for item in items if item.nodeid not in self._passed]
        if self._minutes is not None:
            items[:] = spread(items, random.randrange(1_000_000))
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
        limit = LIMIT_SECONDS if self._minutes is None else 60 * self._minutes
        if time.monotonic() - self._began > limit:
            item.session.shouldstop = "the time is over; the same command goes on from here"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Where all has passed before, nothing to run is no failure; nor is the end of the time."""
        is_done = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._passed
        is_over = session.exitstatus == pytest.ExitCode.INTERRUPTED and self._minutes is not None
        if is_done or (is_over and not session.testsfailed):
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how much is done."""
        seconds = sum(self._passed.values())
        terminalreporter.line(
            f"{len(self._passed)} passed with this code so far, in {seconds / 60:.0f} minutes"
        )


def spread(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """The items in rounds: one of every kind, drawn at random, then another of every kind."""
    print(f"drawn with seed {seed}")
    kinds: dict[str, list[pytest.Item]] = {}
    for item in items:
        kinds.setdefault(item.nodeid.partition("[")[0], []).append(item)
    rng = random.Random(seed)
    rounds: list[tuple[int, float, pytest.Item]] = []
    for of_kind in kinds.values():
        rng.shuffle(of_kind)
        rounds += [(number, rng.random(), item) for number, item in enumerate(of_kind)]
    return [item for _, _, item in sorted(rounds, key=lambda drawn: drawn[:2])]


def pytest_configure(config: pytest.Config) -> None:
    path = Path(os.environ["CUTWATER_PASSED"])
    minutes = os.environ.get("CUTWATER_MINUTES")
    resuming = Resuming(path, code_version(), float(minutes) if minutes else None)
    config.pluginmanager.register(resuming, "cutwater-resuming")
