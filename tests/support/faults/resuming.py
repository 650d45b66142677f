"""A pytest plugin for a session that can be resumed: what has passed is not run again.

The file named by ``CUTWATER_PASSED`` says what has passed, with which code, and how long it took.
A session begins nothing more after ``CUTWATER_MINUTES``, two hours by default. So what it runs is
drawn: of every kind of fault one, then of every kind another. A kind is a test without its
parameters; what was not reached is spread over all kinds, and comes first in the next session.
"""

import hashlib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MINUTES = 120.0
"""How long a session begins new tests, if it is told nothing else."""


def code_version() -> str:
    """Return a fingerprint of all code that a result depends on."""
    digest = hashlib.sha256()
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class Resuming:
    """Keeps what has passed, and leaves it out."""

    def __init__(
        self,
        path: Path,
        version: str,
        minutes: float = MINUTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._version = version
        self._clock = clock
        self._ends = clock() + 60 * minutes
        self._is_over = False
        self._missing: list[str] = []
        found = json.loads(path.read_text()) if path.exists() else {}
        self._passed: dict[str, float] = found["passed"] if found.get("code") == version else {}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what has passed; draw the order of the rest."""
        done = [item for item in items if item.nodeid in self._passed]
        left = [item for item in items if item.nodeid not in self._passed]
        items[:] = spread(left, random.randrange(1_000_000), self._passed)
        self._missing = [item.nodeid for item in items]
        if done:
            config.hook.pytest_deselected(items=done)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what has passed, at once."""
        if report.when == "call" and report.passed:
            self._passed[report.nodeid] = round(report.duration, 1)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            record = {"code": self._version, "passed": self._passed}
            hidden = self._path.with_suffix(".new")
            hidden.write_text(json.dumps(record, indent=1) + "\n")
            hidden.rename(self._path)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Begin nothing more when the time is over."""
        self._missing.remove(item.nodeid)
        ran = yield
        if self._clock() >= self._ends:
            self._is_over = True
            item.session.shouldstop = "the time is over; the same command goes on from here"
        return ran

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Where all has passed before, nothing to run is no failure; nor is the end of the time."""
        is_done = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._passed
        is_over = session.exitstatus == pytest.ExitCode.INTERRUPTED and self._is_over
        if is_done or (is_over and not session.testsfailed):
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how much is done."""
        seconds = sum(self._passed.values())
        terminalreporter.line(
            f"{len(self._passed)} passed with this code so far, in {seconds / 60:.0f} minutes; "
            f"{len(self._missing)} of {len(set(map(kind_of, self._missing)))} kinds were not begun"
        )


def kind_of(nodeid: str) -> str:
    """Return the kind of fault of a test: its name without parameters."""
    return nodeid.partition("[")[0]


def spread(
    items: Iterable[pytest.Item], seed: int, passed: Iterable[str] = ()
) -> list[pytest.Item]:
    """The items in rounds: of every kind one, drawn at random, then of every kind another.

    A kind of which some passed before has had its first rounds.
    """
    print(f"drawn with seed {seed}")
    kinds: dict[str, list[pytest.Item]] = {}
    for item in items:
        kinds.setdefault(kind_of(item.nodeid), []).append(item)
    rng, had = random.Random(seed), Counter(map(kind_of, passed))
    rounds: list[tuple[int, float, pytest.Item]] = []
    for kind, of_kind in kinds.items():
        rng.shuffle(of_kind)
        rounds += [(number, rng.random(), item) for number, item in enumerate(of_kind, had[kind])]
    return [item for _, _, item in sorted(rounds, key=lambda drawn: drawn[:2])]


def pytest_configure(config: pytest.Config) -> None:
    path = Path(os.environ["CUTWATER_PASSED"])
    minutes = os.environ.get("CUTWATER_MINUTES")
    resuming = Resuming(path, code_version(), float(minutes) if minutes else MINUTES)
    config.pluginmanager.register(resuming, "cutwater-resuming")
