"""A run in real time that gets input all the time, is seen by an onlooker, and is killed often.

A process lives through several kills of its tasks: it starts the query again by itself. A kill of
the process, of its JVM or of its driver is followed by another process on the same checkpoint.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from support.faults.counting_victims import CountingVictim
from support.faults.onlooker import Onlooker
from support.faults.realtime_tasks import holders, next_tick

from cutwater.spark.realtime.opening import newest_opening
from cutwater.testing.connectors.counting import Click, click
from cutwater.testing.connectors.processes import descendants, kill_all, wait_until
from cutwater.testing.connectors.traps import Trap

ROWS_AT_ONCE = 4
"""So many records are appended every tenth of a second."""
ASKED = {"mode": "realtime", "batch_interval": 15.0, "snapshot_interval": 0.5}
OPERATOR, READER = "/positions/released-", "/plan/"
"""Files that a process of each kind has open."""
_BY_POSITION = ("before-the-batch", "in-the-batch")


def append_lines(path: Path) -> Callable[[Sequence[Click]], None]:
    """Appends records to a file that grows, in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def append(clicks: Sequence[Click]) -> None:
        text = "".join(json.dumps(vars(each)) + "\n" for each in clicks)
        with path.open("ab", buffering=0) as file:
            file.write(text.encode())

    return append


class RealTimeRun:
    """One checkpoint in real time, whatever happens to the processes that work on it."""

    def __init__(self, victim: CountingVictim, onlooker: Onlooker) -> None:
        self.victim, self._onlooker = victim, onlooker
        self.process: subprocess.Popen[str] | None = None
        self.trap: Trap | None = None
        self._is_over = threading.Event()
        self._feeder = threading.Thread(target=self._feed, daemon=True)
        self.kills = 0

    @contextlib.contextmanager
    def fed(self) -> Iterator[None]:
        """Input comes in, and the output is looked at, as long as the block lasts."""
        with self._onlooker:
            self._feeder.start()
            try:
                yield
            finally:
                self._is_over.set()
                self._feeder.join()
                if self.process:
                    kill_all(self.process)

    def _feed(self) -> None:
        assert self.victim.append
        while not self._is_over.wait(0.1):
            self.victim.append([click(self.victim.fed + n) for n in range(ROWS_AT_ONCE)])
            self.victim.fed += ROWS_AT_ONCE

    # --- what is seen ----------------------------------------------------------------------------

    @property
    def looks(self) -> int:
        """How often the onlooker saw the output."""
        return self._onlooker.looks

    @property
    def checkpoint(self) -> Path:
        return self.victim.checkpoint

    def common(self) -> int:
        """The newest tick of which every task of the newest generation has the state."""
        opening = newest_opening(self.checkpoint)
        return opening.snapshots.common() if opening else -1

    def opened(self) -> int:
        """The newest generation."""
        opening = newest_opening(self.checkpoint)
        return opening.generation if opening else 0

    def wait_until(self, is_seen: Callable[[], bool]) -> None:
        """Wait for something while the process lives and the onlooker is content."""

        def looked() -> bool:
            self._onlooker.check()
            return is_seen()

        assert self.process
        wait_until(self.process, looked)

    def go_on(self) -> None:
        """Start if nothing runs; wait for more output, and for a snapshot of it."""
        if self.process is None:
            self.process = self.victim.start(trap=self.trap)
        rows, common = self._onlooker.rows, self.common()
        self.wait_until(lambda: self._onlooker.rows > rows + 2 * ROWS_AT_ONCE)
        self.wait_until(lambda: self.common() > common)

    def task(self, part: str, rng: random.Random) -> int:
        """A process that has a file of the newest generation open whose path has a part."""
        found: list[int] = []

        def find() -> bool:
            found[:] = holders(self.checkpoint, f"/realtime/{self.opened()}{part}")
            return bool(found)

        self.wait_until(find)
        return rng.choice(sorted(found))

    def processes(self, program: str) -> list[int]:
        """The processes of the run that run a program."""
        assert self.process
        named = []
        for pid in descendants(self.process.pid):
            with contextlib.suppress(OSError):
                if program in Path(f"/proc/{pid}/comm").read_text():
                    named.append(pid)
        return named

    # --- what is done to it ----------------------------------------------------------------------

    def signal_task(self, part: str, rng: random.Random, sent: signal.Signals) -> int:
        """A signal to such a process, unless it ends at that moment: then to another one."""
        while True:
            pid = self.task(part, rng)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sent)
                return pid

    def kill_task(self, part: str, rng: random.Random) -> None:
        """SIGKILL to such a process; the run goes on by itself."""
        self.signal_task(part, rng, signal.SIGKILL)
        self.kills += 1

    def kill(self, pid: int) -> None:
        """SIGKILL to one process that sleeps, or that Spark does not end by itself."""
        os.kill(pid, signal.SIGKILL)
        self.kills += 1

    def kill_group(self) -> str:
        """SIGKILL to everything; returns its standard error."""
        assert self.process
        stderr = kill_all(self.process)
        self.process = self.trap = None
        self.kills += 1
        self._onlooker.check()
        return stderr

    def lay(self, point: str) -> Trap:
        """A trap at a point that the run comes to soon; laid at its next start."""
        trap = self.victim.trap(point)
        ahead = self.victim.fed if point in _BY_POSITION else next_tick(self.checkpoint)
        self.trap = Trap(trap.point, trap.folder, ahead + (0 if point in _BY_POSITION else 1))
        return self.trap
