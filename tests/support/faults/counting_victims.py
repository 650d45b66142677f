"""Runs of the counting flow as processes of their own, and what must be seen of them."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.faults.counting import click, expected
from support.faults.pairs import Pair
from support.faults.traps import Trap
from support.faults.victims import kill_all, numbered, refusal_of, result_of, wait_until

TESTS = Path(__file__).parents[2]
JOB = Path(__file__).with_name("job.py")
MAX_BYTES_PER_EPOCH = 4_000
LOCK_WAIT_SECONDS = 20
"""So long a run waits for one before it that may be about to die."""
ROWS_PER_EPOCH = MAX_BYTES_PER_EPOCH // len('{"key":"k12","position":123}\n')


@dataclass
class CountingVictim:
    """A checkpoint, its input, and the sink that it writes to, whatever happens to its runs."""

    folder: Path
    pair: Pair
    master: str = "local[2]"
    conf: dict[str, str] = field(default_factory=dict)
    """Settings of a session that is passed to the run; without any the run makes its own."""
    asked: dict[str, Any] = field(default_factory=dict)
    """What else a start is asked for, such as ``adopt``."""
    fed: int = 0
    """How many events its input has."""
    traps: int = 0

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def feed(self, epochs: int) -> None:
        """Add a file to the input that is enough for some epochs."""
        source = self.folder / "in"
        source.mkdir(parents=True, exist_ok=True)
        rows = range(self.fed, self.fed + epochs * ROWS_PER_EPOCH)
        lines = [json.dumps(vars(click(n)), separators=(",", ":")) + "\n" for n in rows]
        hidden = source / f".{self.fed:09}.jsonl"
        hidden.write_text("".join(lines))
        hidden.rename(source / f"{self.fed:09}.jsonl")
        self.fed = rows.stop

    def feed_ahead(self, epochs: int) -> None:
        """See to it that so many epochs are yet to come after those that were begun."""
        begun = (len(self.offsets()) and self.offsets()[-1] + 1) * ROWS_PER_EPOCH
        missing = epochs - (self.fed - begun) // ROWS_PER_EPOCH
        if missing > 0:
            self.feed(missing)

    def trap(self, point: str, epochs_ahead: int = 1) -> Trap:
        """A trap at a point, so many epochs after the newest one."""
        self.traps += 1
        start = self.next_epoch() + epochs_ahead
        if point in ("before-the-batch", "in-the-batch"):
            start = self.rows() + epochs_ahead * ROWS_PER_EPOCH + ROWS_PER_EPOCH // 2
        return Trap(point, self.folder / f"trap-{self.traps}", start)

    def start(
        self,
        until: str = "stopped",
        trap: Trap | None = None,
        environment: dict[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> subprocess.Popen[str]:
        """Start a run, in a session of its own, by the command before it."""
        settings = {
            "source": str(self.folder / "in"),
            "max_bytes_per_epoch": MAX_BYTES_PER_EPOCH,
            "sinks": {"counts": self.pair.binding},
            "checkpoint": str(self.checkpoint),
            "until": until,
            "master": self.master,
            "conf": self.conf,
            "lock_wait_seconds": LOCK_WAIT_SECONDS,
            "asked": self.asked,
        }
        variables = (trap.environment() if trap else {}) | (environment or {})
        return start_job(settings, variables, before)

    def finish(self, trap: Trap | None = None, **environment: str) -> dict[str, Any]:
        """Run until all is read; what the run says of itself."""
        return result_of(self.start("caught-up", trap, environment))

    def refusal(self, **environment: str) -> str:
        """Run, expecting to be refused; the sentence."""
        return refusal_of(self.start("caught-up", environment=environment))

    def kill_at(self, point: str) -> None:
        """Run into a trap and be killed there."""
        self.feed_ahead(4)
        self.kill_in(self.trap(point))

    def kill_in(self, trap: Trap) -> None:
        """Run into a trap and be killed in it."""
        process = self.start(trap=trap)
        try:
            wait_until(process, lambda: trap.is_reached)
        finally:
            kill_all(process)

    def kill_at_random(self, rng: random.Random) -> str:
        """Run and be killed, some epochs later, somewhere in an epoch or while starting."""
        self.feed_ahead(5)
        epochs, part = rng.randrange(4), rng.random()
        before = self.generation()
        goal = self.next_epoch() + epochs
        process = self.start()
        try:
            began = time.monotonic()
            wait_until(process, lambda: self.generation() > before)
            if epochs:
                wait_until(process, lambda: self.next_epoch() >= goal - 1)
                began = time.monotonic()
                wait_until(process, lambda: self.next_epoch() >= goal)
            # Where in an epoch it is cut is drawn from how long the last one took.
            time.sleep(part * min(time.monotonic() - began, 3.0))
        finally:
            kill_all(process)
        return f"{epochs} epochs and {part:.2f}"

    def offsets(self) -> list[int]:
        """The epochs that Spark has written ahead."""
        return numbered(self.checkpoint / "spark" / "offsets")

    def commits(self) -> list[int]:
        """The epochs that Spark has finished."""
        return numbered(self.checkpoint / "spark" / "commits")

    def next_epoch(self) -> int:
        return max(self.offsets(), default=-1) + 1

    def generation(self) -> int:
        """How many runs have taken the checkpoint."""
        path = self.checkpoint / "cutwater.json"
        return json.loads(path.read_text())["generation"] if path.exists() else 0

    def rows(self) -> int:
        """How many rows a reader sees."""
        return sum(map(len, self.pair.seen().values()))

    def check_prefix(self) -> None:
        """A reader sees, of each key, the first of what there is to see, each once and in order."""
        given = expected(self.fed)
        for key, rows in self.pair.seen().items():
            assert rows == given[key][: len(rows)], f"{self.pair.name}, {key}"

    def check_whole(self) -> None:
        """A reader sees all there is to see, each row once and in order."""
        self.pair.settle()
        assert self.pair.seen() == expected(self.fed), self.pair.name


def start_job(
    settings: dict[str, Any],
    environment: dict[str, str] | None = None,
    before: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """Start a run of the counting flow, in a session of its own, by the command before it."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [*before, sys.executable, str(JOB), json.dumps(settings)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
    )
