"""Traps: points in a run at which a fault is injected, once.

The variable ``CUTWATER_TRAP`` sets a trap; only this file reads it, in any process of the run.
`Trapped` wraps a sink; nothing in the package knows of it.

==================  ==================================================================
point               what happens there
==================  ==================================================================
before-the-batch    hangs at the first event, where it is read: the offsets are logged
in-the-batch        hangs inside a task, after other events of the epoch
before-write        hangs before rows are handed to the sink
some-buckets        hangs before rows are handed to the sink, after another task did so
before-publish      hangs after all rows were handed to the sink
after-publish       hangs before Spark knows that the epoch is published
fail-after-write    fails once rows were handed to the sink
twice-at-once       another process hands the same rows to the sink at the same time
slow-after-write    hangs once rows were handed to the sink, until another attempt did so
==================  ==================================================================

A process that hangs has written its id to ``reached``, and continues once the file ``go`` exists.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from cutwater.errors import Problem
from cutwater.spark.connectors.base.sink import BucketRows, Claim, Guarantee, Receipt, SinkConnector

__all__ = ["VARIABLE", "Trap", "Trapped", "at", "laid"]

VARIABLE = "CUTWATER_TRAP"


@dataclass(frozen=True)
class Trap:
    """The point of a trap, and the epoch or position from which it is active."""

    point: str
    folder: Path
    start: int

    def environment(self) -> dict[str, str]:
        """The variable that sets it, in a new folder."""
        self.folder.mkdir(parents=True)
        data = {"point": self.point, "folder": str(self.folder), "start": self.start}
        return {VARIABLE: json.dumps(data)}

    @property
    def is_reached(self) -> bool:
        return (self.folder / "reached").exists()

    @property
    def pid(self) -> int:
        """Of the process that hangs."""
        return int((self.folder / "reached").read_text())

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def is_first(self, name: str) -> bool:
        """Is this the first call in any process?"""
        try:
            (self.folder / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def hang(self) -> None:
        """Report it, and wait to be released; once."""
        if self.is_first("taken"):
            (self.folder / "pid").write_text(str(os.getpid()))
            (self.folder / "pid").rename(self.folder / "reached")
            while not (self.folder / "go").exists():
                time.sleep(0.005)


def laid() -> Trap | None:
    """Return the trap of this run."""
    data = os.environ.get(VARIABLE)
    if not data:
        return None
    trap = json.loads(data)
    return Trap(trap["point"], Path(trap["folder"]), trap["start"])


def at(point: str, number: int) -> None:
    """Hang here, if the trap is for this point and has not been sprung."""
    if os.environ.get(VARIABLE):
        trap = laid()
        if trap and trap.point == point and number >= trap.start:
            trap.hang()


@dataclass(frozen=True)
class Trapped(SinkConnector):
    """A sink that behaves as the wrapped one, but for the trap."""

    inner: SinkConnector

    def __post_init__(self) -> None:
        object.__setattr__(self, "accepts", self.inner.accepts)
        object.__setattr__(self, "release", self.inner.release)

    @property
    def location(self) -> str:
        return self.inner.location

    @property
    def ledger_location(self) -> str:
        return self.inner.ledger_location

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        return self.inner.newest_epoch(name, query_id)

    def guarantee(self) -> Guarantee:
        return self.inner.guarantee()

    def problems(self, name: str, record: Any) -> Iterator[Problem]:
        return self.inner.problems(name, record)

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        return self.inner.check(name, query_id, next_epoch)

    def schema_problems(self, name: str, record: Any) -> list[Problem]:
        return self.inner.schema_problems(name, record)

    def prepare(self, name: str, record: Any) -> None:
        self.inner.prepare(name, record)

    def generation(self, name: str) -> int:
        return self.inner.generation(name)

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        at("before-take-over", claim.generation)
        self.inner.take_over(claim, keep=keep)
        at("after-take-over", claim.generation)

    def claim(self, claim: Claim) -> None:
        self.inner.claim(claim)
        at("after-claim", claim.generation)

    def released(self, claim: Claim, epoch: int) -> str | None:
        return self.inner.released(claim, epoch)

    def row_count(self, claim: Claim) -> int:
        return self.inner.row_count(claim)

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Receipt:
        trap = laid()
        if trap is None or epoch < trap.start:
            return self.inner.write(claim, epoch, record, buckets)
        if trap.point == "before-write":
            trap.hang()
        elif trap.point == "some-buckets" and not trap.is_first(f"other-{epoch}"):
            _wait_for(trap.folder / f"written-{epoch}")
            trap.hang()
        elif trap.point == "twice-at-once" and trap.is_first(f"{epoch}-{buckets[0].label}"):
            return self._twice(trap, claim, epoch, record, buckets)
        receipt = self.inner.write(claim, epoch, record, buckets)
        (trap.folder / f"written-{epoch}").touch()
        if trap.point == "fail-after-write" and trap.is_first(f"failed-{epoch}"):
            raise RuntimeError("this attempt fails after it wrote")
        if trap.point == "slow-after-write":
            attempts = trap.folder / f"attempts-{epoch}-{buckets[0].label}"
            attempts.mkdir(exist_ok=True)
            (attempts / str(os.getpid())).touch()
            if trap.is_first("taken"):
                while len(list(attempts.iterdir())) < 2:
                    time.sleep(0.005)
                (trap.folder / "reached").write_text(str(os.getpid()))
        return receipt

    def _twice(
        self, trap: Trap, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Receipt:
        """Write while another process, as another attempt would, writes the same."""
        attempt = cloudpickle.dumps((self.inner, claim, epoch, record, buckets))
        with subprocess.Popen(
            [sys.executable, "-c", _ATTEMPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdin
            assert other.stdout
            other.stdin.write(len(attempt).to_bytes(8, "big") + attempt)
            other.stdin.flush()
            assert other.stdout.readline() == b"ready\n"
            other.stdin.write(b"go")
            other.stdin.close()
            receipt = self.inner.write(claim, epoch, record, buckets)
            data = other.stdout.readline()
        (trap.folder / f"twice-{epoch}-{data.decode().strip() or 'failed'}").touch()
        return receipt

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        at("before-publish", epoch)
        self.inner.publish(claim, epoch, receipts)
        at("after-publish", epoch)


_ATTEMPT = """
import sys
import cloudpickle

given = sys.stdin.buffer
sink, *rest = cloudpickle.loads(given.read(int.from_bytes(given.read(8), "big")))
print("ready", flush=True)
given.read(2)
sink.write(*rest)
print("wrote", flush=True)
"""


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.005)
